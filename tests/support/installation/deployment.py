"""The service as in an installation: replicas behind one address, self-managed certificates, a real API server."""

import base64
import sys
from dataclasses import dataclass, field

from cryptography import x509

from tests.controlplane.cluster import Cluster
from tests.controlplane.process import free_port, responds
from tests.support.installation.balancer import Backend, Balancer
from webhook.installation import registration

SPACE = SERVICE = "mpijob-webhook"
SECRET = "mpijob-webhook-ca"
HOST = f"{SERVICE}.{SPACE}.svc"
SELF_MANAGED = ("--ca-secret", SECRET, "--service", SERVICE)
VALIDATING = "validatingwebhookconfiguration"


@dataclass
class Deployment:
    """Replicas behind one address, and the objects of an installation in the cluster."""

    cluster: Cluster
    balancer: Balancer
    names: dict[Backend, str] = field(default_factory=dict)
    under: tuple[str, ...] = ()
    """A command prefix such as `env`. It starts the command of each replica."""

    def install(self) -> None:
        """Create the namespace, the empty Secret, the Service, and the webhook configurations without a CA."""
        metadata = {"namespace": SPACE}
        client = registration.by_service(SPACE, SERVICE, port=self.balancer.port)
        # The API server connects to the balancer, and checks the certificate for the Service's name.
        here = {"type": "ExternalName", "externalName": "localhost"}
        self.cluster.apply(
            [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
                {"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, "name": SECRET}},
                {"apiVersion": "v1", "kind": "Service", "metadata": {**metadata, "name": SERVICE}, "spec": here},
                *registration.configurations(client, labels={}, policy_namespace=SPACE),
            ]
        )

    def start(self, *flags: str) -> Backend:
        """Start one more replica, and wait until the balancer uses it."""
        name = f"replica-{len(self.names)}"
        backend = Backend(free_port(), f"http://127.0.0.1:{free_port()}")
        command = (*self.under, sys.executable, "-W", "error", "-m", "webhook", "serve")
        addresses = ["--listen", f"127.0.0.1:{backend.port}", "--ops-listen", backend.ops_url.removeprefix("http://")]
        # The drain must be close to the default of 5 s. At the end of the drain, a replica closes the connections that
        # were idle during the drain. With a short drain, the API server often uses such a connection at this moment.
        cluster = ["--kubeconfig", str(self.cluster.kubeconfig), "--drain-seconds", "3", "--ssh-keys-ready", "0"]
        self.cluster.launch(
            name, command, [*addresses, *cluster, *flags], ready=lambda _: responds(f"{backend.ops_url}/readyz")
        )
        self.balancer.backends.append(backend)
        self.names[backend] = name
        self.cluster.wait_for("the balancer", lambda: backend.ready)
        return backend

    def stop(self, backend: Backend, *, kill: bool = False) -> None:
        """Stop a replica by SIGTERM. If `kill` is set, stop the replica by SIGKILL."""
        program = self.cluster.programs.pop(self.names[backend])
        program.stop(grace=0 if kill else 20)
        self.balancer.backends.remove(backend)

    def secret(self) -> dict[str, bytes]:
        data = self.cluster.get("secret", SECRET, "-n", SPACE).get("data", {})
        return {name: base64.b64decode(text) for name, text in data.items()}

    def secret_is_there(self) -> bool:
        """Whether the Secret exists."""
        return self.cluster.kubectl("get", "secret", SECRET, "-n", SPACE, check=False).returncode == 0

    def bundle(self, kind: str) -> bytes:
        config = self.cluster.get(kind, registration.NAME)["webhooks"][0]["clientConfig"]
        return base64.b64decode(config.get("caBundle", ""))

    def serials(self) -> set[int]:
        """The serial numbers of the CAs in the caBundle."""
        return {ca.serial_number for ca in x509.load_pem_x509_certificates(self.bundle(VALIDATING))}
