"""Whether one object's JSON is another's, but for what each object gets anew from the API server.

To read an object takes longer than to compare its bytes. It is read once, to find in it the values that do not count:
`managedFields`, and where asked for `uid` and `creationTimestamp`. An API server writes the same object in one way, so
they are as long and in the same places in the next one. All else has to be the same byte by byte: nobody can take these
texts for different objects, unless he reads `managedFields`.
"""

from typing import Final

import msgspec
from msgspec import Raw, structs

# What is in a uid or a time beside letters and digits: nothing that ends a text, or means anything else in it.
_BETWEEN: Final = b"-:."
# Lists and objects in `managedFields`: readers of JSON give up at a depth of 1,000.
_MOST_NESTED: Final = 500
_ANOTHER: Final = b'["another"]'

Place = tuple[int, int]
"""From, to."""


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    managed_fields: Raw = Raw()
    uid: Raw = Raw()
    creation_timestamp: Raw = Raw()


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata


_objects: Final = msgspec.json.Decoder(_Object)


class SameText(msgspec.Struct, frozen=True, gc=False):
    """One object's JSON, with which others are compared."""

    length: int
    parts: tuple[tuple[int, int, bytes], ...]
    """What has to be the same, and its place."""
    texts: tuple[Place, ...]
    """Where uid and creationTimestamp are."""
    managed: Place
    managed_fields: bytes

    def matches(self, text: bytes) -> bool:
        """Whether `text` is the same, but for what does not count."""
        if len(text) != self.length:
            return False
        for start, end, part in self.parts:
            if text[start:end] != part:
                return False
        start, end = self.managed
        found = text[start:end]
        if found != self.managed_fields and not _is_list(found):
            return False
        return all(_is_plain(text, start, end) for start, end in self.texts)


def same_text(text: bytes, *, anew: bool) -> SameText | None:
    """What does not count in `text`: `managedFields`, and with `anew` what each object gets anew.

    None where that cannot be told for certain.
    """
    try:
        metadata = _metadata(text)
        texts = [_place(text, metadata, at) for at in (1, 2) if anew and metadata[at]]
        managed = _place(text, metadata, 0) if metadata[0] else (0, 0)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError):
        return None
    managed_fields = text[slice(*managed)]
    if not all(_is_plain(text, *at) for at in texts) or not (not managed_fields or _is_list(managed_fields)):
        return None
    parts, end = [], 0
    for start, after in sorted((*texts, managed)):
        parts.append((end, start, text[end:start]))
        end = after
    parts.append((end, len(text), text[end:]))
    return SameText(len(text), tuple(parts), tuple(texts), managed, managed_fields)


def _metadata(text: bytes) -> tuple[bytes, ...]:
    """The values, empty for what is not there."""
    return tuple(map(bytes, structs.astuple(_objects.decode(text).metadata)))


def _place(text: bytes, metadata: tuple[bytes, ...], at: int) -> Place:
    """Where a value of the metadata is; ValueError where another in its place would not be taken for it."""
    key = b'"%s":' % _Metadata.__struct_encode_fields__[at].encode()
    start = text.index(key + metadata[at]) + len(key)
    end = start + len(metadata[at])
    if _metadata(text[:start] + _ANOTHER + text[end:]) != (*metadata[:at], _ANOTHER, *metadata[at + 1 :]):
        raise ValueError(text)
    return start, end


def _is_plain(text: bytes, start: int, end: int) -> bool:
    """Whether a text is there that means what is written."""
    value = text[start:end]
    return value[:1] == value[-1:] == b'"' and value[1:-1].translate(None, _BETWEEN).isalnum()


def _is_list(value: bytes) -> bool:
    """Whether it is the JSON of one list, by far not as deep as a reader of JSON gets."""
    if value[:1] != b"[" or value.count(b"[") + value.count(b"{") > _MOST_NESTED:
        return False
    try:
        return bool(msgspec.json.decode(value, type=Raw))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
