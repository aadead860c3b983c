"""Builds the image with Debian's buildah, without a container engine, on a base from debootstrap. Needs root."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.controlplane.build import build_lock, cache_root
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from tests.support import debian

SUITE = "trixie"
BASE = f"localhost/debian:{SUITE}-slim"
# Files that Debian's slim images omit, and files that apt would download again.
LEFT_OUT = ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/cache/apt", "var/lib/apt/lists")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
# When the shell ends, all processes of the command end, because the shell is the first process of their PID namespace.
ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc")
# During the build of the image, this file has the certificates of the package registry.
CERTIFICATES = "/run/registry.pem"


@dataclass(frozen=True)
class Image:
    root: Path
    config: Mapping[str, Any]

    def command(self, *arguments: str, entrypoint: Sequence[str] = ()) -> list[str]:
        """The command line that runs the image as its user with a read-only root."""
        root, user = self.root, self.config["User"]
        mounts = f"mount --bind {root} {root}; mount -o remount,bind,ro {root}; mount -t proc proc {root}/proc"
        call = shlex.join([*self.config["Env"], *(entrypoint or self.config["Entrypoint"]), *arguments])
        chroot = f"chroot --userspec={user} --groups= {root} env -i HOME=/ {call}"
        # The shell closes stdin of a background process, so the process reads descriptor 3 instead.
        return [*ALONE, f"exec 3<&0; {mounts}; {chroot} <&3 & wait $!"]

    def run(self, *arguments: str, entrypoint: Sequence[str] = (), stdin: str = "") -> str:
        """The output of the command. Raises CalledProcessError if it fails."""
        command = self.command(*arguments, entrypoint=entrypoint)
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout


def build(context: Path, folder: Path) -> Image:
    """Build the Dockerfile in `context`. All results are below `folder`."""
    program = debian.program("buildah", package="buildah", dependencies=True)

    def buildah(*arguments: str | Path) -> str:
        storage = ["--root", folder / "storage", "--runroot", folder / "run", "--storage-driver", "vfs"]
        command = shlex.join(map(str, [program, *storage, *arguments]))
        return _run([*ALONE, f"{_with_libraries(program)}{command} & wait $!"], env=_environment(program))

    trust, base, pip = folder / "policy.json", folder / "Dockerfile", folder / "pip.conf"
    trust.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
    archive = base_archive()
    base.write_text(f"FROM scratch\nADD {archive.name} /\n")
    pip.write_text("\n".join(["[global]", *_registry()]))
    chroot = ("build", "--isolation", "chroot", "--signature-policy", trust)
    buildah(*chroot, "--tag", BASE, "--file", base, archive.parent)
    volumes = ["--volume", f"{pip}:/etc/pip.conf:ro"]
    if certificates := os.environ.get("PIP_CERT"):
        volumes += ["--volume", f"{certificates}:{CERTIFICATES}:ro"]
    buildah(*chroot, *volumes, "--build-arg", f"BASE={BASE}", "--tag", "image", context)
    container = buildah("from", "--pull-never", "--signature-policy", trust, "localhost/image").strip()
    config = json.loads(buildah("inspect", "--type", "image", "localhost/image"))["OCIv1"]["config"]
    return Image(Path(buildah("mount", container).strip()), config)


def base_archive() -> Path:
    """An archive equal to `debian:SUITE-slim`, which is created once in the user's cache."""
    archive = cache_root().with_name("debian") / f"{SUITE}-slim.tar"
    with build_lock(Progress()):
        if not archive.exists():
            archive.parent.mkdir(parents=True, exist_ok=True)
            program = debian.program("debootstrap", package="debootstrap")  # a script that works without installation
            scripts = f"DEBOOTSTRAP_DIR={debian.unpacked(program) or ''}/usr/share/debootstrap"
            with TemporaryDirectory(dir=archive.parent) as folder:
                root, partial = Path(folder, "root"), Path(folder, archive.name)
                _run(["env", scripts, str(program), "--variant=minbase", SUITE, str(root)])
                for omitted in LEFT_OUT:
                    shutil.rmtree(root / omitted)
                    (root / omitted).mkdir()
                _run(["tar", "--create", "--one-file-system", "--file", str(partial), "--directory", str(root), "."])
                partial.rename(archive)
    return archive


def _with_libraries(program: Path) -> str:
    """A shell command that mounts the libraries of an unpacked program.

    LD_LIBRARY_PATH is not enough, because buildah restarts itself without this variable.
    """
    unpacked = debian.unpacked(program)
    layers = f"lowerdir={unpacked}{LIBRARIES}:{LIBRARIES}"
    return f"mount -t overlay overlay -o {layers} {LIBRARIES}; " if unpacked else ""


def _environment(program: Path) -> dict[str, str]:
    unpacked = debian.unpacked(program)
    path = f"{unpacked}/usr/bin:{unpacked}/usr/sbin:" if unpacked else ""
    return {**os.environ, "PATH": f"{path}{os.environ['PATH']}"}


def _registry() -> Iterator[str]:
    """The lines of pip's configuration for this machine's registry."""
    if "PIP_CERT" in os.environ:
        yield f"cert = {CERTIFICATES}"
    for name in ("index-url", "extra-index-url", "timeout"):
        variable = {"timeout": "PIP_DEFAULT_TIMEOUT"}.get(name, f"PIP_{name.replace('-', '_').upper()}")
        if variable in os.environ:
            yield f"{name} = {os.environ[variable]}"


def _run(command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        output = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise ControlPlaneError(f"{shlex.join(command)}: exit code {done.returncode}\n{output}")
    return done.stdout
