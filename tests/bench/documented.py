"""Writes the tables of docs/benchmarks.md out of the figures of a run: `python -m tests.bench.documented FILE`.

Each table stands between a comment that names its part and its number there, and a comment that ends it. Those of a
part that was not measured stay as they are.
"""
# ruff: noqa: T201 - a command prints

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.bench import report
from tests.support.paths import ROOT

PAGE: Final = ROOT / "docs" / "benchmarks.md"
PLACE: Final = re.compile(
    r"(<!-- measured: (?P<part>\w+) (?P<number>\d+) -->\n)(?P<table>.*?)(<!-- end -->)", re.DOTALL
)


def filled(page: str, found: Mapping[str, Any]) -> str:
    """The page with the tables of these figures."""

    def table(match: re.Match[str]) -> str:
        tables = found["parts"].get(match["part"], {}).get("tables", [])
        number = int(match["number"])
        if number >= len(tables):
            return match[0]
        lines, left = tables[number]["lines"], tables[number]["left"]
        machine = "" if number else f"\n{found['machine']}.\n"  # once for a part
        return f"{match[1]}\n{report.markdown(lines, left=left)}\n{machine}\n{match[5]}"

    return PLACE.sub(table, page)


def main() -> None:
    """Write the page."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.bench.documented FILE")
    try:
        found = json.loads(Path(sys.argv[1]).read_text())
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error.strerror}; `make bench` writes it")
    PAGE.write_text(filled(PAGE.read_text(), found))
    print(f"Written: {PAGE}. What the text says of the figures is yours to read again.")


if __name__ == "__main__":
    main()
