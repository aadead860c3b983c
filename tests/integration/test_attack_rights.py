"""Attacks by tenants with various permissions: on exemptions, the operator's SSH keys, and the trust in Kueue."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.exempting import RULES, grant
from tests.support.installation.service import example
from tests.support.installation.ssh_secrets import keys_of, suspended
from tests.support.policies import HEADER
from webhook.admission.validate.required_injections import RULE

pytestmark = pytest.mark.timeout(300)
PI = assets().upstream_examples["pi"]
POLICY = f"""{HEADER}
rules:
  worker-count: {{max: 3}}
  custom:
    - id: no-rice
      expression: "!has(object.metadata.labels) || !('grain' in object.metadata.labels)"
      message: no rice here
injections:
  api-access: {{required: deny}}
"""
ALL_OF_MPIJOBS = {"apiGroups": ["kubeflow.org"], "resources": ["mpijobs"], "verbs": ["*"]}
CREATE_JOBS = {**ALL_OF_MPIJOBS, "verbs": ["create"]}
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
NOT_ALLOWED = "you are not allowed to exempt a job from this rule"


@pytest.fixture(scope="module", autouse=True)
def webhook(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs the service. Kueue is not installed."""
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(POLICY)
    with service.running(cluster, "--policy", str(policy)):
        yield


def create(cluster: Cluster, job: Mapping[str, Any], user: str, *flags: str) -> str:
    """kubectl's output for a dry run by the user, once RBAC allows the user to create jobs."""

    def attempt() -> str | None:
        command = ("create", "--dry-run=server", f"--as={user}", *flags, "-f", "-")
        done = cluster.kubectl(*command, stdin=job, check=False)
        return None if "forbidden" in done.stderr else done.stdout + done.stderr

    return cluster.wait_for("the permission to create jobs", attempt)


# Exemptions


def two_violations(namespace: str) -> dict[str, Any]:
    """A job that violates `worker-count` and the custom rule, and requests exemptions from both."""
    wish = {
        "training.openshift.io/exempt": "worker-count,custom/no-rice",
        "training.openshift.io/exempt-reason": "one-off",
    }
    job = example(PI, namespace=namespace, annotations=wish, labels={"grain": "rice"})
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 4
    return job


@pytest.mark.parametrize(
    ("granted", "refused"),
    [
        ([ALL_OF_MPIJOBS], {"worker-count", "custom/no-rice"}),
        ([{**ALL_OF_MPIJOBS, "resources": ["*"]}], {"worker-count", "custom/no-rice"}),
        ([{**CREATE_JOBS, "verbs": ["create", "exempt"]}], {"worker-count", "custom/no-rice"}),
        ([CREATE_JOBS, {**RULES, "resourceNames": ["worker-count"]}], {"custom/no-rice"}),
        ([CREATE_JOBS, {**RULES, "resourceNames": ["custom/no-rice"]}], {"worker-count"}),
        ([CREATE_JOBS, {**RULES, "resourceNames": ["custom"]}], {"worker-count", "custom/no-rice"}),
        ([CREATE_JOBS, RULES], set()),
        ([EVERYTHING], set()),
    ],
    ids=[
        "every verb on jobs",
        "every verb in the group of jobs",
        "the verb `exempt` on jobs",
        "one rule",
        "one custom rule",
        "`custom` as the name of a rule",
        "all rules",
        "everything",
    ],
)
def test_exemption_needs_the_permission_on_the_rule(
    cluster: Cluster, namespace: str, granted: list[Mapping[str, list[str]]], refused: set[str]
) -> None:
    grant(cluster, namespace, "eve", *granted)
    output = create(cluster, two_violations(namespace), "eve")
    assert {
        rule for rule in ("worker-count", "custom/no-rice") if f"({NOT_ALLOWED})" in line_of(output, rule)
    } == refused
    assert ("created (server dry run)" in output) is (not refused)


def line_of(output: str, rule: str) -> str:
    """The part of a rejection that ends with the rule's id."""
    before, found, _ = output.partition(f"[{rule}]")
    return before.rpartition("]")[2] if found else ""


def test_namespace_admin_cannot_grant_exemptions(cluster: Cluster, namespace: str) -> None:
    """RBAC lets a user grant only permissions that the user has."""
    cluster.kubectl("create", "rolebinding", "admin", "--clusterrole=admin", "--user=eve", "-n", namespace)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "exempt", "namespace": namespace},
        "rules": [RULES],
    }
    refused = cluster.kubectl("create", "--as=eve", "-f", "-", stdin=role, check=False).stderr
    assert "is attempting to grant RBAC permissions not currently held" in refused


# SSH keys


def test_new_secret_with_foreign_keys_gets_a_new_pair(operator_cluster: Cluster, namespace: str) -> None:
    """The forged Secret contains a key that the service generated for another job: a user may have read that key."""
    operator_cluster.kubectl("create", "-f", "-", stdin=suspended(namespace, "train"))
    original = keys_of(operator_cluster, namespace, ["train"])["train"]
    metadata = original.manifest["metadata"]
    (owner,) = metadata["ownerReferences"]
    forged = {
        **original.manifest,
        "metadata": {
            "name": "other-ssh",
            "namespace": namespace,
            "labels": metadata["labels"],
            "ownerReferences": [{**owner, "name": "other"}],
        },
        "data": {
            **original.manifest["data"],
            "ssh-publickey": b64encode(original.public.replace(b"/train\n", b"/other\n")).decode(),
        },
    }
    command = ("create", "--dry-run=server", "-f", "-", "-o", "json")
    made = json.loads(operator_cluster.kubectl(*command, stdin=forged).stdout)
    assert made["data"].keys() == forged["data"].keys()
    assert made["data"]["ssh-privatekey"] != forged["data"]["ssh-privatekey"]


def test_user_who_may_write_secrets_can_replace_keys(operator_cluster: Cluster, namespace: str) -> None:
    """SECURITY.md documents this: the service does not review updates of Secrets."""
    operator_cluster.kubectl("create", "-f", "-", stdin=suspended(namespace, "train"))
    keys_of(operator_cluster, namespace, ["train"])
    mine = b64encode(b"mine").decode()
    patch = f'{{"data":{{"ssh-privatekey":"{mine}","ssh-publickey":"{mine}"}}}}'
    output = operator_cluster.kubectl("patch", "secret", "train-ssh", "-n", namespace, "--type=merge", "-p", patch)
    assert "Warning" not in output.stderr
    assert keys_of(operator_cluster, namespace, ["train"])["train"].private == b"mine"
    decisions = [line for line in service.decisions(operator_cluster) if line["webhook"] == "ssh-keys"]
    assert len([line for line in decisions if line["namespace"] == namespace]) == 1


# Trust in Kueue


CLAIMS = {
    "owner": {"ownerReferences": [{"apiVersion": "v1", "kind": "Any", "name": "a", "uid": "u", "controller": True}]},
    "copy": {"labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"}},
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_account_named_like_kueue_is_not_trusted_without_kueue(cluster: Cluster, namespace: str, claim: str) -> None:
    """A tenant who may create the namespace kueue-system can create a ServiceAccount with Kueue's name."""
    grant(cluster, namespace, KUEUE, CREATE_JOBS)
    output = create(cluster, example(PI, namespace=namespace, **CLAIMS[claim]), KUEUE)
    assert 'the injection "api-access" is required and not in the job' in output
    assert f"[{RULE}]" in output


@pytest.mark.parametrize("user", [KUEUE, "eve"])
@pytest.mark.parametrize("claim", [None, *CLAIMS])
def test_job_cannot_skip_the_time_limit(cluster: Cluster, namespace: str, claim: str | None, user: str) -> None:
    """The user writes the annotation `skip`, and may also claim falsely that a controller created the job."""
    grant(cluster, namespace, user, CREATE_JOBS)
    metadata = {"annotations": {"training.openshift.io/skip": "job-timeout"}, **CLAIMS.get(claim or "", {})}
    job = example(PI, namespace=namespace, **metadata)
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["spec"]["automountServiceAccountToken"] = False
    output = create(cluster, job, user, "-o", "jsonpath={.spec.runPolicy.activeDeadlineSeconds}")
    assert output.startswith("86400"), output
