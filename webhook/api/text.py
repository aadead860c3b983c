"""Text that users wrote, made fit for a message."""

from functools import lru_cache

from webhook.api.limits import MAX_CACHED_TEXT_CHARACTERS


def visible(text: str) -> str:
    """`text` with escapes for all that is not to be seen as it stands: control characters such as those that begin
    colours, ends of lines, marks that turn the direction of writing, halves of characters.

    So nobody can forge a line of a message, or hide one. What the API server drops a warning for is not left either
    (apimachinery `pkg/util/net/http.go`, `NewWarningHeader`).
    """
    return text if _is_printable(text) else "".join(map(_visible, text))


def visible_lines(text: str) -> str:
    """The same for a text that is made of lines."""
    return "\n".join(map(visible, text.split("\n")))


def _is_printable(text: str) -> bool:
    return _is_short_printable(text) if len(text) <= MAX_CACHED_TEXT_CHARACTERS else text.isprintable()


@lru_cache(maxsize=1024)  # messages are mostly the same; each character costs as much as one of Python's own steps
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
