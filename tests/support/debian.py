"""Programs of Debian packages. If a program is not installed, its package is unpacked into the user's cache.

The folder in the cache is named after the versions of packages. An existing folder is used without network requests.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import pytest

from tests.controlplane.build import cache_root
from tests.support.rare import FULL

ONCE = ("--quiet", "-o", "Acquire::Retries=0")
LOCK_NOTHING = ("-o", "Debug::NoLocking=true")
ARCHIVE = re.compile(r"^'\S+' ([^\s_]+)_([^\s_]+)_\S+\.deb ", re.MULTILINE)


class NoPackage(Exception):
    """The package is not available on this machine. The message has the reason."""


def program(name: str, *, package: str, dependencies: bool = False) -> Path:
    """The path of a program. If the program is not available, the test is skipped. With CI=true, the test fails.

    With `dependencies`, missing dependencies of the package are unpacked too.
    """
    try:
        return find(name, package, dependencies=dependencies)
    except NoPackage as error:
        reason = f"{name} of the Debian package {package} is needed: {error}"
        if FULL:
            pytest.fail(reason)
        pytest.skip(reason)


def find(name: str, package: str, *, dependencies: bool = False) -> Path:
    """The program: installed, cached or downloaded now. Raises NoPackage if no archive can be reached."""
    if path := shutil.which(name):
        return Path(path)
    cache = cache_root().with_name("debian")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{package}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = sorted(cache.glob(f"{package}-*/**/*bin/{name}"), key=lambda path: path.stat().st_mtime)
        kept = kept or [*_fetched(cache, package, dependencies).glob(f"**/*bin/{name}")]
    if not kept:
        raise NoPackage(f"there is no {name} in the package")
    return kept[-1]


def unpacked(program: Path) -> Path | None:
    """The root folder of an unpacked program; None for an installed program."""
    cache = cache_root().with_name("debian")
    return cache / program.relative_to(cache).parts[0] if program.is_relative_to(cache) else None


def environment(program: Path) -> dict[str, str]:
    """The environment of this process, with the folders of libraries that were unpacked with the program."""
    variables = dict(os.environ)
    if root := unpacked(program):
        libraries = sorted({str(each.parent) for each in root.glob("usr/lib/*-linux-gnu/**/*.so*")})
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    return variables


def _fetched(cache: Path, package: str, dependencies: bool) -> Path:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NoPackage(f"this machine has no apt-get: install {package}, or put it into PATH")
    with TemporaryDirectory(dir=cache) as name:
        folder = Path(name)
        arguments = ["install", "--no-install-recommends", package] if dependencies else ["download", package]
        options, packages = _listed(folder, arguments)
        versions = [f"{name}={unquote(version)}" for name, version in packages]
        _run(["apt-get", *options, *ONCE, "download", *versions], folder)
        for archive in folder.glob("*.deb"):
            _run(["dpkg-deb", "--extract", str(archive), "unpacked"], folder)
        digest = hashlib.sha256("\n".join(versions).encode()).hexdigest()
        complete = cache / f"{package}-{digest[:16]}"
        folder.joinpath("unpacked").rename(complete)
    return complete


def _listed(folder: Path, arguments: Sequence[str]) -> tuple[Sequence[str], list[tuple[str, str]]]:
    """apt's options, and (name, version) of the packages. The options are empty or select package lists in `folder`."""
    own = []
    for key, value in (("Dir::State::lists", "lists"), ("Dir::Cache", "cache")):
        folder.joinpath(value, "partial").mkdir(parents=True)
        own += ["-o", f"{key}={folder / value}"]
    problem = ""
    for options in ([], own):
        try:
            if options:
                _run(["apt-get", *options, *ONCE, "update"], folder)
            listed = _run(["apt-get", *options, "--quiet", "--print-uris", *LOCK_NOTHING, *arguments], folder)
        except NoPackage as error:
            problem = str(error)
            continue
        if packages := ARCHIVE.findall(listed):
            return options, sorted(packages)
    raise NoPackage(problem or f"apt-get finds nothing for {' '.join(arguments)}")


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        output = (done.stderr or done.stdout).strip().splitlines()
        raise NoPackage(f"{' '.join(command[:1])}: {output[-1] if output else f'exit code {done.returncode}'}")
    return done.stdout
