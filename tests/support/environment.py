"""Environments like the image's, with only the locked packages of the service."""

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.build import build_lock, cache_root
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from tests.support.paths import ROOT

LOCK = ROOT / "requirements" / "run.txt"


@dataclass(frozen=True)
class Environment:
    """An interpreter with the service's packages, and its name in tables."""

    name: str
    python: Path


def environment(interpreter: Path, progress: Progress, *more: Path) -> Environment:
    """An environment for this interpreter in the cache of builds. Raises ControlPlaneError if it cannot be created.

    `more` are additional lock files.
    """
    return _made(interpreter, progress, (LOCK, *more))


def apart(progress: Progress, lock: Path) -> Environment:
    """An environment for this Python with only the packages of a lock file, without the service's packages."""
    return _made(Path(sys.base_prefix) / "bin" / "python3", progress, (lock,))


def _made(interpreter: Path, progress: Progress, locks: tuple[Path, ...]) -> Environment:
    version = _run([str(interpreter), "-c", "import platform; print(platform.python_version())"]).strip()
    digest = hashlib.sha256(
        b"".join([f"{interpreter.resolve()} {version}\n".encode(), *(lock.read_bytes() for lock in locks)])
    )
    folder = cache_root() / f"python-{digest.hexdigest()[:16]}"
    found = Environment(f"Python {version}", folder / "bin" / "python")
    if found.python.exists():
        folder.touch()  # for build.remove_unused
        return found
    with build_lock(progress):
        progress.say(f"Making an environment for Python {version} in {folder}, once: half a minute.")
        try:
            _run([str(interpreter), "-m", "venv", str(folder)])
            command = [str(found.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            for lock in locks:
                _run([*command, "--require-hashes", "--requirement", str(lock)])
            _run([str(found.python), "-m", "compileall", "-q", str(folder / "lib")], check=False)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return found


def this(progress: Progress, *more: Path) -> Environment:
    """An environment for this Python."""
    return environment(Path(sys.base_prefix) / "bin" / "python3", progress, *more)


def _run(command: list[str], *, check: bool = True) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ControlPlaneError(f"{command[0]}: {error.strerror}") from None
    if done.returncode and check:
        raise ControlPlaneError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout
