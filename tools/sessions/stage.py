"""The cluster for the commands in documentation pages: a real API server and operator, simulated GPU nodes, and jobs.

The pages install the manifests of this checkout. The pods of the service are simulated. After a page has applied an
overlay, the service runs as a process on this machine.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import KEEP_RUNNING, gpu_nodes
from tests.support.installation.balancer import Balancer
from tests.support.installation.deployment import SELF_MANAGED, SPACE, Deployment
from tests.support.installation.installed_overlay import OPERATOR, served_here
from tests.support.installation.service import example
from tests.support.jobs import changed
from tests.support.paths import DOCS, EXAMPLES, ROOT
from tools.sessions.comparing import same
from tools.sessions.page import File, Heading, Step, parts
from webhook.api import yaml
from webhook.installation.registration import RESOURCES

TEAM, USER = "team-a", "alice"
# A page has this output for a command that has not been run yet.
UNKNOWN: Final = "?\n"
JOBS: Final = DOCS / "sessions"
KINDS: Final = tuple(kind.lower() for kind in RESOURCES)
QUOTA: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpus", "namespace": TEAM},
    "spec": {"hard": {"requests.nvidia.com/gpu": "32"}},
}


@dataclass(frozen=True, slots=True)
class Played:
    part: Heading | File | Step
    output: str = ""
    code: int = 0

    @property
    def shown(self) -> str:
        """The output that the page should show. The old output stays if only volatile parts differ."""
        step = self.part
        assert isinstance(step, Step)
        if not step.shown and not self.code:
            return ""  # the command succeeds, and the page shows no output
        return step.shown if step.reason or same(step.shown, self.output) else self.output


@dataclass
class Stage(Deployment):
    checkout: Path = Path()
    """The folder of the administrator."""
    home: Path = Path()
    """The folder of the user."""
    alice: Path = Path()
    """The kubeconfig of the user."""

    def play(self, text: str, *, as_user: bool = False) -> list[Played]:
        folder = self.home if as_user else self.checkout
        config = self.alice if as_user else self.cluster.kubeconfig
        played = []
        for part in parts(text):
            if isinstance(part, File):
                (folder / part.name).parent.mkdir(parents=True, exist_ok=True)
                (folder / part.name).write_text(part.content)
            played.append(self._type(part, folder, config) if isinstance(part, Step) else Played(part))
        return played

    @property
    def deployed_image(self) -> str:
        deployment = self.cluster.get("deployment", SPACE, "-n", SPACE)
        image: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
        return image

    def reset(self) -> None:
        self.cluster.kubectl("delete", "configmaps", "-A", "-l", "training.openshift.io/mpijob-policy=true")
        self.cluster.kubectl("label", "namespace", "--all", "training.openshift.io/mpijob-enforce-")

    def _type(self, step: Step, folder: Path, config: Path) -> Played:
        """Run a command, up to three times if its output differs from the page: changes take some seconds."""
        if step.reason:
            return Played(step)
        for _ in range(1 if step.shown == UNKNOWN else 3):
            done = run(step.line, folder, config, self.cluster.assets.kubectl.parent)
            played = Played(step, done.stdout, done.returncode)
            if played.shown == step.shown or not _can_be_repeated(step.line):
                break
            time.sleep(1)
        if "kubectl apply -k manifests/overlays/" in step.line:
            if not self.balancer.backends:
                self.start(*SELF_MANAGED)
            if self.cluster.get(KINDS[0])["items"]:
                self.cluster.wait_for("the caBundles", lambda: all(map(self.bundle, KINDS)))
        if step.line.startswith(("kubectl apply", "kubectl label", "kubectl delete")):
            time.sleep(1)  # the service may need a second to see changed policies
        return played


def run(line: str, folder: Path, config: Path, tools: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    # Without stored bytecode, each command would compile all its modules.
    env |= {"KUBECONFIG": str(config), "KUBERC": "off", "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )


def _can_be_repeated(line: str) -> bool:
    """True if the command changes nothing."""
    return "mpijob-webhook " in line or "--dry-run" in line or " get " in line


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    with Cluster(log_dir=folder) as cluster:
        cluster.start_scheduler()
        cluster.start_kwok(gpu_nodes(8))
        cluster.start_operator()
        with Balancer() as balancer:
            stage = Stage(cluster, balancer, checkout=folder / "checkout", home=folder / "home")
            _prepare(stage)
            yield stage


def _prepare(stage: Stage) -> None:
    cluster = stage.cluster
    shutil.copytree(ROOT / "manifests", stage.checkout / "manifests")
    served_here(stage.checkout, stage.balancer.port)
    stage.home.mkdir()
    for path in (*EXAMPLES.glob("*.yaml"), *JOBS.glob("*.yaml")):
        shutil.copy(path, stage.home)
    cluster.apply([OPERATOR, *(_namespace(name) for name in (TEAM, "team-b")), QUOTA])
    for name in (TEAM, "team-b"):
        cluster.wait_for("accounts", partial(cluster.get, "serviceaccount", "default", "-n", name))
    cluster.apply([*_running(), example(EXAMPLES / "bad-one-worker.yaml", namespace="team-b")])
    cluster.kubectl("create", "rolebinding", USER, "--clusterrole=edit", f"--user={USER}", "-n", TEAM)
    stage.alice = cluster.kubeconfig_for(USER)
    cluster.kubectl("config", "set-context", "--current", "--namespace", TEAM, kubeconfig=stage.alice)
    for home, config in ((stage.checkout, cluster.kubeconfig), (stage.home, stage.alice)):
        (home / ".kube").mkdir()
        shutil.copy(config, home / ".kube" / "config")
    for number in range(3):
        ready = ("wait", "--for=condition=Running", f"mpijob/resnet-{number + 1}", "-n", TEAM, "--timeout=60s")
        cluster.kubectl(*ready)


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"tier": "premium"}}}


def _running() -> Iterator[Mapping[str, Any]]:
    """Three jobs that do not end. They use 24 of the team's 32 GPUs."""
    (job,) = yaml.load_all((JOBS / "train.yaml").read_text())
    for number in range(1, 4):
        changes = {"metadata.name": f"resnet-{number}", "metadata.namespace": TEAM}
        running = changed(changes, job)
        template = running["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
        template["metadata"] = {"annotations": {KEEP_RUNNING: "true"}}
        yield running
