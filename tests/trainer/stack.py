"""Runs Kubeflow Trainer and JobSet with their webhooks in a test cluster.

Both programs are unchanged. This module does the work of the kubelet and cert-manager: it provides the certificates and
sets the caBundles.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane.build import ensure_built
from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.credentials import Authority
from tests.controlplane.process import free_port, responds
from tests.trainer.recipe import TRAINER

CRDS: Final = tuple(
    [f"{plural}.trainer.kubeflow.org" for plural in ("clustertrainingruntimes", "trainingruntimes", "trainjobs")]
    + ["jobsets.jobset.x-k8s.io"]
)
# JobSet's hooks for pods implement exclusive placement, which these tests do not use.
_NOT_NEEDED: Final = ("mpod.kb.io", "vpod.kb.io")
_CONFIGURATIONS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Stack:
    runtimes: dict[str, Manifest]
    """The runtimes of Trainer's installation, by name."""


@contextmanager
def running(cluster: Cluster) -> Iterator[Stack]:
    """Runs both controllers until the block ends. The CRDs stay installed."""
    built = ensure_built(TRAINER)
    cluster.kubectl("apply", "--server-side", "-f", built / "crds")
    established = lambda: all(has_condition(cluster.get("crd", name), "Established") for name in CRDS)  # noqa: E731
    cluster.wait_for("the CRDs of Trainer", established)
    authority = Authority()
    for name in ("jobset", "trainer"):
        _start(cluster, name, built, authority)
    try:
        yield Stack({each["metadata"]["name"]: each for each in map(_read, sorted((built / "runtimes").iterdir()))})
    finally:
        for name in ("trainer", "jobset"):
            cluster.kubectl("delete", ",".join(_CONFIGURATIONS), name)
            cluster.programs.pop(name).stop(grace=20)


def _start(cluster: Cluster, name: str, built: Path, authority: Authority) -> None:
    folder = cluster.dir / name
    # controller-runtime reads certificates from a folder in TMPDIR.
    certificates = folder / "k8s-webhook-server" / "serving-certs"
    certificates.mkdir(parents=True)
    certificate, key = authority.issue(name, loopback=True)
    (certificates / "tls.crt").write_bytes(certificate)
    (certificates / "tls.key").write_bytes(key)
    port, health = free_port(), free_port()
    management = "certManagement" if name == "trainer" else "internalCertManagement"
    config = {
        "apiVersion": f"config.{'trainer.kubeflow.org' if name == 'trainer' else 'jobset.x-k8s.io'}/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port},
        "leaderElection": {"leaderElect": False},
        management: {"enable": False},
        **({"featureGates": {"TrainJobStatus": False}} if name == "trainer" else {}),
    }
    (folder / "config.json").write_text(json.dumps(config))
    cluster.launch(
        name,
        ("/usr/bin/env", f"TMPDIR={folder}", str(built / "bin" / name)),
        [f"--config={folder / 'config.json'}", f"--kubeconfig={cluster.kubeconfig}"],
        ready=lambda _: responds(f"http://127.0.0.1:{health}/readyz"),
    )
    bundle = base64.b64encode(authority.pem).decode()
    for configuration in yaml.safe_load_all((built / f"{name}-webhooks.yaml").read_text()):
        cluster.apply([_here(configuration, name, f"https://127.0.0.1:{port}", bundle)])


def _here(configuration: Manifest, name: str, url: str, bundle: str) -> Manifest:
    """The webhook configuration with URLs on this host instead of a Service."""
    hooks = [
        {**hook, "clientConfig": {"url": url + hook["clientConfig"]["service"]["path"], "caBundle": bundle}}
        for hook in configuration["webhooks"]
        if hook["name"] not in _NOT_NEEDED
    ]
    return {**configuration, "metadata": {"name": name}, "webhooks": hooks}


def _read(path: Path) -> Manifest:
    runtime: Manifest = yaml.safe_load(path.read_text())
    return runtime
