"""Recorded reviews under other policies."""

from datetime import UTC, date, datetime
from typing import Any

import msgspec
import pytest

from tests.support.jobs import NO_TOKEN, changed, request
from tests.support.policies import layer
from webhook.admission import pipelines, recorded
from webhook.admission.recorded import RecordedReview
from webhook.admission.replay import Replay, Replayer
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ABSENT, ClusterView, NothingKnown
from webhook.cluster.without_jobs import WithoutJobs
from webhook.kit.settings import Action
from webhook.policy.in_force import PolicySet

THEN = datetime(2027, 1, 15, tzinfo=UTC)
TIGHT = layer("tight", "rules: {worker-count: {max: 3}}")
ENV = "Worker.template.spec.containers.0.env"


def review(
    policies: PolicySet, changes: dict[str, Any] | None = None, *, old: dict[str, Any] | None = None, user: str = ""
) -> RecordedReview:
    """What is recorded of a review, read again from the line that is written."""
    sent = request(changed({**NO_TOKEN, **(changes or {})}), username=user, **({} if old is None else {"old": old}))
    policy = policies.for_namespace(ABSENT)
    decision = pipelines.validate(sent, policy=policy, view=NothingKnown(), today=THEN.date())
    decision.policy = policy.identity
    made = recorded.of(sent, decision, time=THEN, user="user-1", labels={"tier": "a"})
    return msgspec.json.decode(msgspec.json.encode(made), type=RecordedReview)


def replay(before: PolicySet, after: PolicySet, *reviews: RecordedReview, view: ClusterView | None = None) -> Replay:
    replayer = Replayer(before=before, after=after, view=view or NothingKnown(), today=date(2027, 2, 1))
    replayer.add_recorded(reviews)
    return replayer.result


def test_what_is_recorded() -> None:
    found = review(
        PolicySet([TIGHT]), {"Worker.template.spec.containers.0.env": [{"name": "A", "value": "x"}]}, user="eve"
    )
    assert (found.operation, found.job, found.denied, found.redacted) == ("CREATE", "team-a/train", ["worker-count"], 1)
    assert "eve" not in msgspec.json.encode(found).decode()
    assert found.policy == "tight sha256:"


def test_the_record_of_a_creation_is_judged_like_the_job() -> None:
    before, after = PolicySet(), PolicySet([TIGHT])
    result = replay(before, after, review(before), review(before, {"metadata.name": "b", "Worker.replicas": 2}))
    assert result.summary() == "would newly deny 1 of 2 recorded reviews: worker-count 1 (team-a/train)"
    assert result.not_reproduced == {}
    hit = result.hits[Action.DENY, "worker-count", "team-a"]
    assert (hit.new, hit.gone, hit.stays) == ({"team-a/train"}, set(), set())


def test_what_would_be_gone_and_what_stays() -> None:
    before, after = PolicySet([TIGHT]), PolicySet([layer("tight", "rules: {worker-count: {max: 4}}")])
    larger = review(before, {"metadata.name": "b", "Worker.replicas": 9, "spec.slotsPerWorker": 1})
    result = replay(before, after, review(before), larger)
    hit = result.hits[Action.DENY, "worker-count", "team-a"]
    assert (hit.new, hit.gone, hit.stays) == (set(), {"team-a/train"}, {"team-a/b"})
    assert result.newly_admitted == ["team-a/train"]


def test_an_update_is_judged_as_an_update() -> None:
    """Four workers were there before: only more than these are worse."""
    tight = PolicySet([TIGHT])
    same = review(tight, {"metadata.labels": {"a": "b"}}, old=changed(NO_TOKEN))
    more = review(tight, {"metadata.name": "more", "Worker.replicas": 5}, old=changed(NO_TOKEN))
    assert (same.operation, same.denied, more.denied) == ("UPDATE", [], ["worker-count"])
    result = replay(PolicySet(), tight, same, more)
    assert list(result.newly_denied) == ["team-a/more"]


def test_many_reviews_of_a_job_are_one_job() -> None:
    result = replay(PolicySet([TIGHT]), PolicySet(), review(PolicySet([TIGHT])), review(PolicySet([TIGHT])))
    assert (result.total, result.newly_admitted) == (2, ["team-a/train"])


def test_who_was_exempt_is_exempt() -> None:
    policies = PolicySet(
        [
            layer(
                "exempt",
                "rules: {worker-count: {max: 3}}\nexemptions: [{rules: [worker-count], users: [ann], reason: r}]",
            )
        ]
    )
    found = review(policies, user="ann")
    assert (found.denied, found.exempted) == ([], ["worker-count"])
    result = replay(policies, PolicySet([layer("exempt", "rules: {worker-count: {max: 2}}")]), found)
    assert (result.newly_denied, result.not_reproduced) == ({}, {})


def test_what_is_judged_otherwise_now_is_told() -> None:
    was = review(PolicySet([TIGHT]))
    was.denied = ["resource-quota", "gpus"]
    result = replay(PolicySet([TIGHT]), PolicySet([TIGHT]), was)
    assert result.not_reproduced == {"team-a/train": "then denied by gpus, resource-quota, now denied by worker-count"}


@pytest.mark.parametrize(("version", "others"), [("tight@7 sha256:", 0), ("tight sha256:feed", 1), ("", 1)])
def test_only_what_these_policies_decided_is_compared(version: str, others: int) -> None:
    was = review(PolicySet([TIGHT]))
    was.policy, was.denied = version, []
    result = replay(PolicySet([TIGHT]), PolicySet([TIGHT]), was)
    assert (result.by_other_policies, len(result.not_reproduced)) == (others, 1 - others)


def test_stages_are_those_of_the_moment_where_it_is_about_what_was() -> None:
    """Then it only warned; now it denies: that is no fault of the record."""
    staged = PolicySet([layer("s", "mode: warn\nenforceFrom: 2027-02-01\nrules: {worker-count: {max: 3}}")])
    was = review(staged)
    assert (was.denied, was.warned) == ([], ["worker-count"])
    now = staged.at(datetime(2027, 2, 1, tzinfo=UTC))
    result = replay(now, now, was)
    assert result.not_reproduced == {}
    assert result.hits[Action.DENY, "worker-count", "team-a"].stays == {"team-a/train"}


def test_the_namespace_is_as_it_is_now_or_else_as_it_was() -> None:
    was = review(PolicySet())
    there = Snapshot(
        [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"tier": "b"}}}]
    )
    assert was.where(WithoutJobs(NothingKnown())) == Namespace("team-a", {"tier": "a"})
    assert was.where(WithoutJobs(there)) == Namespace("team-a", {"tier": "b"})


def test_a_job_with_many_secrets_has_the_same_verdict() -> None:
    tight = PolicySet([TIGHT])
    found = review(tight, {ENV: [{"name": f"V{number}", "value": "x" * 50} for number in range(20)]})
    assert found.redacted == 20
    assert replay(tight, tight, found).not_reproduced == {}
