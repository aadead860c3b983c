"""A stored job is judged as if it were created now. The resources that it already uses are not counted twice."""

import json
from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.jobs import changed
from tests.support.policies import layer
from tests.support.quota_objects import quota
from tests.support.strategies import json_values
from webhook.admission import pipelines
from webhook.admission.decision import Decision
from webhook.admission.what_if import resubmitted
from webhook.api.review import AdmissionRequest
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.cluster.without_jobs import WithoutJobs
from webhook.policy.in_force import PolicySet

TODAY = date(2026, 11, 21)
EXEMPT = "training.openshift.io/exempt"


def policies(text: str) -> PolicySet:
    return PolicySet([layer("p", text)])


def judge(job: Any, policy: str = "", view: ClusterView | None = None) -> Decision | None:
    data = msgspec.Raw(json.dumps(job).encode())
    view = WithoutJobs(view or NothingKnown())
    return resubmitted.judge(data, policies=policies(policy), view=view, today=TODAY)


def denied(job: Any, policy: str, view: ClusterView | None = None) -> set[str]:
    decision = judge(job, policy, view)
    assert decision is not None
    return {finding.rule for finding in decision.denied}


FIVE = changed({"Worker.replicas": 5})


def test_verdict_is_the_same_as_at_admission() -> None:
    assert denied(FIVE, "rules: {worker-count: {max: 3}}") == {"worker-count"}
    assert denied(FIVE, "rules: {worker-count: {max: 5}}") == set()
    audited = judge(FIVE, "mode: audit\nrules: {worker-count: {max: 3}}")
    assert audited is not None
    assert not audited.denied
    assert "worker-count" in {finding.rule for finding in audited.audited}


def test_stored_job_is_judged_unchanged() -> None:
    request = resubmitted.creation(msgspec.Raw(json.dumps(FIVE).encode()))
    assert request is not None
    yesterday = policies("injectOnly: [job-timeout]\ninjections: {job-timeout: {default: 3h}}")
    policy = yesterday.for_namespace(NothingKnown().get(None, None))  # type: ignore[arg-type]
    stored = pipelines.mutate(request, policy=policy, view=NothingKnown()).document
    assert stored is not None
    assert stored["spec"]["runPolicy"]["activeDeadlineSeconds"] == 3 * 3600
    again = resubmitted.creation(msgspec.Raw(json.dumps(stored).encode()))
    assert isinstance(again, AdmissionRequest)
    assert json.loads(bytes(again.object)) == stored


def test_exemption_requested_by_a_stored_job_is_granted() -> None:
    asks = {EXEMPT: "worker-count", f"{EXEMPT}-reason": "a benchmark"}
    job = changed({"Worker.replicas": 5, "metadata.annotations": asks})
    assert denied(job, "rules: {worker-count: {max: 3}}") == set()
    without_reason = changed({"Worker.replicas": 5, "metadata.annotations": {EXEMPT: "worker-count"}})
    assert denied(without_reason, "rules: {worker-count: {max: 3}}") == {"worker-count"}


def test_stored_job_that_uses_the_whole_quota_does_not_exceed_it() -> None:
    full = {"requests.nvidia.com/gpu": "1000"}
    assert "resource-quota" not in denied(FIVE, "", Snapshot([quota(full, full)]))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b'{"metadata": 7}', b'{"metadata": {"name": 7}}', b'"\xff"'])
def test_object_that_is_not_a_job_is_not_judged(data: bytes) -> None:
    assert resubmitted.judge(data, policies=policies(""), view=WithoutJobs(NothingKnown()), today=TODAY) is None


PLACES = ["metadata.annotations", "metadata.labels", "spec", "spec.runPolicy", "Worker", "Worker.template", "status"]


@settings(deadline=None)
@given(place=st.sampled_from(PLACES), value=json_values())
def test_any_json_gets_a_verdict(place: str, value: Any) -> None:
    decision = judge(changed({place: value}))
    assert decision is not None
    assert decision.allowed == (not decision.denied)
