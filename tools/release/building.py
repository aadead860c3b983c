"""Steps that build the bundle."""

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
LOCK: Final = ROOT / "requirements" / "run.txt"
PAGE: Final = ROOT / "webhook" / "parts" / "playground" / "page"
"""The page of `mpijob-webhook playground`. The wheel contains the page only after `make page`."""
PIP: Final = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def locked_wheels(folder: Path) -> None:
    locked = ["--require-hashes", "--only-binary=:all:", "--requirement", str(LOCK)]
    run([*PIP, "download", "--no-deps", "--dest", str(folder), *locked])


def own_wheel(folder: Path) -> None:
    run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def emptied(folder: Path) -> None:
    """Create a folder. Raises SystemExit if it exists and is not empty."""
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty: name another folder, or remove it")
    folder.mkdir(parents=True, exist_ok=True)


def run(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"`{' '.join(command[:6])} ...` failed:\n{done.stdout}")
