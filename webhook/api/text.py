"""Users' text, made safe for messages."""


def visible(text: str) -> str:
    """`text` with escapes for control characters, direction marks and halves of surrogate pairs.

    A user could otherwise forge or hide a line of a message. The API server drops a warning with control characters
    (apimachinery `pkg/util/net/http.go`, `NewWarningHeader`).
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def visible_lines(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if escape := {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char):
        return escape
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
