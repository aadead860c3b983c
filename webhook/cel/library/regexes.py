"""`find` and `findAll` on texts. The expressions are those of RE2, as far as Python's have the same meaning.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/cel/library/regex.go
"""

import re
from functools import lru_cache
from typing import Final

from webhook.cel.library.declared import INT, LIST_OF_STRINGS, STRING, Declared, Method

# RE2 has neither looks around, nor references back, nor atomic groups, nor possessive quantifiers.
_NOT_OF_RE2: Final = re.compile(r"\(\?(?:[=!>#(]|<[=!]|P=)|(?<!\\)(?:\\\\)*\\[1-9]|[*+?}]\+")


@lru_cache(maxsize=256)
def _compiled(expression: str) -> re.Pattern[str]:
    if _NOT_OF_RE2.search(expression):
        raise ValueError(
            f"{expression!r} has what RE2 does not: looks around, references back or possessive quantifiers"
        )
    try:
        return re.compile(expression, re.ASCII)
    except re.error as error:
        raise ValueError(f"error parsing regexp {expression!r}: {error}") from None


def _find(text: str, expression: str) -> str:
    found = _compiled(expression).search(text)
    return found[0] if found else ""


def _find_all(text: str, expression: str, most: int = -1) -> list[str]:
    found = [match[0] for match in _compiled(expression).finditer(text)]
    return found if most < 0 else found[:most]


FUNCTIONS: Final[tuple[Declared, ...]] = (
    Method("find", [STRING, STRING], STRING, _find),
    Method("findAll", [STRING, STRING], LIST_OF_STRINGS, _find_all),
    Method("findAll", [STRING, STRING, INT], LIST_OF_STRINGS, _find_all),
)
