"""The injection `scc` sets fields that an SCC of OpenShift requires and that OpenShift does not fill in."""

from typing import Any

import pytest

from tests.support.injecting import Example, mpijob, only, pod_spec
from tests.support.jobs import request
from tests.support.openshift import DEFAULT_SCCS, openshift, project, view
from tests.support.paths import EXAMPLES
from tests.support.rule_checks import run
from webhook.admission import pipelines
from webhook.api import yaml
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import load_policy

CONTAINER = pod_spec()["containers"][0]
V3 = {"default": ["restricted-v3"]}
BIND_SERVICE = {"capabilities": {"add": ["NET_BIND_SERVICE"]}}
EXAMPLE = Example(job=mpijob(), view=Snapshot(openshift(namespace="team")))


def as_user(uid: int, **more: Any) -> Any:
    spec = pod_spec(containers=[{**CONTAINER, "securityContext": {"runAsUser": uid}}], **more)
    return mpijob(launcher={"spec": spec}, worker={"spec": spec})


def mutated(job: Any, cluster: Any, policy: Any = None) -> Any:
    decision = pipelines.mutate(request(job, namespace="team-a"), policy=policy or only("scc"), view=cluster)
    assert not decision.skipped
    return decision


def specs(decision: Any) -> dict[str, Any]:
    replicas = decision.document["spec"]["mpiReplicaSpecs"]
    return {role: replica["template"]["spec"] for role, replica in replicas.items()}


def test_job_with_a_fixed_user_gets_a_user_namespace() -> None:
    decision = mutated(as_user(1000), view(V3))
    assert [spec["hostUsers"] for spec in specs(decision).values()] == [False, False]
    assert specs(decision)["Worker"]["containers"][0]["securityContext"] == {"runAsUser": 1000, **BIND_SERVICE}
    assert specs(decision)["Launcher"]["containers"][0]["securityContext"] == {"runAsUser": 1000}
    assert decision.notes == [
        "scc: put the launcher into a user namespace for SCC restricted-v3",
        "scc: put the worker into a user namespace for SCC restricted-v3",
        "scc: gave the worker NET_BIND_SERVICE: SCC restricted-v3 drops it",
    ]


@pytest.mark.parametrize(
    ("job", "may_use"),
    [
        (as_user(1000), {}),
        (as_user(0), V3),
        (as_user(1000, hostUsers=True), V3),
        (as_user(1000), {"default": ["restricted-v3", "nonroot-v2"]}),
        (mpijob(), V3),
    ],
)
def test_user_namespace_is_not_injected_if_it_is_useless_or_not_needed(job: Any, may_use: Any) -> None:
    assert "hostUsers" not in str(mutated(job, view(may_use)).patch)


def test_worker_with_a_user_chosen_by_the_scc_gets_the_capability_for_sshd() -> None:
    assert specs(mutated(mpijob(), view()))["Worker"]["containers"][0]["securityContext"] == BIND_SERVICE


@pytest.mark.parametrize("context", [{"capabilities": {"drop": ["ALL"]}}, {"capabilities": {"add": []}}])
def test_capabilities_of_the_user_stay(context: Any) -> None:
    job = mpijob(worker={"spec": pod_spec(containers=[{**CONTAINER, "securityContext": context}])})
    assert mutated(job, view()).patch == []


def test_nothing_is_injected_if_the_scc_drops_nothing_or_is_unknown() -> None:
    for cluster in (view({"default": ["anyuid"]}), Snapshot([project()]), Snapshot([project(), *DEFAULT_SCCS])):
        assert mutated(as_user(1000), cluster).patch == []


@pytest.mark.parametrize("name", ["openmpi-pi", "intel-pi", "mpich-pi"])
def test_example_with_injections_is_accepted_under_restricted_v3(name: str) -> None:
    (job,) = yaml.load_all((EXAMPLES / f"{name}.yaml").read_text())
    cluster = view(V3)
    assert run("scc", job, view=cluster)
    decision = mutated(job, cluster, load_policy(None))
    for rule in ("scc", "ssh-paths", "pod-security"):
        assert run(rule, decision.document, view=cluster) == []


def test_injection_security_context_leaves_out_fields_that_the_scc_fills_in() -> None:
    enforced = project(**{"pod-security.kubernetes.io/enforce": "restricted"})
    assert mutated(mpijob(), view(None, enforced), only("security-context")).patch == []
