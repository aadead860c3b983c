"""The measured servers, each pinned to one core, with certificates of a common CA."""

import os
import socket
import sys
import time
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
    """A running server. `start_seconds` is the time from its start until it was ready."""

    program: Program
    address: str
    start_seconds: float

    @property
    def peak_memory_mib(self) -> float:
        """The peak resident memory until now."""
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
        host, port = "127.0.0.1", free_port()
        command: list[str | Path] = [assets.allow_server, f"{host}:{port}", self._certificate, self._key]
        return self._start("allow-server", command, (host, port), lambda: _listens(host, port))

    def pod_security(self, assets: Assets, kubeconfig: Path) -> Server:
        """Kubernetes' Pod Security webhook, which reads namespaces from the cluster."""
        host, port = "127.0.0.1", free_port()
        command: list[str | Path] = [assets.pod_security_webhook, f"--bind-address={host}", f"--secure-port={port}"]
        command += [f"--tls-cert-file={self._certificate}", f"--tls-private-key-file={self._key}"]
        command += [f"--kubeconfig={kubeconfig}", "--cert-dir", self._folder]
        ready = lambda: responds(f"https://{host}:{port}/readyz", self.ca.read_bytes())  # noqa: E731
        return self._start("pod-security-webhook", command, (host, port), ready)

    def opa(self, program: Path, policy: Path) -> Server:
        """Open Policy Agent with this policy. It logs only errors, like this service."""
        host, port = "127.0.0.1", free_port()
        command: list[str | Path] = [program, "run", "--server", "--addr", f"https://{host}:{port}", policy]
        command += ["--tls-cert-file", self._certificate, "--tls-private-key-file", self._key]
        command += ["--log-level", "error", "--skip-version-check"]
        ready = lambda: responds(f"https://{host}:{port}/health", self.ca.read_bytes())  # noqa: E731
        return self._start("opa", command, (host, port), ready)

    def service(self, name: str, *flags: str | Path, tree: Path = ROOT) -> Server:
        """This project's service with the built-in policy and a log file. `flags` are additional flags of `serve`.
        `tree` is the folder with its code, which may be another revision.
        """
        host, port, ops = "127.0.0.1", free_port(), f"127.0.0.1:{free_port()}"
        addresses = ["--listen", f"{host}:{port}", "--ops-listen", ops, "--drain-seconds", "0"]
        addresses += ["--ssh-keys-ready", "0"]  # otherwise the service would generate keys during the measurement
        certificate = ["--tls-cert", str(self._certificate), "--tls-key", str(self._key)]
        command: list[str | Path] = [sys.executable, "-P", "-m", "webhook", "serve", *addresses, *certificate, *flags]
        ready = lambda: responds(f"http://{ops}/readyz")  # noqa: E731
        return self._start(name, command, (host, port), ready, PYTHONPATH=str(tree))

    def _start(
        self,
        name: str,
        command: Sequence[str | Path],
        address: tuple[str, int],
        ready: Callable[[], bool],
        **environment: str,
    ) -> Server:
        started = time.monotonic()
        with pinned(self._core):
            program = Program(name, command, log=self._folder / f"{name}.log", env=os.environ | environment)
        self._stack.callback(program.stop, grace=10)
        program.wait_ready(ready)
        host, port = address
        return Server(program=program, address=f"{host}:{port}", start_seconds=time.monotonic() - started)


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Programs that are started in this block run only on `core`."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _listens(host: str, port: int) -> bool:
    with socket.create_connection((host, port), timeout=1):
        return True
