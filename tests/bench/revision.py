"""Other revisions of this repository, for measurements and comparisons."""

import subprocess
from pathlib import Path

from tests.support.paths import ROOT


def tree(revision: str, work: Path) -> Path:
    if Path(revision).is_dir():
        return Path(revision)
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout
    target = work / "tree"
    target.mkdir()
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive, check=True)
    return target
