"""A real sshd and ssh, with the files of a Secret at /root/.ssh, as the kubelet mounts them.

Both run in mount namespaces, so that the machine's /root, /run and accounts are not visible and not changed.
"""

import os
import pwd
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.process import Program, free_port

SSHD_USER = "sshd"
# The settings of mpi-operator's images. StrictModes would reject a Secret's folder, because all users may write to it.
CONFIG = """
HostKey /root/.ssh/id_rsa
AuthorizedKeysFile .ssh/authorized_keys
AuthenticationMethods publickey
PidFile none
StrictModes no
UsePAM no
"""
MOUNTS = """
mount -t tmpfs tmpfs /root
mkdir /root/.ssh
mount --bind "$1" /root/.ssh
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount --bind "$2" /etc/passwd
shift 2
exec "$@"
"""


@dataclass(frozen=True)
class Sshd:
    """The program sshd, and the folder of its libraries."""

    program: Path
    libraries: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], **({"LD_LIBRARY_PATH": str(self.libraries)} if self.libraries else {})}


def find_sshd(folder: Path) -> Sshd:
    """The installed sshd, or Debian's sshd, unpacked into `folder`."""
    if path := shutil.which("sshd", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"])):
        return Sshd(Path(path))
    if not shutil.which("apt-get"):
        raise RuntimeError("there is no sshd: install OpenSSH's server")
    for attempt in range(2):
        command = ["apt-get", "-qq", "download", "openssh-server", "libwrap0"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode == 0:
            break
        if attempt:
            raise RuntimeError(f"there is no sshd, and it cannot be downloaded: {done.stderr}")
        subprocess.run(["apt-get", "-qq", "update"], capture_output=True, timeout=120, check=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True, timeout=60)
    (library,) = folder.rglob("libwrap.so.0")
    return Sshd(folder / "usr/sbin/sshd", library.parent)


def mounted(volume: Mapping[str, Any], secret: Mapping[str, Any], folder: Path) -> Path:
    """Write the Secret's files into `folder` as the kubelet does: with modes and two links to each file."""
    content = folder / "..2026_01_31"
    content.mkdir(parents=True)
    folder.chmod(0o1777)
    (folder / "..data").symlink_to(content.name)
    for item in volume["secret"]["items"]:
        file = content / item["path"]
        file.write_bytes(b64decode(secret["data"][item["key"]]))
        file.chmod(item.get("mode", volume["secret"]["defaultMode"]))
        (folder / item["path"]).symlink_to(f"..data/{item['path']}")
    return folder


def accounts() -> str:
    """This machine's /etc/passwd with the account that sshd needs."""
    existing = [":".join(map(str, entry)) for entry in pwd.getpwall() if entry.pw_name != SSHD_USER]
    return "\n".join([*existing, f"{SSHD_USER}:x:65533:65534::/run/sshd:/usr/sbin/nologin", ""])


def in_pod(volume: Path, command: Sequence[str | Path]) -> list[str | Path]:
    """The command line that runs `command` with `volume` at /root/.ssh and the account that sshd needs."""
    passwd = volume.with_name(f"{volume.name}-passwd")
    passwd.write_text(accounts())
    unshare = shutil.which("unshare")
    assert unshare, "util-linux is part of every Linux"
    namespace = [unshare, "--mount", "--propagation", "private", "sh", "-euc", MOUNTS, "in-pod"]
    return [*namespace, volume, passwd, *command]


@contextmanager
def serving(sshd: Sshd, volume: Path) -> Iterator[int]:
    """Runs sshd as in a worker, on a loopback port. Yields the port."""
    port = free_port()
    config = volume.with_name(f"{volume.name}-config")
    config.write_text(f"Port {port}\nListenAddress 127.0.0.1{CONFIG}")
    command = in_pod(volume, [sshd.program, "-D", "-e", "-f", config])
    log = volume.with_name(f"{volume.name}-log")
    program = Program("sshd", command, log=log, env=sshd.environment)
    try:
        program.wait_ready(lambda: "Server listening" in log.read_text())
        yield port
    finally:
        sys.stderr.write(program.tail())
        program.stop()


def login(volume: Path, port: int) -> subprocess.CompletedProcess[str]:
    """Run a command over ssh as mpirun does in a launcher: without a terminal."""
    options = ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "ConnectTimeout=20"]
    flags = [flag for option in options for flag in ("-o", option)]
    command = in_pod(volume, ["ssh", "-F", "none", *flags, "-p", str(port), "root@127.0.0.1", "echo logged in"])
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
