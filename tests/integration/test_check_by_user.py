"""A user with only the role `edit` in one namespace gets the API server's verdicts from `check --kubeconfig`.

The page of `playground` gives the same verdicts with the user's `snapshot`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import gpu_nodes
from tests.support import corpus
from tests.support.installation import service
from tests.support.installation.exempting import RULES, grant
from tests.support.jobs import changed
from tests.support.paths import EXAMPLES, MANIFESTS
from tests.support.policies import policy_configmap
from webhook.api import yaml
from webhook.cluster.resource import WatchedPlace
from webhook.cluster.resources import watched_resources
from webhook.parts.playground.verdicts import answer

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

COMPONENT = MANIFESTS / "components" / "check-by-users" / "rbac.yaml"
SPACE, TEAM = "mpijob-webhook", "team-a"
GROUP = "mpijob-users"
POLICIES = {
    "base": "rules: {worker-count: {max: 6}}",
    "gold": "priority: 1\nnamespaces: {matchLabels: {tier: gold}}\n"
    "rules: {worker-count: {max: 9}, images: {action: deny}}",
    "ann": "exemptions: [{rules: [gpus], users: [ann], reason: hers}]\nrules: {gpus: {max: 6}}",
    "others": "namespaces: {matchLabels: {tier: lead}}\nmode: audit",
}
GPU = "nvidia.com/gpu"
# The user is exempt from this rule, but the page does not know the user's name in the cluster.
OF_USER = "gpus"
UNREAD = {"the user's exemptions", "reservations of quotas"}
RESOURCES = "Worker.template.spec.containers.0.resources"
READING = {"sixty-gpus", "no-class", "no-claim", "much-memory"}  # jobs whose verdicts need objects of the cluster
ASKING = {"training.openshift.io/exempt": "worker-count", "training.openshift.io/exempt-reason": "one-off"}


@dataclass(frozen=True)
class World:
    """A cluster with the service, and the kubeconfig of a user."""

    cluster: Cluster
    kubeconfig: Path
    folder: Path

    def run(self, *arguments: str | Path, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-m", "webhook", "check", *map(str, arguments), "-n", TEAM]
        command += ["--kubeconfig", str(kubeconfig or self.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in {0, 1}, done.stderr
        return done

    def check(self, *files: Path, kubeconfig: Path | None = None, flags: tuple[str, ...] = ()) -> Any:
        """The verdicts by file."""
        done = self.run(*files, *flags, "-o", "json", kubeconfig=kubeconfig)
        return {each["file"]: each for each in json.loads(done.stdout)}

    def not_judged(self, *files: Path, kubeconfig: Path | None = None) -> list[str]:
        """The lines about objects that could not be read."""
        lines = self.run(*files, kubeconfig=kubeconfig).stderr.splitlines()
        return [line for line in lines if line.startswith("not judged")]

    def written(self, jobs: dict[str, Any]) -> list[Path]:
        for name, job in jobs.items():
            (self.folder / f"{name}.json").write_text(json.dumps(job))
        return [self.folder / f"{name}.json" for name in jobs]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Cluster(log_dir=tmp_path_factory.mktemp("check-by-user-logs")) as cluster:
        cluster.start_kwok(gpu_nodes(2, gpus=8))
        for name, labels in ((SPACE, {}), (TEAM, {"tier": "gold"})):
            metadata = {"name": name, "labels": labels}
            cluster.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        for name, text in POLICIES.items():
            cluster.kubectl("create", "-f-", stdin=policy_configmap(text, name, namespace=SPACE))
        for path in (COMPONENT, *(MANIFESTS / "base" / f"{name}.yaml" for name in ("user-roles", "cluster-view"))):
            cluster.kubectl("apply", "-f", path)
        cluster.kubectl("create", "rolebinding", "ann", "--clusterrole=edit", "--user=ann", "-n", TEAM)
        cluster.kubectl("create", "quota", "q", f"--hard=requests.{GPU}=40,count/pods=60", "-n", TEAM)
        limits = {"type": "Container", "max": {"memory": "600Gi"}}
        kind = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": TEAM}}
        cluster.kubectl("create", "-f-", stdin={**kind, "spec": {"limits": [limits]}})
        kubeconfig = cluster.kubeconfig_for("ann", [GROUP])
        cluster.wait_for(
            "the aggregated role",
            lambda: (
                "yes"
                in cluster.kubectl(
                    "auth", "can-i", "create", "mpijobs.kubeflow.org", "-n", TEAM, kubeconfig=kubeconfig, check=False
                ).stdout
                or None
            ),
        )
        cluster.wait_for(
            "the quota", lambda: cluster.get("resourcequota", "q", "-n", TEAM).get("status", {}).get("used") or None
        )
        with service.running(cluster, "--policy-namespace", SPACE):
            yield World(cluster, kubeconfig, tmp_path_factory.mktemp("jobs"))


def jobs() -> dict[str, Any]:
    """The jobs of the corpus, the examples, and jobs that need a cluster. All get the user's namespace."""
    found: dict[str, Any] = {job.path.stem: job.manifest.document for job in corpus.jobs()}
    for path in EXAMPLES.glob("*.yaml"):
        (found[path.stem],) = yaml.load_all(path.read_text())
    found |= {
        "six-workers": changed({"Worker.replicas": 5}),
        "eight-workers": changed({"Worker.replicas": 5, RESOURCES: {"limits": {GPU: 9}}}),
        "ten-workers": changed({"Worker.replicas": 10}),
        "ten-workers-asking": changed({"Worker.replicas": 10, "metadata.annotations": ASKING}),
        "sixteen-gpus": changed({RESOURCES: {"limits": {GPU: 16}}}),
        "sixty-gpus": changed({"Worker.replicas": 8, RESOURCES: {"limits": {GPU: 8}}}),
        "no-class": changed({"Worker.template.spec.priorityClassName": "none"}),
        "no-claim": changed(
            {"Worker.template.spec.volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}
        ),
        "much-memory": changed({"Worker.template.spec.containers.0.resources.limits.memory": "700Gi"}),
        "seven-gpus": changed({"Worker.replicas": 3, RESOURCES: {"limits": {GPU: 7}}}),
        "backoflimit": changed({"spec.runPolicy.backofLimit": 1}),
    }
    return {
        name: {**job, "metadata": {**job["metadata"], "name": name[:40], "namespace": TEAM}}
        for name, job in found.items()
    }


@pytest.fixture(scope="module")
def verdicts(world: World) -> dict[Path, Any]:
    """The verdicts of `check` on all jobs."""
    files = world.written(jobs())
    found = world.check(*files)
    return {file: found[str(file)] for file in files}


def test_verdicts_match_the_api_server(world: World, verdicts: dict[Path, Any]) -> None:
    differ = []
    refused = 0
    for path, verdict in verdicts.items():
        done = world.cluster.kubectl("create", "--dry-run=server", "-f", path, kubeconfig=world.kubeconfig, check=False)
        refused += done.returncode != 0
        if verdict["allowed"] is not (done.returncode == 0):
            differ.append((path.stem, verdict["message"], done.stderr))
    assert differ == []
    assert 15 <= refused <= len(verdicts) - 15
    assert "ten-workers" in {path.stem for path in verdicts}
    unread = world.not_judged(*(path for path in verdicts if path.stem in READING))
    assert unread in ([], ["not judged: rules that need reservations of quotas (no permission to read them)"])


def test_user_without_read_rights_sees_what_was_not_judged(world: World) -> None:
    nobody = world.cluster.kubeconfig_for("bob")
    world.cluster.kubectl("create", "rolebinding", "bob", "--clusterrole=edit", "--user=bob", "-n", TEAM)
    files = world.written({"job": jobs()["six-workers"]})
    (line,) = world.not_judged(*files, kubeconfig=nobody)
    assert "nodes" in line
    assert "policies" in line
    assert line.endswith("(no permission to read them)")


def snapshot(world: World, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "webhook", "snapshot", "--kubeconfig", str(kubeconfig), "-n", TEAM]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_page_and_check_give_the_same_verdicts(world: World, verdicts: dict[Path, Any]) -> None:
    read = snapshot(world, world.kubeconfig)
    assert [line for line in read.stderr.splitlines() if "forbidden" in line and "leases" not in line] == []
    differ = []
    for path, verdict in verdicts.items():
        (judged,) = answer({"job": path.read_text(), "cluster": read.stdout})["jobs"]
        shown = [(cause["field"], cause["rule"]) for cause in judged["causes"] if cause["rule"] != OF_USER]
        expected = [(cause["field"], cause["rule"]) for cause in verdict["causes"]]
        if shown != expected:
            differ.append((path.stem, shown, expected))
        assert {what for each in judged["notJudged"] for what in each["what"]} <= UNREAD
    assert differ == []


def test_page_shows_what_was_not_judged_to_a_user_without_read_rights(world: World) -> None:
    nobody = world.cluster.kubeconfig_for("eve")
    world.cluster.kubectl("create", "rolebinding", "eve", "--clusterrole=edit", "--user=eve", "-n", TEAM)
    read = snapshot(world, nobody)
    assert "no information about nodes: forbidden" in read.stderr
    assert "the policies are unknown: " in read.stderr
    (judged,) = answer({"job": json.dumps(jobs()["ten-workers"]), "cluster": read.stdout})["jobs"]
    (denied,) = [each["what"] for each in judged["notJudged"] if each["why"] == "no permission to read them"]
    assert {"nodes", "policies"} <= {*denied}
    assert "worker-count" not in {cause["rule"] for cause in judged["causes"]}, (
        "a policy that could not be read rejects no job"
    )


def test_exemption_applies_to_the_user_of_the_kubeconfig(world: World) -> None:
    files = world.written({"seven-gpus": jobs()["seven-gpus"]})
    verdicts = world.check(*files)
    assert next(iter(verdicts.values()))["causes"] == []
    verdicts = world.check(
        *files, kubeconfig=world.cluster.kubeconfig, flags=("--as", "eve", "--as-group", "system:masters")
    )
    assert "gpus" in json.dumps(next(iter(verdicts.values()))["causes"])


def test_right_to_exempt_a_job_is_queried(world: World) -> None:
    job = jobs()["ten-workers-asking"]
    files = world.written({"asking": job})
    verdicts = world.check(*files)
    assert "you are not allowed to exempt a job from this rule" in json.dumps(next(iter(verdicts.values()))["causes"])
    grant(world.cluster, TEAM, "ann", RULES)
    try:
        verdicts = world.check(*files)
        assert "worker-count" not in json.dumps(next(iter(verdicts.values()))["causes"])
    finally:
        world.cluster.kubectl("delete", "rolebinding", "ann-granted", "-n", TEAM)


def test_component_grants_read_access_to_the_objects_that_webhook_rules_need(world: World) -> None:
    """Users cannot read quota reservations, because reservations contain the names of other users' jobs."""
    documents = list(yaml.load_all(COMPONENT.read_text()))
    rules = [rule for each in documents if "rules" in each for rule in each["rules"]]
    granted = {(group, kind) for rule in rules for group in rule["apiGroups"] for kind in rule["resources"]}
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    assert not {"secrets", "pods", "mpijobs", "leases"} & {kind for _, kind in granted}
    (configmaps,) = (each for each in documents if "configmaps" in str(each.get("rules")))
    assert (configmaps["kind"], configmaps["metadata"]["namespace"]) == ("Role", SPACE)
    view = world.cluster.get("clusterrole", "view")["rules"]
    granted |= {(group, kind) for rule in view for group in rule["apiGroups"] for kind in rule["resources"]}
    wanted = {(each.api_group, each.plural) for each in watched_resources() if each.place is not WatchedPlace.OWN}
    assert wanted - granted == set()
