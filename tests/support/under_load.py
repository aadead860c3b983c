"""pytest again and again beside busy loops, a line for each run: `python -m tests.support.under_load --runs 10 PATHS`.

For tests that fail on a busy machine alone: on a quiet one they would be found by whoever has no time for it. Runs
beside each other (`--at-once`) do not meet: each process has ports of its own.
"""
# ruff: noqa: T201 - a command prints

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

LOOPS = 2


@contextmanager
def busy(loops: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that never wait, until the block ends."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def run(tests: Sequence[str], log: Path) -> tuple[bool, str]:
    """Whether all passed, and one line about it."""
    began = time.monotonic()
    with log.open("wb") as output:
        # A folder of its own for each: of the usual one pytest keeps the last three.
        command = [sys.executable, "-m", "pytest", "-q", f"--basetemp={log.with_suffix('')}", *tests]
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    text = log.read_text(errors="replace")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    last = text.strip().rpartition("\n")[2].strip("= ")
    ended = "passed" if code == 0 else f"exit code {code}"
    line = f"{ended} after {time.monotonic() - began:.0f} s, load {os.getloadavg()[1]:.1f}: {last}"
    if code == 0:
        shutil.rmtree(log.with_suffix(""), ignore_errors=True)
        log.unlink()
    return code == 0, " ".join([line, *failed])


def main(arguments: list[str] | None = None) -> int:
    """1 if any run failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=1, help="how many runs go on beside each other")
    parser.add_argument("--loops", type=int, default=LOOPS, help="how many processes never wait")
    parser.add_argument("tests", nargs="+", help="what pytest gets")
    chosen = parser.parse_args(arguments)
    folder = Path(mkdtemp(prefix="under-load-"))
    passed = 0
    with busy(chosen.loops), ThreadPoolExecutor(chosen.at_once) as pool:
        runs = {pool.submit(run, chosen.tests, folder / f"{n}.log"): n for n in range(1, chosen.runs + 1)}
        for ended in as_completed(runs):
            good, line = ended.result()
            passed += good
            print(f"run {runs[ended]} of {chosen.runs}: {line}", flush=True)
    print(f"{passed} of {chosen.runs} runs passed; what those printed and logged that did not is in {folder}")
    return 0 if passed == chosen.runs else 1


if __name__ == "__main__":
    sys.exit(main())
