"""A control plane with the CRD of MPIJobs, and optionally operator, scheduler and simulated nodes."""

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from tests.controlplane import kueue
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.nodes import stages
from tests.controlplane.process import PATIENCE, free_port, responds, wait_for

OPERATOR = "mpi-operator"  # the name of the operator's namespace, ServiceAccount, role and lease
T = TypeVar("T")


class Cluster(ControlPlane):
    """A control plane with the MPIJob CRD. The start_... methods add the other parts, in any order."""

    def start_operator(self, *flags: str) -> None:
        """Start the real mpi-operator as its ServiceAccount with upstream's role. `flags` are additional flags."""
        user = f"system:serviceaccount:{OPERATOR}:{OPERATOR}"
        self.kubectl("create", "namespace", OPERATOR)
        self.kubectl("create", "serviceaccount", OPERATOR, "-n", OPERATOR)
        self.kubectl("apply", "-f", self.assets.mpi_operator_role)
        self.kubectl("create", "clusterrolebinding", OPERATOR, f"--clusterrole={OPERATOR}", f"--user={user}")
        self.launch(
            "mpi-operator",
            self.assets.mpi_operator,
            [
                "-kubeConfig",
                self.kubeconfig_for(user, ["system:serviceaccounts", f"system:serviceaccounts:{OPERATOR}"]),
                f"-health-port={free_port()}",
                "-kube-api-qps=100",
                "-kube-api-burst=200",
                "-controller-queue-rate-limit=1000",  # the default of 10 requests/s delays jobs
                "-controller-queue-burst=1000",
                *flags,
            ],
            ready=lambda program: "Started workers" in program.log.read_text(),
        )

    def start_scheduler(self) -> None:
        """Start kube-scheduler, which binds pods to the existing Node objects."""
        port = free_port()
        flags = [f"--kubeconfig={self.kubeconfig_for('system:kube-scheduler')}", *self._serving(port)]
        self.launch("kube-scheduler", self.assets.scheduler, flags, ready=self._answers("/healthz", port))

    def start_kwok(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Create `nodes`, with KWOK as their kubelets: pods run at once, and pods of Jobs complete at once.

        A Job's pod with the annotation `nodes.KEEP_RUNNING` runs until it is deleted.
        """
        address = f"127.0.0.1:{free_port()}"
        config = self.dir / "kwok-stages.yaml"
        config.write_text(stages(self.assets.kwok_stages.read_text()))
        self.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": list(nodes)})
        flags = [
            f"--kubeconfig={self.kubeconfig}",
            "--manage-all-nodes=true",
            f"--server-address={address}",
            f"--config={config}",
        ]
        self.launch("kwok", self.assets.kwok, flags, ready=lambda _: responds(f"http://{address}/healthz"))
        ready = lambda: all(has_condition(node, "Ready") for node in self.get("nodes")["items"])  # noqa: E731
        self.wait_for("all nodes to be ready", ready)

    def start_kueue(self, *, settings: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Start the real Kueue as its ServiceAccount, with upstream's roles and webhooks.

        Kueue manages jobs of `kueue.FRAMEWORKS`. As in an installation, the ConfigMap `kueue.CONFIG_MAP` has Kueue's
        configuration. This is upstream's configuration, with the fields in `settings` replaced.
        """
        folder = self.dir / "kueue"
        (certificates := folder / "certificates").mkdir(parents=True)
        port, health_port = free_port(), free_port()
        parts = kueue.installation(
            self.kubectl("kustomize", self.assets.kueue_installation).stdout,
            port=port,
            health_port=health_port,
            certificates=certificates,
            settings=settings,
        )
        (config := folder / "config.yaml").write_text(parts.config)
        self._announce("installing Kueue")
        self.apply(parts.objects)
        crds = ("crd", "--selector=app.kubernetes.io/name=kueue")
        self.kubectl("wait", "--for=condition=Established", *crds, "--timeout=30s")
        user = f"system:serviceaccount:{kueue.NAMESPACE}:{kueue.ACCOUNT}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{kueue.NAMESPACE}"]
        self.launch(
            "kueue",
            self.assets.kueue,
            [f"--config={config}", f"--kubeconfig={self.kubeconfig_for(user, groups)}"],
            ready=lambda _: (
                self._mount_kueue_certificate(certificates) and responds(f"http://127.0.0.1:{health_port}/readyz")
            ),
        )
        self.apply(kueue.trusting(parts.webhooks, base64.b64encode((certificates / "ca.crt").read_bytes()).decode()))
        probe = ("create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.metadata.finalizers}")
        head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "probe"}}
        self.wait_for("Kueue's webhooks", lambda: self.kubectl(*probe, stdin={**head, "spec": {}}).stdout)

    def create_namespace(self, prefix: str = "test", labels: Mapping[str, str] | None = None) -> str:
        """Create a namespace `<prefix>-xxxxx`, and wait until it is ready for pods. Returns its name."""
        metadata = {"generateName": f"{prefix}-", "labels": dict(labels or {})}
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        name = self.kubectl("create", "-f", "-", "-o", "jsonpath={.metadata.name}", stdin=manifest).stdout
        if "kube-controller-manager" in self.programs:
            # The API server rejects pods until the controller has created this ServiceAccount.
            self.wait_for("the default ServiceAccount", lambda: self.get("serviceaccount", "default", "-n", name))
        else:
            self.kubectl("create", "serviceaccount", "default", "-n", name)
        return name

    def wait_for(self, what: str, probe: Callable[[], T | None], *, timeout: float = PATIENCE) -> T:
        """Like process.wait_for. The TimeoutError also has the logs of the cluster's programs that have exited."""

        def ended() -> str:
            return "\n".join(program.tail() for program in self.programs.values() if not program.running)

        return wait_for(what, probe, timeout=timeout, detail=ended)

    def apply(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        """Server-side `kubectl apply`, because client-side apply has a size limit."""
        self.kubectl(
            "apply", "--server-side", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": manifests}
        )

    def _mount_kueue_certificate(self, folder: Path) -> bool:
        """Copy the Secret into `folder`, like the kubelet for a pod. Returns False while the Secret is empty."""
        if (folder / "tls.crt").exists():
            return True
        secret = self.get("secret", kueue.CERTIFICATE, "-n", kueue.NAMESPACE).get("data", {})
        for name in ("ca.crt", "tls.key", "tls.crt") if secret else ():  # tls.crt last: Kueue waits for this file
            (folder / name).write_bytes(base64.b64decode(secret[name]))
        return bool(secret)

    def _start_parts(self) -> None:
        super()._start_parts()
        self._announce("installing the MPIJob CRD")
        self.kubectl("apply", "--server-side", "-f", self.assets.mpijob_crd)  # too large for a client-side apply
        self.wait_for("the MPIJob CRD", lambda: has_condition(self.get("crd", "mpijobs.kubeflow.org"), "Established"))


def has_condition(manifest: Mapping[str, Any], kind: str) -> bool:
    """Whether the status of an object has the condition `kind` with the status True."""
    conditions = manifest.get("status", {}).get("conditions") or ()
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)
