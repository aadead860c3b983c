"""What the service costs, beside others and by itself: `python -m tests.bench`, in about a quarter of an hour."""
# ruff: noqa: T201 - a command prints

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.bench import added_latency, curves, documented, key_pool, start, throughput
from tests.bench.cluster_size import SIZES
from tests.bench.machine import this_machine
from tests.bench.measure import positive
from tests.bench.section import Section
from tests.controlplane.process import ends_in_words
from tests.controlplane.progress import Progress

PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Progress], Section]]] = {
    "servers": lambda arguments, progress: throughput.measure(arguments, progress).section(),
    "curves": curves.measure,
    "latency": added_latency.measure,
    "start": start.measure,
    "keys": key_pool.measure,
}


def written(sections: Mapping[str, Section]) -> bytes:
    """The figures as JSON, from which `tests.bench.documented` writes docs/benchmarks.md."""
    found: dict[str, Any] = {"machine": this_machine().summary, "parts": sections}
    return msgspec.json.format(msgspec.json.encode(found)) + b"\n"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=4, help="length of each measurement (default: 4)")
    parser.add_argument("--rounds", type=positive, default=3, help="how often each is repeated (default: 3)")
    parser.add_argument("--connections", type=positive, default=50, help="kept-alive connections (default: 50)")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=[*PARTS], help="measure these parts alone")
    parser.add_argument(
        "--without", choices=throughput.PEERS, nargs="+", default=[], help="leave out these servers (default: none)"
    )
    parser.add_argument("--base", default="", metavar="REVISION", help="measure the servers of this revision too")
    parser.add_argument("--python", type=Path, metavar="PATH", help="measure our servers on this Python too")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=SIZES, metavar="JOBS", help="of the clusters (default: %(default)s)"
    )
    parser.add_argument("--markdown", action="store_true", help="print the tables as docs/benchmarks.md has them")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write all tables and samples as JSON")
    return parser.parse_args(arguments)


def main() -> None:
    """Measure and print; exit code 1 if a server gave a wrong answer."""
    arguments = parse()
    progress = Progress()
    sections: dict[str, Section] = {}
    with ends_in_words():
        for name in arguments.only:
            sections[name] = PARTS[name](arguments, progress)
            if arguments.output:  # what is measured is kept, whatever becomes of the rest
                arguments.output.parent.mkdir(parents=True, exist_ok=True)
                arguments.output.write_bytes(written(sections))
    for section in sections.values():
        print(section.text(markdown=arguments.markdown), end="\n\n")
    print(f"{this_machine().summary}.")
    if arguments.output:
        print(f"`python -m tests.bench.documented {arguments.output}` writes this into {documented.PAGE.name}.")
    for problem in (problem for section in sections.values() for problem in section.problems):
        print(f"\n{problem}", file=sys.stderr)
    sys.exit(any(section.failed for section in sections.values()))


if __name__ == "__main__":
    main()
