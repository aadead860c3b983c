"""Python environments like the image's environment, with only the locked packages of the service."""

import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tests.controlplane.build import build_lock, cache_root
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from tests.support.paths import ROOT

LOCK = ROOT / "requirements" / "run.txt"


def this(progress: Progress, *more: Path) -> Path:
    """An interpreter with the packages of the service and of the lock files `more`. ControlPlaneError on failure."""
    return apart(progress, LOCK, *more)


def apart(progress: Progress, *locks: Path) -> Path:
    """An interpreter of this Python version with only the packages of these lock files. It is in the build cache."""
    base = Path(sys.base_prefix) / "bin" / "python3"
    version = platform.python_version()
    digest = hashlib.sha256(f"{base.resolve()} {version}\n".encode() + b"".join(lock.read_bytes() for lock in locks))
    folder = cache_root() / f"python-{digest.hexdigest()[:16]}"
    python, complete = folder / "bin" / "python", folder / "complete"
    if complete.exists():
        folder.touch()  # for build.remove_unused
        return python
    with build_lock(progress):
        if complete.exists():  # another process has made it in the meantime
            return python
        progress.say(f"Making an environment for Python {version} in {folder}, once: half a minute.")
        try:
            _run(base, "-m", "venv", folder)
            for lock in locks:
                _run(
                    python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r", lock
                )
            subprocess.run([python, "-m", "compileall", "-q", folder / "lib"], capture_output=True, check=False)
            complete.touch()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return python


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ControlPlaneError(f"`{' '.join(map(str, command))}` failed:\n{done.stderr.strip()[-2000:]}")
