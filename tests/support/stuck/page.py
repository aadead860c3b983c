"""The table in docs/why.md: the cause for each job, and the first line of `why`."""

import re
from collections.abc import Mapping

from tests.support.paths import ROOT
from tests.support.stuck.cases import Case

PAGE = ROOT / "docs" / "why.md"
START, END = "<!-- Written by `make why`: changes down to the next mark are lost. -->", "<!-- . -->"
# Parts of lines that differ in each run.
_RANDOM = (
    (re.compile(r"(-launcher)-[a-z0-9]{5}\b"), r"\1-x7k2p"),
    (re.compile(r"since (\d+m)?(\d+s)?(?=$)"), "since 3m"),
    (re.compile(r"number \d of 3"), "number 1 of 3"),
    (re.compile(r"created \w+ ago"), "created 3m ago"),
    (re.compile(r"not ended after \w+"), "not ended after 5m"),
)


def table(lines: Mapping[Case, str]) -> str:
    """The table with a row for each case, in order."""
    rows = ["| What is wrong | The first line |", "| --- | --- |"]
    rows += [f"| {case.why} | {_cell(line)} |" for case, line in lines.items()]
    return "\n".join(rows)


def shown(page: str) -> str:
    return page.partition(START)[2].partition(END)[0].strip()


def with_table(page: str, rows: str) -> str:
    before, _, rest = page.partition(START)
    return f"{before}{START}\n\n{rows}\n\n{END}{rest.partition(END)[2]}"


def _cell(line: str) -> str:
    for pattern, same in _RANDOM:
        line = pattern.sub(same, line)
    text = line.replace("|", "\\|")
    return f"`{text}`"
