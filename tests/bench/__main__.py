"""Compares the service's performance with servers in Go: `python -m tests.bench`, in about ten minutes."""
# ruff: noqa: T201 - a command prints

import argparse
import sys
from pathlib import Path

from tests.bench import added_latency, report, start, throughput
from tests.bench.machine import this_machine
from tests.bench.measure import positive
from tests.controlplane.process import ends_in_words
from tests.controlplane.progress import Progress

PARTS = ("servers", "latency", "start")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=4, help="length of each measurement (default: 4)")
    parser.add_argument("--rounds", type=positive, default=3, help="number of measurements of each server (default: 3)")
    parser.add_argument("--connections", type=positive, default=50, help="kept-alive connections (default: 50)")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=[*PARTS], help="measure only these parts")
    parser.add_argument(
        "--without", choices=throughput.PEERS, nargs="+", default=[], help="leave out these servers (default: none)"
    )
    parser.add_argument("--base", default="", metavar="REVISION", help="measure the servers of this revision too")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the tables")
    return parser.parse_args(arguments)


def main() -> None:
    """Measure and print. The exit code is 1 if a server gave a wrong answer."""
    arguments = parse()
    progress = Progress()
    tables, problems, failed = [f"{this_machine()}."], list[str](), False
    with ends_in_words():
        if "servers" in arguments.only:
            rows = throughput.measure(arguments, progress)
            tables.append(throughput.tables(rows))
            problems, failed = [*report.problems(rows)], any(row.errors for row in rows)
        if "latency" in arguments.only:
            tables.append(added_latency.measure(arguments, progress))
        if "start" in arguments.only:
            tables.append(start.measure(progress))
    text = "\n\n".join(tables)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(f"{text}\n")
    print(text)
    for problem in problems:
        print(f"\n{problem}", file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()
