"""etcd, kube-apiserver and kube-controller-manager on loopback ports."""

import atexit
import itertools
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from tests.controlplane.assets import Assets, Command, assets
from tests.controlplane.credentials import Authority, new_key
from tests.controlplane.process import ControlPlaneError, Program, free_port, responds, sigterm_interrupts
from tests.controlplane.reading import Reader

# Logs only requests for MPIJobs, with the annotations of webhooks.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "resources": [{"group": "kubeflow.org"}]}, {"level": "None"}],
}
# GOGC, for less garbage collection: the API server needs a quarter less processor time, and 110 MB more memory.
GARBAGE = "400"


class ControlPlane:
    """A control plane, for use with `with` or start() and stop(). It stops at the latest when this process ends.

    `apiserver_flags` override default flags of the API server. Logs are deleted at the end unless `log_dir` is set.
    `announce` is called with a line for each started part. All programs end with the thread that started them.
    """

    assets: Assets
    dir: Path
    log_dir: Path
    kubeconfig: Path

    def __init__(
        self,
        *,
        controller_manager: bool = True,
        apiserver_flags: Sequence[str] = (),
        log_dir: Path | None = None,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.programs: dict[str, Program] = {}
        self._with_controllers = controller_manager
        self._apiserver_flags = apiserver_flags
        self._keep_logs = log_dir
        self._announce = announce
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start all parts. If one fails, stops all and raises ControlPlaneError with the last lines of its log."""
        self.assets = assets()
        with ExitStack() as cleanup:
            folder = TemporaryDirectory(prefix="mpijob-controlplane-", ignore_cleanup_errors=True)
            self.dir = Path(cleanup.enter_context(folder))
            self.log_dir = self._keep_logs or self.dir
            cleanup.enter_context(sigterm_interrupts())
            cleanup.callback(self._stop_programs)
            atexit.register(self.stop)
            self._start_parts()
            self._cleanup = cleanup.pop_all()

    def stop(self) -> None:
        """Stop all programs, the newest first, and delete the data. May be called twice."""
        atexit.unregister(self.stop)
        self._cleanup.close()

    def start_apiserver(self) -> None:
        """Start the API server. After stop_apiserver(), it has the same port and data as before."""
        self.launch("kube-apiserver", self.assets.apiserver, self._apiserver_command(), ready=self._answers("/readyz"))

    def stop_apiserver(self) -> None:
        """Stop the API server by SIGTERM, as in an upgrade."""
        self.programs.pop("kube-apiserver").stop(grace=20)

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        stem = re.sub(r"[^\w.-]", "_", user)
        paths = (self.dir / f"{stem}{number or ''}.kubeconfig" for number in itertools.count())
        path = next(path for path in paths if not path.exists())
        return self._authority.write_kubeconfig(path, server=self.url, user=user, groups=groups)

    def kubectl(
        self,
        *args: str | Path,
        stdin: str | Mapping[str, Any] | None = None,
        check: bool = True,
        kubeconfig: Path | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator or with `kubeconfig`. A mapping as `stdin` is converted to JSON.

        With `check`, raises ControlPlaneError with kubectl's output if the exit code is not 0.
        """
        text = stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
        env = self._environment | {"KUBECONFIG": str(kubeconfig or self.kubeconfig), "KUBERC": "off"}
        command = [self.assets.kubectl, *args]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, env=env, timeout=timeout, check=False
        )
        if check and done.returncode:
            raise ControlPlaneError(
                f"kubectl {' '.join(map(str, args))}: exit code {done.returncode}\n{done.stderr.strip()}"
            )
        return done

    def attempt(self, *args: str | Path, stdin: str | Mapping[str, Any] | None = None) -> str:
        """Run kubectl as the administrator, and return the output of both streams. Errors are not raised."""
        done = self.kubectl(*args, *(() if stdin is None else ("-f", "-")), stdin=stdin, check=False)
        return done.stdout + done.stderr

    def get(self, *args: str | Path) -> Any:
        """`kubectl get ARGS -o json`, parsed."""
        return self._reader.get(*args)

    def audit_events(self, name: str) -> list[dict[str, Any]]:
        """The API server's audit events for MPIJobs called `name`, oldest first."""
        lines = (self.dir / "audit.log").read_text().splitlines()
        events: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [event for event in events if event["objectRef"].get("name") == name]

    def launch(
        self, name: str, command: Command, flags: Sequence[str | Path], *, ready: Callable[[Program], object]
    ) -> Program:
        """Start a program with a unique name, and wait until `ready` returns a true value."""
        self._announce(f"starting {name}")
        if name in self.programs:
            raise ControlPlaneError(f"{name} runs already")
        log = self.log_dir / f"{name}.log"
        program = self.programs[name] = Program(name, [*command, *flags], log=log, env=self._environment)
        program.wait_ready(lambda: ready(program))
        return program

    @property
    def _environment(self) -> dict[str, str]:
        """The programs' environment, without KUBECONFIG, which would override a flag. HOME is temporary."""
        foreign = ("KUBECONFIG", "KUBEFLOW_NAMESPACE")
        users = {name: value for name, value in os.environ.items() if name not in foreign}
        return {**users, "HOME": str(self.dir), "GOGC": GARBAGE}

    def _start_parts(self) -> None:
        self._write_identities()
        self._start_etcd()
        self.start_apiserver()
        if self._with_controllers:
            self._start_controller_manager()

    def _stop_programs(self) -> None:
        while self.programs:
            self.programs.popitem()[1].stop()

    def _write_identities(self) -> None:
        self._authority = Authority()
        self._port = free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        certificate, key = self._authority.issue("kube-apiserver", loopback=True)
        files = {
            "ca.crt": self._authority.pem,
            "server.crt": certificate,
            "server.key": key,
            "accounts.key": new_key()[1],
        }
        for name, content in files.items():
            (self.dir / name).write_bytes(content)
        (self.dir / "audit-policy.yaml").write_text(json.dumps(AUDIT_POLICY))
        self.kubeconfig = self.kubeconfig_for("admin", ["system:masters"])
        self._reader = Reader(self.kubeconfig)

    def _answers(self, path: str, port: int | None = None) -> Callable[[Program], bool]:
        return lambda _: responds(f"https://127.0.0.1:{port or self._port}{path}", self._authority.pem)

    def _start_etcd(self) -> None:
        self._etcd = f"http://127.0.0.1:{free_port()}"
        flags = [
            "--name=test",
            f"--data-dir={self.dir / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={self._etcd}",
            f"--advertise-client-urls={self._etcd}",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--log-level=warn",
        ]
        self.launch("etcd", self.assets.etcd, flags, ready=lambda _: responds(f"{self._etcd}/readyz"))

    def _apiserver_command(self) -> list[str]:
        return [
            f"--etcd-servers={self._etcd}",
            "--bind-address=127.0.0.1",
            # without this flag, the API server needs a default route, which a machine without a network does not have
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={self.dir / 'server.crt'}",
            f"--tls-private-key-file={self.dir / 'server.key'}",
            f"--client-ca-file={self.dir / 'ca.crt'}",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={self.dir / 'accounts.key'}",
            f"--service-account-signing-key-file={self.dir / 'accounts.key'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",
            "--shutdown-watch-termination-grace-period=1s",  # open watches would delay stop_apiserver() by a minute
            f"--audit-policy-file={self.dir / 'audit-policy.yaml'}",
            f"--audit-log-path={self.dir / 'audit.log'}",
            *self._apiserver_flags,
        ]

    def _serving(self, port: int) -> list[str]:
        """Flags that kube-controller-manager and kube-scheduler share."""
        return [
            "--leader-elect=false",
            "--kube-api-qps=200",  # the defaults are for a shared API server, and would delay tests by seconds
            "--kube-api-burst=400",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={self.dir / 'server.crt'}",
            f"--tls-private-key-file={self.dir / 'server.key'}",
            "--authentication-skip-lookup",  # the cluster has no front proxy
        ]

    def _start_controller_manager(self) -> None:
        port = free_port()
        flags = [
            f"--kubeconfig={self.kubeconfig_for('system:kube-controller-manager')}",
            *self._serving(port),
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self.dir / 'accounts.key'}",
            f"--root-ca-file={self.dir / 'ca.crt'}",
        ]
        self.launch(
            "kube-controller-manager", self.assets.controller_manager, flags, ready=self._answers("/healthz", port)
        )
