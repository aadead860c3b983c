"""`kubectl mpijob` for krew: an archive for each platform, and the manifest that names them, by `make krew`.

An archive has the packages for some versions of Python, unpacked, and a script that picks those of the user's: nothing
is fetched, built or installed on his machine.
"""
# ruff: noqa: T201 - a command prints

import argparse
import gzip
import io
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from release import building
from release.kubectl_mpijob import ANY
from webhook import __version__
from webhook.api import yaml

MINORS: Final = ("3.11", "3.12", "3.13", "3.14")
ABIS: Final = ("none", "abi3")
"""Of wheels that are for several versions of Python."""
VERSION: Final = f"v{__version__}"
NAME: Final = "mpijob"
PROGRAM: Final = "kubectl-mpijob"
CAVEATS: Final = f"""\
Needs Python {{python}} on the PATH.
On Linux it needs glibc 2.28 or newer.
It judges jobs as the service of the same version does.
The shell completes it after:
  ln -s {PROGRAM} ~/.krew/bin/kubectl_complete-{NAME}
"""
DESCRIPTION: Final = """\
Tells before an MPIJob of Kubeflow is submitted what the cluster will say of it
and what it will put into it (check, diff), and afterwards why it does not run
(why). Explains every rule, and tests and replays policies.
"""


@dataclass(frozen=True)
class Platform:
    """What krew calls a machine, and the platforms of the wheels that run on it."""

    os: str
    arch: str
    tags: tuple[str, ...]

    @property
    def file(self) -> str:
        """The name of its archive."""
        return f"{PROGRAM}-{VERSION}-{self.os}-{self.arch}.tar.gz"


def _glibc(machine: str) -> tuple[str, ...]:
    """Up to 2.28, by PEP 600 and by the name of before: https://peps.python.org/pep-0600/."""
    return *(f"manylinux_2_{minor}_{machine}" for minor in range(17, 29)), f"manylinux2014_{machine}"


# Those for which all that is locked has wheels.
PLATFORMS: Final = (
    Platform("linux", "amd64", _glibc("x86_64")),
    Platform("linux", "arm64", _glibc("aarch64")),
    Platform("darwin", "arm64", ("macosx_15_0_arm64",)),
)


def make(folder: Path, site: str, platforms: Sequence[Platform], minors: Sequence[str]) -> None:
    """Fill the folder, which must be new or empty; SystemExit with what went wrong in words."""
    building.emptied(folder)
    with tempfile.TemporaryDirectory() as scratch:
        building.own_wheel(Path(scratch, "own"))
        own = [(ANY, path) for path in Path(scratch, "own").iterdir()]
        for platform in platforms:
            print(f"Fetching the wheels for {platform.os} on {platform.arch} ...", flush=True)
            wheels = _wheels(Path(scratch, platform.file), platform, minors)
            (folder / platform.file).write_bytes(archive([*wheels, *own]))
    sums = {platform: building.digest(folder / platform.file) for platform in platforms}
    (folder / f"{NAME}.yaml").write_text(yaml.dump(manifest(site, sums, minors)), encoding="utf-8")


def manifest(site: str, sums: Mapping[Platform, str], minors: Sequence[str]) -> Mapping[str, Any]:
    """What krew reads: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/."""
    platforms = [
        {
            "selector": {"matchLabels": {"os": platform.os, "arch": platform.arch}},
            "uri": f"{site}/{platform.file}",
            "sha256": found,
            "files": [{"from": "*", "to": "."}],
            "bin": PROGRAM,
        }
        for platform, found in sums.items()
    ]
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": VERSION,
            "homepage": site,
            "shortDescription": "Check and explain Kubeflow MPIJobs",
            "description": DESCRIPTION,
            "caveats": CAVEATS.format(python=" or ".join(minors)),
            "platforms": platforms,
        },
    }


def _wheels(folder: Path, platform: Platform, minors: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Each with the version of Python that it is for: one that all of them take goes there once."""
    tags = [f"--platform={tag}" for tag in platform.tags]
    for minor in minors:
        building.locked_wheels(folder / minor, "--implementation=cp", f"--python-version={minor}", *tags)
    found = {minor: {path.name for path in (folder / minor).iterdir()} for minor in minors}
    shared = {name for name in set.intersection(*found.values()) if name.split("-")[-2] in ABIS}
    yield from ((ANY, folder / minors[0] / name) for name in sorted(shared))
    for minor, names in found.items():
        yield from ((minor, folder / minor / name) for name in sorted(names - shared))


def archive(wheels: Sequence[tuple[str, Path]]) -> bytes:
    """What is unpacked on the machine of the user, each wheel for its version of Python: the same bytes each time."""
    written = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=written, mode="wb", compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as files,
    ):
        _add(files, PROGRAM, (building.ROOT / "release" / "kubectl_mpijob.py").read_bytes(), executable=True)
        _add(files, "LICENSE", (building.ROOT / "LICENSE").read_bytes())
        for minor, wheel in wheels:
            for name, content in _contents(wheel):
                _add(files, f"packages/{minor}/{name}", content)
    return written.getvalue()


def _contents(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Its files as they are installed."""
    with zipfile.ZipFile(wheel) as unpacked:
        for name in sorted(unpacked.namelist()):
            if ".data/" in name:
                sys.exit(f"{wheel.name} has {name}, which does not go beside the others: install it here too")
            if not name.endswith("/"):
                yield name, unpacked.read(name)


def _add(files: tarfile.TarFile, name: str, content: bytes, *, executable: bool = False) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755 if executable else 0o644
    files.addfile(entry, io.BytesIO(content))


def main() -> None:
    """The command line."""
    names = {f"{platform.os}/{platform.arch}": platform for platform in PLATFORMS}
    parser = argparse.ArgumentParser(prog="python -m release.krew", description=__doc__)
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument(
        "--site", default="https://downloads.example.com/mpijob-webhook", help="where it will be served"
    )
    parser.add_argument("--platform", choices=names, nargs="+", default=[*names], help="leave out the others")
    parser.add_argument("--python", choices=MINORS, nargs="+", default=MINORS, help="leave out the others: 20 MB each")
    arguments = parser.parse_args()
    platforms = [names[each] for each in arguments.platform]
    make(arguments.folder, arguments.site, platforms, arguments.python)
    print(f"Made: {arguments.folder}. docs/command.md says how it is installed.")


if __name__ == "__main__":
    main()
