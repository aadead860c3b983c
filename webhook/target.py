"""What the request line of a review asks for: which hook, and how long the API server waits for the answer.

The API server adds `?timeout=5s` to the hook's URL, in Go's notation (https://pkg.go.dev/time#ParseDuration).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import parse_qs

Hook = Literal["mutate", "validate", "ssh-keys", "policy"]
HOOKS: dict[str, Hook] = {
    "/mutate-mpijob": "mutate",
    "/validate-mpijob": "validate",
    "/mutate-ssh-secret": "ssh-keys",
    "/validate-policy": "policy",
}

# Longer than any that Go writes, and short enough for the pattern's backtracking.
MAX_LENGTH = 32
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Target:
    """`hook` is None for any other path; `timeout` (seconds) is None when there is none that can be read."""

    hook: Hook | None
    timeout: float | None


# The API server sends the same few request lines over and over.
@lru_cache(maxsize=64)
def parse(raw: str) -> Target:
    """The target of a request line as it was sent, such as `/mutate-mpijob?timeout=5s`."""
    path, _, query = raw.partition("?")
    values = parse_qs(query).get("timeout", [])
    return Target(hook=HOOKS.get(path), timeout=_duration(values[0]) if values else None)


def _duration(text: str) -> float | None:
    """`text` in seconds; None for anything that is not a duration above zero."""
    if len(text) > MAX_LENGTH or not _WHOLE.fullmatch(text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text)) or None
