"""Verdicts of the rule `pod-security` on submitted jobs."""

from typing import Any

from tests.support.jobs import NO_TOKEN, changed, request
from tests.support.namespaces import labelled
from tests.support.rule_checks import decide
from webhook.admission import pipelines
from webhook.admission.pipelines import Decision
from webhook.cluster.snapshot import Snapshot

# A job whose command does not contain a number of ranks.
GOOD = changed({**NO_TOKEN, "Launcher.template.spec.containers.0.command": ["train.sh"]})
HOST_PATH = {"Worker.template.spec.volumes": [{"name": "data", "hostPath": {"path": "/data"}}]}
FIELD = "spec.mpiReplicaSpecs[Worker].template.spec.volumes[0].hostPath"


def submitted(job: Any, view: Snapshot) -> Decision:
    """The verdict on the job with its injections."""
    mutated = pipelines.mutate(request(job), policy=pipelines.load_policy(None), view=view).document
    return decide(mutated, view=view)


def ids(decision: Decision) -> dict[str, list[str]]:
    findings = {"denied": decision.denied, "warned": decision.warned, "audited": decision.audited}
    return {
        key: [f.violation.path for f in value if f.rule == "pod-security"] for key, value in findings.items() if value
    }


def test_job_without_a_security_context_is_admitted_to_a_restricted_namespace() -> None:
    decision = submitted(GOOD, labelled(enforce="restricted"))
    assert decision.denied == []
    # The service does not know whether the image can run as a user other than root.
    assert decision.warnings == [
        'spec.sshAuthMountPath: "/root/.ssh" is for root, but this namespace starts nothing as root [ssh-paths]'
    ]


def test_violation_written_by_the_user_is_rejected() -> None:
    decision = submitted(changed(HOST_PATH, GOOD), labelled(enforce="restricted"))
    assert ids(decision)["denied"] == [FIELD]
    assert (
        f'1. {FIELD}: violates PodSecurity "restricted:latest": restricted volume types (volume "data" uses '
        'restricted volume type "hostPath") [pod-security]\n'
        "   Use a PersistentVolumeClaim, or an emptyDir for scratch space. To allow it, an administrator would have to "
        'label the namespace "team-a" pod-security.kubernetes.io/enforce=privileged.'
    ) in decision.message


def test_violation_of_the_warn_level_is_a_warning() -> None:
    decision = decide(changed(HOST_PATH, GOOD), view=labelled(warn="baseline"))
    assert decision.allowed
    assert decision.warnings == [
        'spec.mpiReplicaSpecs[Worker]...hostPath: would violate PodSecurity "baseline:latest": hostPath volumes '
        "[pod-security]"
    ]


def test_violation_of_the_audit_level_is_only_in_the_audit_log() -> None:
    decision = decide(changed(HOST_PATH, GOOD), view=labelled(audit="baseline"))
    assert decision.allowed
    assert decision.warnings == []
    assert decision.response("u").audit_annotations == {
        "audited": "pod-security",
        "audit-violations": (
            f'{FIELD}: would violate PodSecurity "baseline:latest": hostPath volumes (volume "data") [pod-security]'
        ),
    }


def test_action_of_the_rule_and_mode_of_the_policy_limit_the_verdict() -> None:
    view = labelled(enforce="baseline")
    for policy, expected in (
        ("", {"denied": [FIELD]}),
        ("mode: warn", {"warned": [FIELD]}),
        ("mode: audit", {"audited": [FIELD]}),
        ("rules: {pod-security: {action: audit}}", {"audited": [FIELD]}),
        ("rules: {pod-security: {action: off}}", {}),
    ):
        assert ids(decide(changed(HOST_PATH, GOOD), policy, view=view)) == expected
