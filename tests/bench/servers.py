"""The measured servers, each pinned to one core, with certificates of a common CA."""

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from certs.authority import Authority
from tests.controlplane.assets import Assets
from tests.controlplane.process import Program, free_port, responds
from tests.support.paths import ROOT

LIFETIME = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Server:
    program: Program
    address: str

    @property
    def peak_memory_mib(self) -> float:
        status = Path(f"/proc/{self.program.pid}/status").read_text()
        kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(kib) / 1024

    @property
    def cpu_seconds(self) -> float:
        """The processor time until now, with a resolution of 10 ms."""
        # The program's name in parentheses may contain spaces. utime and stime are fields 14 and 15.
        fields = Path(f"/proc/{self.program.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Servers:
    """Starts servers in `folder` on `core`, and stops them when the block ends."""

    def __init__(self, folder: Path, *, core: int) -> None:
        self.ca = folder / "ca.pem"
        self._folder = folder
        self._core = core
        self._certificate, self._key = folder / "server.pem", folder / "server.key"
        self._stack = ExitStack()
        authority = Authority("bench", lifetime=LIFETIME)
        pair = authority.issue(["127.0.0.1"], lifetime=LIFETIME)
        self.ca.write_bytes(authority.certificate_pem)
        self._certificate.write_bytes(pair.certificate_pem)
        self._key.write_bytes(pair.key_pem)

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def yardstick(self, assets: Assets) -> Server:
        """The Go server that decodes and allows each review."""
        address = _free_address()
        command = [assets.allow_server, address, self._certificate, self._key]
        return self._start("allow-server", command, address, lambda: _listens(address))

    def pod_security(self, assets: Assets, kubeconfig: Path) -> Server:
        """Kubernetes' Pod Security webhook, which reads namespaces from the cluster."""
        address = _free_address()
        host, port = address.split(":")
        flags = [f"--bind-address={host}", f"--secure-port={port}", f"--kubeconfig={kubeconfig}"]
        flags += [f"--tls-cert-file={self._certificate}", f"--tls-private-key-file={self._key}"]
        command = [assets.pod_security_webhook, *flags, f"--cert-dir={self._folder}"]
        return self._start("pod-security-webhook", command, address, self._responds(f"{address}/readyz"))

    def opa(self, program: Path, policy: Path) -> Server:
        """Open Policy Agent with this policy. It logs only errors."""
        address = _free_address()
        command = [program, "run", "--server", f"--addr=https://{address}", policy, "--log-level=error"]
        command += [f"--tls-cert-file={self._certificate}", f"--tls-private-key-file={self._key}"]
        command += ["--skip-version-check"]
        return self._start("opa", command, address, self._responds(f"{address}/health"))

    def service(self, name: str, *flags: str | Path, tree: Path = ROOT) -> Server:
        """This project's service with the built-in policy and a log file. `flags` are additional flags of `serve`.
        `tree` is the folder with the service's code, which may be of another revision.
        """
        address, ops = _free_address(), _free_address()
        addresses = ["--listen", address, "--ops-listen", ops, "--drain-seconds", "0"]
        addresses += ["--ssh-keys-ready", "0"]  # otherwise the service would generate keys during the measurement
        certificate = ["--tls-cert", str(self._certificate), "--tls-key", str(self._key)]
        command = [sys.executable, "-P", "-m", "webhook", "serve", *addresses, *certificate, *flags]
        ready = lambda: responds(f"http://{ops}/readyz")  # noqa: E731
        return self._start(name, command, address, ready, PYTHONPATH=str(tree))

    def _responds(self, address: str) -> Callable[[], bool]:
        return lambda: responds(f"https://{address}", self.ca.read_bytes())

    def _start(
        self,
        name: str,
        command: Sequence[str | Path],
        address: str,
        ready: Callable[[], bool],
        **environment: str,
    ) -> Server:
        with pinned(self._core):
            program = Program(name, command, log=self._folder / f"{name}.log", env=os.environ | environment)
        self._stack.callback(program.stop, grace=10)
        program.wait_ready(ready)
        return Server(program=program, address=address)


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Programs that are started in this block run only on `core`."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _free_address() -> str:
    return f"127.0.0.1:{free_port()}"


def _listens(address: str) -> bool:
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=1):
        return True
