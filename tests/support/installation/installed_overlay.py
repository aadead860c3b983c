"""The default overlay on a real API server, as the runbook installs it.

The pods of the Deployment are simulated. The replicas behind the Service's name are processes of this machine.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import gpu_nodes
from tests.support.installation.balancer import Balancer
from tests.support.installation.deployment import SPACE, Deployment
from tests.support.paths import ROOT
from tools.sessions.page import File, parts
from webhook.installation.registration import RESOURCES

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
ROLL_OUT = (ROOT / "docs" / "roll-out.md").read_text(encoding="utf-8")
OPERATOR = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "mpi-operator", "namespace": "default"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "mpi-operator"}},
        "template": {
            "metadata": {"labels": {"app": "mpi-operator"}},
            "spec": {"containers": [{"name": "mpi-operator", "image": "example.com/mpi-operator:0.8.0"}]},
        },
    },
}
# The API server connects to the balancer, and checks the certificate for the Service's name.
HERE = """
  - target: {kind: Service, name: mpijob-webhook}
    patch: |
      - {op: replace, path: /spec, value: {type: ExternalName, externalName: localhost}}
"""
HOOKS = """
  - target: {group: admissionregistration.k8s.io}
    patch: |
      - {op: replace, path: /webhooks/0/clientConfig/service/port, value: PORT}
      - {op: replace, path: /webhooks/1/clientConfig/service/port, value: PORT}
"""


@dataclass
class Installed(Deployment):
    """An installation, and a checkout in which commands of the runbook run."""

    checkout: Path = Path()

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line of the runbook in an administrator's shell."""
        path = f"{self.cluster.assets.kubectl.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "KUBECONFIG": str(self.cluster.kubeconfig)}
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.checkout,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def follow(self, section: str, *, only: str = "kubectl") -> list[str]:
        """Run the commands of a section that start with `only`. Each command must succeed."""
        lines = [line for line in commands(section) if line.startswith(only)]
        for line in lines:
            done = self.run(line)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return lines


def commands(section: str) -> list[str]:
    """The commands in this section of the runbook."""
    text = RUNBOOK.partition(f"# {section}\n")[2]
    assert text, section
    text = re.split(r"^#+ ", text, maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in re.sub(r"&&\n +", "&& ", block).splitlines()]


@contextmanager
def installed(logs: Path, *flags: str) -> Iterator[Installed]:
    """An installation with one replica with these flags, until the block ends."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(log_dir=logs))
        cluster.start_scheduler()
        cluster.start_kwok(gpu_nodes(2, gpus=0))
        made = Installed(cluster, stack.enter_context(Balancer()), checkout=logs / "checkout")
        shutil.copytree(ROOT / "manifests", made.checkout / "manifests")
        served_here(made.checkout, made.balancer.port)
        cluster.apply([OPERATOR])
        apply, *rest, _doctor = commands("Install")
        assert made.run(apply).returncode == 0
        assert not cluster.get("validatingwebhookconfigurations")["items"], (
            "the hooks must not be applied before a replica is ready"
        )
        made.start(*flags)
        for line in rest:
            done = made.run(line)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        cluster.wait_for("the caBundles", lambda: all(made.bundle(kind.lower()) for kind in RESOURCES))
        yield made


def served_here(checkout: Path, port: int) -> None:
    """Change the checkout so that the API server calls loopback, and write the overlay of docs/roll-out.md."""
    manifests = checkout / "manifests"
    for folder, patch in (("overlays/default", HERE), ("components/hooks", HOOKS.replace("PORT", str(port)))):
        path = manifests / folder / "kustomization.yaml"
        path.write_text(f"{path.read_text()}patches:{patch}")
    mine = next(part for part in parts(ROLL_OUT) if isinstance(part, File) and "overlays/mine" in part.name)
    (checkout / mine.name).parent.mkdir()
    (checkout / mine.name).write_text(mine.content)


def ready(cluster: Cluster) -> int:
    """The number of ready replicas in the Deployment's status."""
    count: int = cluster.get("deployment", SPACE, "-n", SPACE)["status"].get("readyReplicas", 0)
    return count
