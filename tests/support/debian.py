"""Programs of Debian's packages that this machine need not have: unpacked into the user's cache, nothing is installed.

A folder is named after its package's hash, which apt has checked. What is there is used without asking any archive.
"""

import fcntl
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.controlplane.build import cache_root
from tests.support.samples import FULL

ONCE = ("--quiet", "-o", "Acquire::Retries=0")


class NoPackage(Exception):
    """It cannot be had here, and why."""


def program(name: str, *, package: str) -> Path:
    """The path of a program. Without it a test is skipped with the reason, and fails where CI=true is set."""
    try:
        return find(name, package)
    except NoPackage as error:
        reason = f"{name} is needed, of Debian's package {package}: {error}"
        if FULL:
            pytest.fail(reason)
        pytest.skip(reason)


def find(name: str, package: str) -> Path:
    """The program as it is installed, in the cache, or fetched now; NoPackage where there is no archive to be had."""
    if found := shutil.which(name):
        return Path(found)
    cache = cache_root().with_name("debian")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{package}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = sorted(cache.glob(f"{package}-*/usr/bin/{name}"), key=lambda path: path.stat().st_mtime)
        return kept[-1] if kept else _fetched(cache, package) / "usr" / "bin" / name


def _fetched(cache: Path, package: str) -> Path:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NoPackage("this machine has no apt-get: install Prometheus, or put it into PATH")
    with TemporaryDirectory(dir=cache) as name:
        folder = Path(name)
        options, digest = _listed(folder, package)
        _run(["apt-get", *options, *ONCE, "download", package], folder)
        (archive,) = folder.glob("*.deb")
        _run(["dpkg-deb", "--extract", str(archive), "unpacked"], folder)
        complete = cache / f"{package}-{digest[:16]}"
        folder.joinpath("unpacked").rename(complete)
    return complete


def _listed(folder: Path, package: str) -> tuple[Sequence[str], str]:
    """The package's hash, by this machine's lists or by lists of our own, and the options that lead apt-get to them."""
    own = []
    for key, value in (("Dir::State::lists", "lists"), ("Dir::Cache", "cache")):
        folder.joinpath(value, "partial").mkdir(parents=True)
        own += ["-o", f"{key}={folder / value}"]
    problem = ""
    for options in ([], own):
        try:
            if options:
                _run(["apt-get", *options, *ONCE, "update"], folder)
            found = re.search(r"SHA256:(\w+)", _run(["apt-get", *options, "--print-uris", "download", package], folder))
        except NoPackage as error:
            problem = str(error)
            continue
        if found:
            return options, found[1]
    raise NoPackage(problem or f"apt-get knows of no package {package}")


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NoPackage(f"{' '.join(command[:1])}: {said[-1] if said else f'exit code {done.returncode}'}")
    return done.stdout
