"""A job larger than the policy allows is rejected by a rule. A job too large for the API server is not decoded."""

from typing import Any

import pytest

from tests.support.jobs import changed, request
from tests.support.kueue_objects import config
from tests.support.rule_checks import decide
from webhook.admission import pipelines
from webhook.admission.pipelines import Decision, load_policy
from webhook.api.limits import MAX_NESTED_VALUES, MAX_OBJECT_BYTES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown

KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
EXEMPT = 'exemptions: [{rules: ["*"], users: [alice], reason: because}]\n'


def with_text(length: int, **metadata: Any) -> dict[str, Any]:
    """Return a job with a long argument, and with an image that the rule `images` rejects."""
    changes = {"Worker.template.spec.containers.0.args": ["x" * length], "metadata.annotations": metadata}
    return changed({**changes, "Worker.template.spec.containers.0.image": "not an image"})


def nested(count: int, **changes: Any) -> dict[str, Any]:
    return changed({**changes, "spec.unknown": [[]] * count})


def mutate(job: Any) -> Decision:
    return pipelines.mutate(request(job), policy=load_policy(None), view=NothingKnown())


def rules(decision: Decision) -> set[str]:
    return {finding.rule for finding in [*decision.denied, *decision.warned, *decision.audited]}


def test_rejection_of_a_job_larger_than_the_policy_allows_lists_other_violations_too() -> None:
    decision = decide(with_text(1024 * 1024))
    assert rules(decision) >= {"job-size", "images"}
    assert mutate(with_text(1024 * 1024)).patch != []


def test_job_can_be_exempt_from_the_policys_size_limit() -> None:
    decision = decide(with_text(1024 * 1024), EXEMPT)
    assert "job-size" in {finding.rule for finding, _ in decision.exempted}


@pytest.mark.parametrize("job", [with_text(MAX_OBJECT_BYTES), nested(MAX_NESTED_VALUES)], ids=["bytes", "nested"])
class TestObjectsThatAreNotDecoded:
    def test_only_the_size_is_reported(self, job: dict[str, Any]) -> None:
        (finding,) = decide(job).denied
        assert finding.rule == "job-size"
        assert finding.violation.message.startswith("too large to judge: ")
        assert finding.violation.fix == "Stay within that: no policy allows more."

    def test_nothing_is_injected(self, job: dict[str, Any]) -> None:
        assert (mutate(job).skipped, mutate(job).patch) == ("too large to judge", [])

    def test_exemptions_and_actions_do_not_apply(self, job: dict[str, Any]) -> None:
        assert not decide(job, EXEMPT + "rules: {job-size: {action: 'off'}}").allowed

    @pytest.mark.parametrize(("mode", "field"), [("warn", "warned"), ("audit", "audited")])
    def test_too_large_job_is_admitted_in_mode_warn_or_audit(self, job: dict[str, Any], mode: str, field: str) -> None:
        decision = decide(job, f"mode: {mode}")
        assert decision.allowed
        assert [finding.rule for finding in getattr(decision, field)] == ["job-size"]

    def test_usual_update_by_kueue_is_admitted(self, job: dict[str, Any]) -> None:
        resumed = changed({"spec.runPolicy.suspend": True, "Worker.template.spec.nodeSelector.a": "b"}, job)
        decision = decide(resumed, old=job, username=KUEUE, view=Snapshot([config()]))
        assert (decision.allowed, decision.skipped) == (True, "an update by a controller")
        assert not decide(resumed, old=job, view=Snapshot([config()])).allowed, (
            'the user "alice" is not a controller, so the same update is rejected'
        )

    @pytest.mark.parametrize(
        "field", ["spec.runPolicy.cleanPodPolicy", "metadata.labels.a", "Worker.template.spec.hostNetwork"]
    )
    def test_update_that_changes_other_fields_is_rejected(self, job: dict[str, Any], field: str) -> None:
        assert not decide(changed({field: "x"}, job), old=job).allowed

    def test_too_large_stored_job_does_not_excuse_violations(self, job: dict[str, Any]) -> None:
        assert "images" in rules(decide(with_text(1), old=job))
