"""A field of which only counts that it is there."""

import msgspec


class Presence(msgspec.Struct, gc=False):
    """The field is set; what it holds is not read."""
