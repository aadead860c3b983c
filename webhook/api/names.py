"""Syntax of Kubernetes names and labels: each `*_problem` says what is wrong with a text, or None.

A problem is a predicate in one line, to stand after the name of the thing: `metadata.name "Train" contains "T"; ...`.
It repeats no more than one character of the text, so its length is bounded. The rules are those of
https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/util/validation/validation.go and
https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/api/validate/content/kube.go
"""

import re
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from heapq import nsmallest
from itertools import islice
from typing import Final

import msgspec

DNS_LABEL_MAX_LENGTH: Final = 63
DNS_SUBDOMAIN_MAX_LENGTH: Final = 253
LABEL_NAME_MAX_LENGTH: Final = 63
LABEL_VALUE_MAX_LENGTH: Final = 63

GENERATED_SUFFIX_LENGTH: Final = 5
"""Random characters that the API server appends to `metadata.generateName`.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/storage/names/generate.go"""

GENERATED_BASE_MAX_LENGTH: Final = DNS_LABEL_MAX_LENGTH - GENERATED_SUFFIX_LENGTH
"""The API server cuts a longer `metadata.generateName` to this, silently, before it appends the suffix."""


class _Syntax(msgspec.Struct, frozen=True):
    pattern: re.Pattern[str]
    allowed: re.Pattern[str]
    allowed_text: str
    ends_text: str
    max_length: int

    def problem(self, text: str) -> str | None:
        if len(text) <= self.max_length and self.pattern.fullmatch(text):
            return None
        if not text:
            return "is empty"
        if len(text) > self.max_length:
            return f"has {len(text)} characters, at most {self.max_length} are allowed"
        good = self.allowed.match(text)
        if good and good.end() < len(text):
            return f"contains {_show(text[good.end()])}; allowed are {self.allowed_text}"
        return f"must start {self.ends_text}"


def _show(char: str) -> str:
    """The character itself only where nobody can mistake it for another one."""
    return f'"{char}"' if " " <= char <= "~" else f"the character U+{ord(char):04X}"


_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"

_DNS_1035_LABEL = _Syntax(
    pattern=re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?"),
    allowed=re.compile(r"[-a-z0-9]*"),
    allowed_text='lower case letters, digits and "-"',
    ends_text="with a lower case letter and end with a lower case letter or a digit",
    max_length=DNS_LABEL_MAX_LENGTH,
)
_DNS_1123_LABEL = _Syntax(
    pattern=re.compile(_DNS_LABEL),
    allowed=_DNS_1035_LABEL.allowed,
    allowed_text=_DNS_1035_LABEL.allowed_text,
    ends_text="and end with a lower case letter or a digit",
    max_length=DNS_LABEL_MAX_LENGTH,
)
_DNS_1123_SUBDOMAIN = _Syntax(
    pattern=re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*"),
    allowed=re.compile(r"[-a-z0-9.]*"),
    allowed_text='lower case letters, digits, "-" and "."',
    ends_text='and end with a lower case letter or a digit, and so must every part between two "."',
    max_length=DNS_SUBDOMAIN_MAX_LENGTH,
)
_LABEL_KEY_NAME = _Syntax(
    pattern=re.compile(_LABEL_NAME),
    allowed=re.compile(r"[-A-Za-z0-9_.]*"),
    allowed_text='letters, digits, "-", "_" and "."',
    ends_text="and end with a letter or a digit",
    max_length=LABEL_NAME_MAX_LENGTH,
)
_LABEL_VALUE = _Syntax(
    pattern=re.compile(rf"(?:{_LABEL_NAME})?"),
    allowed=_LABEL_KEY_NAME.allowed,
    allowed_text=_LABEL_KEY_NAME.allowed_text,
    ends_text=_LABEL_KEY_NAME.ends_text,
    max_length=LABEL_VALUE_MAX_LENGTH,
)

dns_1035_label_problem: Final = _DNS_1035_LABEL.problem
"""What keeps the text from being the name of a Service."""

dns_1123_label_problem: Final = _DNS_1123_LABEL.problem
"""What keeps the text from being the name of a namespace, container or volume."""

dns_1123_subdomain_problem: Final = _DNS_1123_SUBDOMAIN.problem
"""What keeps the text from being the name of most objects."""


def label_key_problem(text: str) -> str | None:
    """What keeps the text from being a label's key, or any other qualified name: `name` or `example.com/name`."""
    prefix, slash, name = text.rpartition("/")
    if not slash:
        return _LABEL_KEY_NAME.problem(name)
    if "/" in prefix:
        return 'contains more than one "/"'
    if problem := _DNS_1123_SUBDOMAIN.problem(prefix):
        return f'has a prefix (before the "/") that {problem}'
    if problem := _LABEL_KEY_NAME.problem(name):
        return f'has a name (after the "/") that {problem}'
    return None


def is_generated(name: str, prefix: str) -> bool:
    """Whether the API server makes, or has made, the name out of `generateName`; with another name that is unused."""
    base = prefix[:GENERATED_BASE_MAX_LENGTH]
    made = name.startswith(base) and len(name) == len(base) + GENERATED_SUFFIX_LENGTH
    return bool(prefix) and (not name or made)


label_value_problem: Final = _LABEL_VALUE.problem
"""What keeps the text from being a label's value. An empty value is valid."""


# Comparing takes hundreds of microseconds for each name, and a namespace may hold many thousand.
_LOOKED_AT: Final = 2000
_COMPARED: Final = 16
_LENGTHS: Final = 3
_SHORTEST_PART: Final = 3
"""Less than that is in many names by chance, as "d" in "shared-memory"."""


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that is most like `name`, None where none is near. Of very many only some are looked at."""
    if not 0 < len(name) <= DNS_SUBDOMAIN_MAX_LENGTH:
        return None
    near = [
        other
        for other in islice(known, _LOOKED_AT)
        if abs(len(other) - len(name)) <= _LENGTHS or name in other or other in name
    ]
    letters = Counter(name)
    likely = nsmallest(_COMPARED, near, key=lambda other: (letters - Counter(other)).total())
    found = get_close_matches(name, likely, n=1, cutoff=0.6)
    if found or len(name) < _SHORTEST_PART:
        return found[0] if found else None
    return next((other for other in near if name in other), None)
