"""Writes a terminal session as a recording: https://docs.asciinema.org/manual/asciicast/v2/.

The times are computed from the text, so the same session always gives the same file.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

WIDTH, HEIGHT = 120, 40
_KEY: Final = 0.03
_PAUSE: Final = 0.6
_LINE: Final = 0.05
_LONGEST: Final = 3.0
Event = tuple[float, str, str]


def as_cast(title: str, text: str) -> str:
    header = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": title}
    lines = [json.dumps(header), *(json.dumps(event, ensure_ascii=False) for event in _events(text))]
    return "\n".join(lines) + "\n"


def _events(text: str) -> Iterator[Event]:
    clock = 0.0
    for part in filter(None, re.split(r"(?m)^(?=[$#] )", text)):
        line, _, output = part.partition("\n")
        for letter in line:
            clock += _KEY
            yield round(clock, 2), "o", letter
        clock += _PAUSE
        yield round(clock, 2), "o", "\r\n" + output.replace("\n", "\r\n")
        clock += min(_LINE * output.count("\n"), _LONGEST)
