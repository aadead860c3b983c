"""A Dockerfile's steps without a container engine: in a root folder of their own, made of Debian's packages.

The base image `debian:SUITE-slim` is what debootstrap's `minbase` makes, less documentation. It is made once, into the
user's cache. All of this needs root, as debootstrap does.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.controlplane.build import build_lock, cache_root
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from tests.support.image.dockerfile import Stage

# How this machine reaches its package registry.
PASSED_ON = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "http_proxy", "https_proxy", "no_proxy")
CERTIFICATES = "PIP_CERT"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def base(suite: str) -> Path:
    """An archive of the base image for a suite of Debian's."""
    archive = cache_root().with_name("debian") / f"{suite}.tar"
    with build_lock(Progress()):
        if not archive.exists():
            archive.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=archive.parent) as folder:
                root = Path(folder, "root")
                with _debootstrap(Path(folder)) as command:
                    _run([*command, "--variant=minbase", suite, str(root)])
                partial = Path(folder, archive.name)
                _run(["tar", "--create", "--one-file-system", "--file", str(partial), "--directory", str(root), "."])
                partial.rename(archive)
    return archive


@contextmanager
def _debootstrap(folder: Path) -> Iterator[list[str]]:
    """The command: a script, which need not be installed to be used."""
    if found := shutil.which("debootstrap"):
        yield [found]
        return
    _run(["apt-get", "update"])
    _run(["apt-get", "download", "debootstrap"], cwd=folder)
    (package,) = folder.glob("*.deb")
    _run(["dpkg-deb", "--extract", str(package), str(folder / "tool")])
    yield ["env", f"DEBOOTSTRAP_DIR={folder}/tool/usr/share/debootstrap", f"{folder}/tool/usr/sbin/debootstrap"]


def build(stages: Sequence[Stage], context: Path, folder: Path) -> Path:
    """Carry out every stage below `folder`; gives the root folder of the last one."""
    roots: dict[str, Path] = {}
    root = folder
    for number, stage in enumerate(stages):
        root = roots[stage.name] = folder / str(number)
        root.mkdir()
        suite = stage.base.rpartition(":")[2].removesuffix("-slim")
        _run(["tar", "--extract", "--file", str(base(suite)), "--directory", str(root)])
        shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
        copies = iter(stage.copies)
        workdir = "/"
        for keyword, text in stage.instructions:
            if keyword == "WORKDIR":
                workdir = text
                (root / text.lstrip("/")).mkdir(parents=True)
            elif keyword == "COPY":
                origin, sources, destination = next(copies)
                _copy(roots[origin] if origin else context, sources, root / Path(workdir, destination).relative_to("/"))
            elif keyword == "RUN":
                _run(inside(root, ["/bin/sh", "-c", f"cd {workdir} && {text}"], network=True))
    return root


def _copy(origin: Path, sources: Sequence[str], destination: Path) -> None:
    """COPY: folders give their content, what Python compiled here stays behind."""
    for source in (origin / source.lstrip("/") for source in sources):
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__") if origin.joinpath("Dockerfile").exists() else None
            shutil.copytree(source, destination, symlinks=True, ignore=ignored, dirs_exist_ok=True)
        else:
            destination.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, destination)


def inside(
    root: Path,
    command: Sequence[str],
    *,
    user: str = "0:0",
    environment: dict[str, str] | None = None,
    network: bool = False,
    read_only: bool = False,
) -> list[str]:
    """The command line that runs `command` with `root` as its root and its processes as the only ones.

    All of them end when it ends. With `network` it is told how to reach the registries.
    """
    variables = {"PATH": PATH, "HOME": "/", **(environment or {})}
    mounts = [f"mount --bind {root} {root}", f"mount -t proc proc {root}/proc"]
    if network:
        variables |= {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        if CERTIFICATES in os.environ:
            # Over a file that is there in any case, and for these processes alone.
            variables[CERTIFICATES] = "/etc/issue"
            mounts.append(f"mount --bind {os.environ[CERTIFICATES]} {root}/etc/issue")
    if read_only:
        mounts.insert(1, f"mount -o remount,bind,ro {root}")
    given = shlex.join(f"{name}={value}" for name, value in variables.items())
    call = f"chroot --userspec={user} --groups= {root} env -i {given} {shlex.join(command)}"
    # The shell stays, as the first process of its namespace: when it is killed, so is everything.
    return [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-euc",
        f"{'; '.join(mounts)}; {call} & wait $!",
    ]


def _run(command: Sequence[str], **options: Path) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise ControlPlaneError(f"{shlex.join(command)}: exit code {done.returncode}\n{said}")
