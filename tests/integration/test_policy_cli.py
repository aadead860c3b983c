"""`mpijob-webhook policy` with a real API server."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.installation.exempting import may_exempt
from tests.support.jobs import changed
from tests.support.paths import DOCS
from tests.support.policies import HEADER, policy_configmap
from webhook.client.limits import SNAPSHOT_OBJECTS_PER_PAGE

JOBS = SNAPSHOT_OBJECTS_PER_PAGE + 5


def apply(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    cluster.kubectl(
        "create", "-n", namespace, "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": list(objects)}
    )


RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}


def binding(kind: str, role: str, *subjects: dict[str, str], whole: bool = False) -> dict[str, Any]:
    return {
        "kind": "ClusterRoleBinding" if whole else "RoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", **subject} for subject in subjects],
        **RBAC,
    }


@pytest.fixture(scope="module")
def policies(cluster: Cluster) -> Iterator[str]:
    """The namespace of the policy ConfigMaps. One policy applies to namespaces with the label `tier: premium`."""
    name = cluster.create_namespace("policies")
    premium = "priority: 1\nnamespaces: {matchLabels: {tier: premium}}\nrules: {worker-count: {max: 64}}"
    apply(
        cluster,
        name,
        policy_configmap("rules:\n  worker-count: {max: 8}\n", "base", namespace=None),
        policy_configmap(premium, "premium", namespace=None),
        policy_configmap("mode: loud", "broken", namespace=None),
    )
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def team(cluster: Cluster) -> Iterator[str]:
    """A namespace with the label `tier: base`. A list of its jobs has two pages. Five jobs have nine workers."""
    name = cluster.create_namespace("team", labels={"tier": "base"})
    # Another test may run an operator in this cluster. The operator ignores jobs with this field.
    elsewhere = {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}
    jobs = [
        changed({**elsewhere, "metadata": {"name": f"job-{number:03}"}, "Worker.replicas": 9 if number < 5 else 4})
        for number in range(JOBS)
    ]
    apply(cluster, name, *jobs)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "webhook", "policy", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def value(outcome: str, path: str) -> tuple[Any, str]:
    (found,) = [each for each in json.loads(outcome)["values"] if each["path"] == path]
    return found["value"], found["source"]


def test_replay_reads_all_pages_of_jobs(cluster: Cluster, policies: str, team: str, tmp_path: Path) -> None:
    where = ("--kubeconfig", cluster.kubeconfig, "--policy-namespace", policies)
    (tmp_path / "tight.yaml").write_text(
        json.dumps(policy_configmap("rules: {worker-count: {max: 3}}", "base", namespace=None))
    )
    done = run("replay", "--policy", tmp_path / "tight.yaml", *where, "-o", "json", code=1)
    denied = json.loads(done.stdout)["newlyDenied"]
    # The current policy already rejects jobs with nine workers.
    assert sorted(name for name in denied if name.startswith(f"{team}/")) == [
        f"{team}/job-{number:03}" for number in range(5, JOBS)
    ]
    (tmp_path / "loose.yaml").write_text(
        json.dumps(policy_configmap("rules: {worker-count: {max: 9}}", "base", namespace=None))
    )
    done = run("replay", "--policy", tmp_path / "loose.yaml", *where)
    assert "\nonly loosens: would newly deny none of " in done.stdout
    assert f"\n  {team}/job-004\n" in done.stdout
    assert f"\n  {team}/job-005\n" not in done.stdout


def test_impersonation_needs_the_right_to_impersonate(cluster: Cluster, policies: str, tmp_path: Path) -> None:
    """The administrator may impersonate every user.

    `carol` may impersonate only `dave`. `eve` may impersonate no user.
    """
    reader = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    apply(
        cluster,
        policies,
        {"kind": "Role", "metadata": {"name": "reader"}, "rules": [reader]} | RBAC,
        binding("Role", "reader", {"kind": "User", "name": "dave"}, {"kind": "Group", "name": "readers"}),
        {
            "kind": "ClusterRole",
            "metadata": {"name": f"{policies}-as-dave"},
            "rules": [{"apiGroups": [""], "resources": ["users"], "resourceNames": ["dave"], "verbs": ["impersonate"]}],
        }
        | RBAC,
        binding("ClusterRole", f"{policies}-as-dave", {"kind": "User", "name": "carol"}, whole=True),
    )
    (tmp_path / "p.yaml").write_text(HEADER)
    command = ("replay", "--policy", tmp_path / "p.yaml", "--policy-namespace", policies, "--kubeconfig")
    carol, eve = cluster.kubeconfig_for("carol"), cluster.kubeconfig_for("eve")

    def error_of(by: Path, *options: str) -> str:
        done = run(*command, by, *options, code=2)
        assert done.stderr.count("\n") == 1
        return done.stderr

    assert 'User "carol" cannot list resource "configmaps"' in error_of(carol)
    assert 'User "dave" cannot list resource "mpijobs"' in error_of(carol, "--as", "dave")  # ConfigMaps were listed
    assert 'User "frank" cannot list resource "configmaps"' in error_of(cluster.kubeconfig, "--as", "frank")
    in_group = ("--as", "frank", "--as-group", "sales", "--as-group", "readers")
    assert 'User "frank" cannot list resource "mpijobs"' in error_of(cluster.kubeconfig, *in_group)
    assert 'users "dave" is forbidden: User "eve" cannot impersonate' in error_of(eve, "--as", "dave")
    assert 'groups "readers" is forbidden: User "carol" cannot impersonate' in error_of(
        carol, "--as", "dave", "--as-group", "readers"
    )


def test_documented_role_grants_exemptions(cluster: Cluster, namespace: str) -> None:
    text = (DOCS / "exemptions.md").read_text()
    (role,) = (block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "kind: RoleBinding" in block)
    cluster.kubectl("apply", "-f", "-", stdin=role.replace("namespace: team-a", f"namespace: {namespace}"))
    for rule, user, answer in (("images", "alice", True), ("gpus", "alice", False), ("images", "bob", False)):
        assert may_exempt(cluster, namespace, user, rule) is answer
