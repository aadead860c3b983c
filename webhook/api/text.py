"""Users' text, made safe for messages."""

from functools import lru_cache

from webhook.api.limits import MAX_CACHED_TEXT_CHARACTERS


def visible(text: str) -> str:
    """`text` with escapes for control characters: colour codes, line ends, marks that change the writing direction, and
    halves of surrogate pairs.

    A user could otherwise forge or hide a line of a message, and the API server drops a warning with control characters
    (apimachinery `pkg/util/net/http.go`, `NewWarningHeader`).
    """
    return text if _is_printable(text) else "".join(map(_visible, text))


def visible_lines(text: str) -> str:
    """`visible` for a text of several lines."""
    return "\n".join(map(visible, text.split("\n")))


def _is_printable(text: str) -> bool:
    return _is_short_printable(text) if len(text) <= MAX_CACHED_TEXT_CHARACTERS else text.isprintable()


@lru_cache(maxsize=1024)  # messages repeat, and this function loops over the characters
def _is_short_printable(text: str) -> bool:
    return text.isprintable()


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if escape := {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char):
        return escape
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
