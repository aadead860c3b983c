"""Who made an object, as its metadata says it."""

import msgspec


class OwnerReference(msgspec.Struct, rename="camel", gc=False):
    """An owner; `controller` is true for at most one of an object's."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None

    @property
    def group(self) -> str:
        """The owner's API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]
