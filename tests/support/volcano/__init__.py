"""Volcano in tests: its CRDs and its admission, and the PodGroup CRD of the coscheduling plugin."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.controlplane.build import ensure_built
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import free_port
from tests.controlplane.recipe import Data, Recipe, Target
from tests.support.installation import hooks

GROUP: Final = "scheduling.volcano.sh"
CRDS: Final = "crds"
VERBS: Final = {"mutate": "Mutating", "validate": "Validating"}
RECIPE: Final = Recipe(
    what="Volcano's admission, for comparison with this service",
    takes="3 to 8 minutes",
    targets=(Target(name="webhook-manager", package="volcano.sh/volcano/cmd/webhook-manager"),),
    data=(
        Data(module="volcano.sh/volcano", globs=("config/crd/volcano/bases/scheduling.volcano.sh_*.yaml",), into=CRDS),
        # The version is the same as in the operator's go.mod.
        Data(
            module="sigs.k8s.io/scheduler-plugins",
            globs=("config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",),
            into="coscheduling",
            folder="../../controlplane",
        ),
    ),
    root=Path(__file__).parent,
)


def install_crds(cluster: Cluster) -> None:
    """Install the CRDs of Volcano's PodGroups and Queues, and of the coscheduling plugin's PodGroups."""
    built = ensure_built(RECIPE)
    files = sorted([*(built / CRDS).iterdir(), *(built / "coscheduling").iterdir()])
    cluster.kubectl("apply", "--server-side", *(f"--filename={path}" for path in files))
    names = (f"queues.{GROUP}", f"podgroups.{GROUP}", "podgroups.scheduling.x-k8s.io")
    cluster.kubectl("wait", "crd", *names, "--for=condition=Established", "--timeout=60s")


def add_queue(cluster: Cluster, queue: Mapping[str, Any]) -> None:
    """Create the Queue with the status that Volcano's controller would write."""
    cluster.apply([queue])
    status = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": queue["status"]}))
    cluster.kubectl("patch", f"queue.{GROUP}", queue["metadata"]["name"], *status)


def start_admission(cluster: Cluster) -> None:
    """Start Volcano's admission for PodGroups, and register it as Volcano's chart does."""
    port = free_port()
    url, resource = f"https://127.0.0.1:{port}", (GROUP, "v1beta1", "podgroups")
    names = ((verb, kind, f"volcano-admission-service-podgroups-{verb}") for verb, kind in VERBS.items())
    cluster.apply(
        [hooks.configuration(kind, name, {"url": f"{url}/podgroups/{verb}"}, resource) for verb, kind, name in names]
    )
    certificates = {"tls-cert-file": "server.crt", "tls-private-key-file": "server.key", "ca-cert-file": "ca.crt"}
    cluster.launch(
        "volcano-admission",
        (str(ensure_built(RECIPE) / "bin" / "webhook-manager"),),
        [
            f"--kubeconfig={cluster.kubeconfig}",
            *(f"--{flag}={cluster.dir / file}" for flag, file in certificates.items()),
            "--listen-address=127.0.0.1",
            f"--port={port}",
            f"--webhook-url={url}",
            f"--enabled-admission={','.join(f'/podgroups/{verb}' for verb in VERBS)}",
        ],
        ready=lambda _: admits(cluster, "") is None,
    )


def admits(cluster: Cluster, queue: str) -> str | None:
    """The message with which a PodGroup for this queue is rejected, or None if the PodGroup is admitted."""
    spec = {"minMember": 1, **({"queue": queue} if queue else {})}
    group = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": spec,
    }
    done = cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=group, check=False)
    return done.stderr if done.returncode else None
