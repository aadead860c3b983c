"""pytest again and again beside busy loops, a line for each run: `python -m tests.support.under_load --runs 10 PATHS`.

For tests that fail on a busy machine alone: on a quiet one they would be found by whoever has no time for it.
"""
# ruff: noqa: T201 - a command prints

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

LOOPS = 2


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that never wait, until the block ends."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def run(tests: Sequence[str], log: Path) -> tuple[bool, str]:
    """Whether all passed, and one line about it."""
    began = time.monotonic()
    with log.open("wb") as output:
        command = [sys.executable, "-m", "pytest", "-q", *tests]
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    text = log.read_text(errors="replace")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    last = text.strip().rpartition("\n")[2].strip("= ")
    ended = "passed" if code == 0 else f"exit code {code}"
    line = f"{ended} after {time.monotonic() - began:.0f} s, load {os.getloadavg()[1]:.1f}: {last}"
    return code == 0, " ".join([line, *failed])


def main(arguments: list[str] | None = None) -> int:
    """1 if any run failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("tests", nargs="+", help="what pytest gets")
    chosen = parser.parse_args(arguments)
    folder = Path(mkdtemp(prefix="under-load-"))
    passed = 0
    with busy(LOOPS):
        for number in range(1, chosen.runs + 1):
            good, line = run(chosen.tests, folder / f"{number}.log")
            passed += good
            print(f"run {number} of {chosen.runs}: {line}", flush=True)
    print(f"{passed} of {chosen.runs} runs passed; their output is in {folder}")
    return 0 if passed == chosen.runs else 1


if __name__ == "__main__":
    sys.exit(main())
