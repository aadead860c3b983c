"""Compares the replies of another revision with the replies of this tree: `python -m tests.bench.replies REVISION`."""
# ruff: noqa: T201 - a command prints

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.replies import record
from tests.bench.replies.cases import cases, clusters, policies
from tests.bench.revision import tree
from tests.support.paths import ROOT

SHOWN = 5
CHANGED_ON_PURPOSE = ("[job-size]", "too large to judge")
"""A reply with one of these texts is not compared: such a rejection depends only on the size of the job."""


def main() -> int:
    """Returns 0 if all replies are the same, otherwise 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", help="a git revision of this repository, or a folder with a tree")
    parser.add_argument("--cases", type=int, default=12_000, help="number of reviews (default: %(default)s)")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        work = Path(folder)
        given = prepared(options.cases)
        (work / "given.json").write_text(json.dumps(given))
        before = answers(tree(options.revision, work), work / "given.json", work / "before")
        after = answers(ROOT, work / "given.json", work / "after")
    pairs = list(zip(before, after, strict=True))
    left_out = {
        number for number, pair in enumerate(pairs) if any(text in "".join(pair) for text in CHANGED_ON_PURPOSE)
    }
    differing = [number for number, pair in enumerate(pairs) if pair[0] != pair[1] and number not in left_out]
    for number in differing[:SHOWN]:
        print(f"case {number}: {json.dumps(given['cases'][number])[:600]}")
        print(f"  before: {before[number]}", f"  after:  {after[number]}", sep="\n")
    print(f"{len(pairs) - len(left_out)} replies compared with {options.revision}, {len(differing)} differ")
    print(f"{len(left_out)} replies left out because they contain one of: {', '.join(CHANGED_ON_PURPOSE)}")
    return 1 if differing else 0


def prepared(count: int) -> dict[str, Any]:
    """The input of `record` as JSON."""
    all_policies = policies()
    facts = clusters()
    return {
        "policies": all_policies,
        "clusters": facts,
        "cases": list(cases(count, policies=len(all_policies), clusters=len(facts))),
    }


def answers(folder: Path, given: Path, target: Path) -> list[str]:
    script = Path(record.__file__)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-P", str(script), str(given), str(target)]
    subprocess.run(command, env=environment, cwd=folder, check=True)
    return target.read_text().splitlines()


if __name__ == "__main__":
    sys.exit(main())
