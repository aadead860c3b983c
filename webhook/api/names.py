"""The syntax of Kubernetes names and labels.

Each `*_problem` returns the fault of a text, or None. A fault is a verb phrase on one line, such as `contains "T";
allowed are ...`. It quotes at most one character of the text. Sources:
https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/util/validation/validation.go
https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/api/validate/content/kube.go
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from heapq import nsmallest
from itertools import islice
from typing import Final

from webhook.api.limits import MAX_NAMES_COMPARED, MAX_NAMES_LOOKED_AT

DNS_LABEL_MAX_LENGTH: Final = 63
DNS_SUBDOMAIN_MAX_LENGTH: Final = 253
LABEL_NAME_MAX_LENGTH: Final = 63
PORT_NAME_MAX_LENGTH: Final = 15
LABEL_VALUE_MAX_LENGTH: Final = 63

GENERATED_SUFFIX_LENGTH: Final = 5
"""Random characters that the API server appends to `metadata.generateName`.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/storage/names/generate.go"""

GENERATED_BASE_MAX_LENGTH: Final = DNS_LABEL_MAX_LENGTH - GENERATED_SUFFIX_LENGTH
"""The API server silently cuts a longer `metadata.generateName` to this length before it appends the suffix."""


def _syntax(
    pattern: str, allowed: str, *, allowed_text: str, ends_text: str, max_length: int
) -> Callable[[str], str | None]:
    # The jobs of a cluster repeat most names, and only texts of at most `max_length` characters are cached.
    is_good = lru_cache(maxsize=1024)(re.compile(pattern).fullmatch)

    is_allowed = re.compile(allowed).match

    def problem(text: str) -> str | None:
        if len(text) <= max_length and is_good(text):
            return None
        if not text:
            return "is empty"
        if len(text) > max_length:
            return f"has {len(text)} characters, at most {max_length} are allowed"
        good = is_allowed(text)
        if good and good.end() < len(text):
            return f"contains {_show(text[good.end()])}; allowed are {allowed_text}"
        return f"must start {ends_text}"

    return problem


def _show(char: str) -> str:
    return f'"{char}"' if " " <= char <= "~" else f"the character U+{ord(char):04X}"


_DNS_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*"
_LABEL_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"

_LOWER_CASE: Final = 'lower case letters, digits and "-"'
_LETTERS: Final = 'letters, digits, "-", "_" and "."'
_LABEL_ENDS: Final = "and end with a letter or a digit"

dns_1035_label_problem: Final = _syntax(
    r"[a-z](?:[-a-z0-9]*[a-z0-9])?",
    r"[-a-z0-9]*",
    allowed_text=_LOWER_CASE,
    ends_text="with a lower case letter and end with a lower case letter or a digit",
    max_length=DNS_LABEL_MAX_LENGTH,
)
"""The syntax of the name of a Service."""

dns_1123_label_problem: Final = _syntax(
    _DNS_LABEL,
    r"[-a-z0-9]*",
    allowed_text=_LOWER_CASE,
    ends_text="and end with a lower case letter or a digit",
    max_length=DNS_LABEL_MAX_LENGTH,
)
"""The syntax of the name of a namespace, container or volume."""

dns_1123_subdomain_problem: Final = _syntax(
    _DNS_SUBDOMAIN,
    r"[-a-z0-9.]*",
    allowed_text='lower case letters, digits, "-" and "."',
    ends_text='and end with a lower case letter or a digit, and so must every part between two "."',
    max_length=DNS_SUBDOMAIN_MAX_LENGTH,
)
"""The syntax of the names of most objects."""

label_value_problem: Final = _syntax(
    rf"(?:{_LABEL_NAME})?",
    r"[-A-Za-z0-9_.]*",
    allowed_text=_LETTERS,
    ends_text=_LABEL_ENDS,
    max_length=LABEL_VALUE_MAX_LENGTH,
)
"""An empty value is valid."""

_label_name_problem: Final = _syntax(
    _LABEL_NAME,
    r"[-A-Za-z0-9_.]*",
    allowed_text=_LETTERS,
    ends_text=_LABEL_ENDS,
    max_length=LABEL_NAME_MAX_LENGTH,
)

_is_label_key: Final = lru_cache(maxsize=1024)(re.compile(rf"(?:{_DNS_SUBDOMAIN}/)?{_LABEL_NAME}").fullmatch)


def label_key_problem(text: str) -> str | None:
    """The syntax of label keys and other qualified names: `name` or `example.com/name`."""
    if len(text) <= LABEL_NAME_MAX_LENGTH and _is_label_key(text):
        return None  # the whole is short, so no part is too long
    prefix, slash, name = text.rpartition("/")
    if not slash:
        return _label_name_problem(name)
    if "/" in prefix:
        return 'contains more than one "/"'
    if problem := dns_1123_subdomain_problem(prefix):
        return f'has a prefix (before the "/") that {problem}'
    if problem := _label_name_problem(name):
        return f'has a name (after the "/") that {problem}'
    return None


def corrected(text: str, problem: Callable[[str], str | None], room: int = DNS_SUBDOMAIN_MAX_LENGTH) -> str | None:
    """The text with "-" in place of invalid characters, cut to `room` characters; None if it is still invalid."""
    lower = text.lower()
    spellings = ((r"[^\w./-]+", text), (r"[^\w.-]+", text), (r"[^a-z0-9.-]+", lower), (r"[^a-z0-9-]+", lower))
    for other, written in spellings:
        valid = re.sub(other, "-", written[: 2 * DNS_SUBDOMAIN_MAX_LENGTH], flags=re.ASCII).strip("-._/")
        if problem is dns_1035_label_problem and valid[:1].isdigit():
            valid = f"job-{valid}"
        for longest in (room, min(room, DNS_LABEL_MAX_LENGTH), min(room, PORT_NAME_MAX_LENGTH)):
            cut = valid[:longest].strip("-._/")
            if cut and problem(cut) is None:
                return cut
    return None


def advice(text: str, problem: Callable[[str], str | None]) -> str:
    meant = corrected(text, problem)
    return f"Write {meant}." if meant else "Use lower case letters, digits and -."


# The operators of selectors and tolerations, by the symbols of other languages.
_OPERATORS: Final = {"==": {"In", "Equal"}, "=": {"In", "Equal"}, "!=": {"NotIn"}, ">": {"Gt"}, "<": {"Lt"}}


def choose(value: str, choices: Iterable[str]) -> str:
    if operator := _OPERATORS.get(value, set()).intersection(choices):
        return f"Write {operator.pop()}."
    plain = {re.sub("[^a-z0-9]", "", choice.lower()): choice for choice in choices}
    written = re.sub("[^a-z0-9]", "", value[:DNS_LABEL_MAX_LENGTH].lower())
    near = get_close_matches(written, plain, n=1, cutoff=0.8) or [text for text in plain if text in written]
    return f"Write {plain[near[0]]}." if near else f"Use one of {', '.join(choices)}."


def is_generated(name: str, prefix: str) -> bool:
    """Whether the API server will generate the name from `generateName`, or has generated it.

    The API server ignores `generateName` if the user sets a name.
    """
    base = prefix[:GENERATED_BASE_MAX_LENGTH]
    made = name.startswith(base) and len(name) == len(base) + GENERATED_SUFFIX_LENGTH
    return bool(prefix) and (not name or made)


_LENGTHS: Final = 3
_SHORTEST_PART: Final = 3
"""Minimum length of a name that is searched inside other names. "d" is in "shared-memory" by chance."""


def closest_name(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most similar to `name`; None if no candidate is similar."""
    if not 0 < len(name) <= DNS_SUBDOMAIN_MAX_LENGTH:
        return None
    near = [
        other
        for other in islice(candidates, MAX_NAMES_LOOKED_AT)
        if abs(len(other) - len(name)) <= _LENGTHS or name in other or other in name
    ]
    letters = Counter(name)
    likely = nsmallest(MAX_NAMES_COMPARED, near, key=lambda other: (letters - Counter(other)).total())
    matches = get_close_matches(name, likely, n=1, cutoff=0.6)
    if matches or len(name) < _SHORTEST_PART:
        return matches[0] if matches else None
    return next((other for other in near if name in other), None)
