"""`find` and `findAll`. They accept the RE2 expressions that have the same meaning in Python.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/cel/library/regex.go
"""

import re
from functools import lru_cache
from typing import Final

from webhook.cel.library.declared import INT, LIST_OF_STRINGS, STRING, Declared, Method

# Lookarounds, back references, atomic groups, possessive quantifiers and flags, which RE2 does not have.
_NOT_OF_RE2: Final = re.compile(r"\(\?(?:[=!>#(]|<[=!]|P=|[ims-]*[aLux])|(?<!\\)(?:\\\\)*\\[1-9ZNuU]|[*+?}]\+")
# Expressions that have a different meaning in Python.
_NOT_AS_IN_RE2: Final = re.compile(r"\[:\^?[a-z]+:\]|(?<!\\)\{,[0-9]*\}")
_MANY_LINES: Final = re.compile(r"\(\?[is]*m")
_ANY_CASE: Final = re.compile(r"\(\?[ms]*i")
# The end of a class is optional, because an unclosed class is an error in any case.
_ESCAPE_OR_CLASS_OR_END: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]?|\$", re.DOTALL)


@lru_cache(maxsize=256)
def _compiled(expression: str) -> re.Pattern[str]:
    if _NOT_OF_RE2.search(expression):
        raise ValueError(
            f"{expression!r} uses what RE2 does not have: lookarounds, back references, possessive quantifiers,"
            " or other flags and escapes"
        )
    if _NOT_AS_IN_RE2.search(expression) or (_ANY_CASE.search(expression) and not expression.isascii()):
        raise ValueError(
            f"{expression!r} is not supported here: write ranges for [:classes:] and {{0,n}} for {{,n}}, and do not use"
            " (?i) with letters beyond ASCII"
        )
    try:
        return re.compile(_with_end(expression), re.ASCII)
    except re.error as error:
        raise ValueError(f"error parsing regexp {expression!r}: {error}") from None


def _with_end(expression: str) -> str:
    """Replaces `$` by an anchor that does not match before a final line feed, as in RE2."""
    if _MANY_LINES.search(expression):
        return expression
    return _ESCAPE_OR_CLASS_OR_END.sub(lambda match: r"\Z" if match[0] == "$" else match[0], expression)


def _find(text: str, expression: str) -> str:
    match = _compiled(expression).search(text)
    return match[0] if match else ""


def _find_all(text: str, expression: str, most: int = -1) -> list[str]:
    matches, end = [], -1
    for match in _compiled(expression).finditer(text):
        if match[0] or match.start() != end:  # Go ignores an empty match directly after a match
            matches.append(match[0])
        end = match.end()
    return matches if most < 0 else matches[:most]


FUNCTIONS: Final[tuple[Declared, ...]] = (
    Method("find", [STRING, STRING], STRING, _find),
    Method("findAll", [STRING, STRING], LIST_OF_STRINGS, _find_all),
    Method("findAll", [STRING, STRING, INT], LIST_OF_STRINGS, _find_all),
)
