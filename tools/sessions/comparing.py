"""Compares outputs of commands. Parts that differ in each run are ignored."""

import re
from typing import Final

_VOLATILE: Final = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z", "TIME"),
    (r"\d{4}-\d\d-\d\d", "DAY"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
    (r"\b[0-9a-f]{16,64}\b", "HASH"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"(resourceVersion: )\"\d+\"", r"\1VERSION"),
    (r"(ssh-rsa|ecdsa-sha2-nistp521) \S+", r"\1 KEY"),
    (r"\b(mpijob-webhook)-[0-9a-f]{8,10}(-[0-9a-z]{5})?\b", r"\1-POD"),
    (r"Waiting for deployment \"[\w-]+\" rollout to finish: .*\n", ""),
    (r"(?m)^([a-z-]+: )\d+$", r"\1COUNT"),  # objects in a snapshot
    (r"(?m)^status:\n(?: .*\n)*", ""),  # a new job may have no status yet
    (r"\(line \d+\)", "(line N)"),
    (r" +(?=\n|$)", ""),
)
_LEFT_OUT: Final = re.compile(r"^ *\.\.\.\n", re.MULTILINE)


def normal(text: str) -> str:
    for pattern, instead in _VOLATILE:
        text = re.sub(pattern, instead, text)
    return text


def same(shown: str, real: str) -> bool:
    """True if the page shows the output. A line `...` in the page matches any number of lines."""
    pieces = [re.escape(normal(piece)) for piece in _LEFT_OUT.split(shown)]
    return re.fullmatch(r"(?:.*\n)*?".join(pieces), normal(real)) is not None
