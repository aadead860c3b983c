"""The cluster for the pages: a real API server, operator and simulated GPU nodes, with existing jobs.

The pages install the manifests of this checkout. The pods of the service are simulated: the API server calls a process
behind the Service's name, which starts after a page has applied an overlay.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
# The output of a command that has not been run.
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
    """A part of a page, with the output and exit code of a command."""

    part: Heading | File | Step
    output: str = ""
    code: int = 0

    @property
    def shown(self) -> str:
        """The output that the page should show for this command."""
        step = self.part
        assert isinstance(step, Step)
        if not step.shown and not self.code:
            return ""  # the command succeeds, and the page shows no output
        return step.shown if step.reason or same(step.shown, self.output) else self.output


@dataclass
class Stage(Deployment):
    """A cluster with an administrator and a user, each with a folder and a kubeconfig."""

    checkout: Path = Path()
    home: Path = Path()
    alice: Path = Path()

    def play(self, text: str, *, as_user: bool = False) -> list[Played]:
        """Write the files and run the commands of a page, from top to bottom."""
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
        found = self.cluster.get("deployment", SPACE, "-n", SPACE)["spec"]["template"]["spec"]["containers"]
        image: str = found[0]["image"]
        return image

    def reset(self) -> None:
        """Delete all policies and labels of the last page."""
        self.cluster.kubectl("delete", "configmaps", "-A", "-l", "training.openshift.io/mpijob-policy=true")
        self.cluster.kubectl("label", "namespace", "--all", "training.openshift.io/mpijob-enforce-")

    def _type(self, step: Step, folder: Path, config: Path) -> Played:
        """Run a command. If its output differs from the page, run it again, because changes take a second or two."""
        if step.reason:
            return Played(step)
        for _ in range(1 if step.shown == UNKNOWN else 3):
            done = run(step.line, folder, config, self.cluster.assets.kubectl.parent)
            found = Played(step, done.stdout, done.returncode)
            if found.shown == step.shown or not _can_be_repeated(step.line):
                break
            subprocess.run(["sleep", "1"], check=True)
        if "kubectl apply -k manifests/overlays/" in step.line:
            if not self.balancer.backends:
                self.start(*SELF_MANAGED)
            if self.cluster.get(KINDS[0])["items"]:
                self.cluster.wait_for("the caBundles", lambda: all(map(self.bundle, KINDS)))
        if _changes_policies(step.line):
            subprocess.run(["sleep", "1"], check=True)
        return found


def run(line: str, folder: Path, config: Path, tools: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of a page in a shell, with both streams together as in a terminal."""
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
    """Whether the command changes nothing."""
    return "mpijob-webhook " in line or "--dry-run" in line or " get " in line


def _changes_policies(line: str) -> bool:
    return line.startswith(("kubectl apply", "kubectl label", "kubectl delete"))


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """The prepared cluster for the first page, until the block ends."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(log_dir=folder))
        cluster.start_scheduler()
        cluster.start_kwok(gpu_nodes(8))
        cluster.start_operator()
        made = Stage(cluster, stack.enter_context(Balancer()), checkout=folder / "checkout", home=folder / "home")
        _prepare(made)
        yield made


def _prepare(stage: Stage) -> None:
    """Create the initial state: a checkout, existing jobs, and a user with the role edit in one namespace."""
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
    """Three jobs that use 24 of the team's 32 GPUs and do not end."""
    (job,) = yaml.load_all((JOBS / "train.yaml").read_text())
    for number in range(1, 4):
        changes = {"metadata.name": f"resnet-{number}", "metadata.namespace": TEAM}
        running = changed(changes, job)
        template = running["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
        template["metadata"] = {"annotations": {KEEP_RUNNING: "true"}}
        yield running
