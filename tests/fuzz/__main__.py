"""Look for inputs that break a promise, led by coverage: `python -m tests.fuzz [TARGET ...] --seconds 60`.

What reaches lines that nothing in the corpus reaches is added to it. So is what breaks a promise: then the tests fail.
"""
# ruff: noqa: T201 - a command prints

import argparse
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz import corpus
from tests.fuzz.targets import TARGETS


def main() -> int:
    """A line for each target; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", nargs="*", choices=[*TARGETS, []], help="all without one")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    chosen = parser.parse_args()
    if find_spec("atheris") is None:
        sys.exit(
            "atheris is not installed: `make fuzz` does that (it needs Linux and a Python that it has a wheel for)"
        )
    return max([_fuzz(name, chosen.seconds) for name in chosen.target or TARGETS])


def _fuzz(name: str, seconds: int) -> int:
    """1 if a promise was broken."""
    target = TARGETS[name]
    with TemporaryDirectory() as folder:
        new, faults, words = (Path(folder, part) for part in ("new", "faults", "words"))
        new.mkdir()
        faults.mkdir()
        words.write_text("".join(f"{json.dumps(word)}\n" for word in target.words))
        options = [
            f"-max_total_time={seconds}",
            f"-max_len={corpus.MOST_BYTES}",
            f"-dict={words}",
            f"-artifact_prefix={faults}/",
            "-rss_limit_mb=2048",
            "-timeout=60",
            "-print_final_stats=1",
            str(new),
            str(corpus.FOLDER / name),
        ]
        command = [sys.executable, "-m", "tests.fuzz.guided", name, *options]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        ran = re.search(r"number_of_executed_units:\s+(\d+)", done.stderr)
        kept = corpus.grow(name, target.run, [path.read_bytes() for path in new.iterdir()])
        broken = [corpus.keep(name, path.read_bytes()) for path in faults.iterdir()]
        print(f"{name}: {ran[1] if ran else 'no'} inputs tried, {kept} kept, {len(broken)} broke a promise", flush=True)
        if broken or ran is None:
            print(done.stderr[-3000:], *broken, sep="\n")
        return 1 if broken or ran is None else 0


if __name__ == "__main__":
    sys.exit(main())
