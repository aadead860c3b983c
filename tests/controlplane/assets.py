"""The programs and upstream files of a test cluster."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from tests.controlplane.build import ensure_built
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress

Command = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Assets:
    """Paths of files, and commands to which callers add flags."""

    etcd: Command
    apiserver: Command
    controller_manager: Command
    scheduler: Command
    mpi_operator: Command
    kwok: Command
    kueue: Command
    kubectl: Path
    operator_verdict: Path
    """Reads jobs, and writes the errors of the operator's validation, see operator-verdict/main.go."""
    allow_server: Path
    """The benchmarks' yardstick, see allow-server/main.go."""
    load: Path
    """The benchmarks' load generator, see load/main.go."""
    pod_security_webhook: Path
    """Kubernetes' Pod Security webhook, for comparison in benchmarks."""
    mpijob_crd: Path
    mpi_operator_role: Path
    upstream_examples: dict[str, Path]
    """Files by name, such as `pi` or `pi-intel`."""
    kwok_stages: Path
    kueue_installation: Path
    """The folder of upstream's default installation, for `kubectl kustomize`."""


def assets(*, progress: Progress | None = None) -> Assets:
    """The project's build, which is made now if it is not cached.

    Programs in KUBEBUILDER_ASSETS replace programs of the build. KUBEBUILDER_ASSETS is a folder of envtest
    (https://book.kubebuilder.io/reference/envtest). It must have etcd, kube-apiserver and kubectl. Its
    kube-controller-manager and kube-scheduler are used if they exist.
    """
    folder = ensure_built(progress=progress)
    controlplane = str(folder / "bin" / "controlplane")
    own = Assets(
        etcd=(controlplane, "etcd"),
        apiserver=(controlplane, "kube-apiserver"),
        controller_manager=(controlplane, "kube-controller-manager"),
        scheduler=(controlplane, "kube-scheduler"),
        mpi_operator=(str(folder / "bin" / "mpi-operator"),),
        kwok=(str(folder / "bin" / "kwok"),),
        kueue=(str(folder / "bin" / "kueue"),),
        kubectl=folder / "bin" / "kubectl",
        operator_verdict=folder / "bin" / "operator-verdict",
        allow_server=folder / "bin" / "allow-server",
        load=folder / "bin" / "load",
        pod_security_webhook=folder / "bin" / "pod-security-webhook",
        mpijob_crd=folder / "mpi-operator" / "kubeflow.org_mpijobs.yaml",
        mpi_operator_role=folder / "mpi-operator" / "cluster-role.yaml",
        upstream_examples={path.stem: path for path in sorted((folder / "examples").iterdir())},
        kwok_stages=folder / "kwok-stages.yaml",
        kueue_installation=folder / "kueue" / "config" / "default",
    )
    envtest = os.environ.get("KUBEBUILDER_ASSETS")
    return with_envtest(own, Path(envtest)) if envtest else own


def with_envtest(own: Assets, folder: Path) -> Assets:
    """`own` with the programs in `folder`. Raises ControlPlaneError if a required program is missing."""
    missing = [name for name in ("etcd", "kube-apiserver", "kubectl") if not os.access(folder / name, os.X_OK)]
    if missing:
        raise ControlPlaneError(
            f"KUBEBUILDER_ASSETS={folder} has no program {', '.join(missing)}: unset it to use the project's own "
            "build, or point it at the folder that `setup-envtest use -p path` prints."
        )

    def found(name: str, otherwise: Command) -> Command:
        return (str(folder / name),) if os.access(folder / name, os.X_OK) else otherwise

    return replace(
        own,
        etcd=(str(folder / "etcd"),),
        apiserver=(str(folder / "kube-apiserver"),),
        kubectl=folder / "kubectl",
        controller_manager=found("kube-controller-manager", own.controller_manager),
        scheduler=found("kube-scheduler", own.scheduler),
    )
