"""What was decided about a job is decided about the same job again without asking."""

import json
from base64 import b64decode
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.bench.replies import cases
from tests.support.asked import (
    JOB,
    OTHER_TEAM,
    TEAM,
    TODAY,
    Asked,
    AskedRule,
    both,
    decided,
    hooks,
    reply,
)
from tests.support.jobs import changed, request
from webhook.admission import decided_before, pipelines
from webhook.admission.decided_before import DecidedBefore
from webhook.admission.pipelines import Hook
from webhook.api import review
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.policy.in_force import load_policies


@both
def test_it_is_asked_twice(kind: type[Asked]) -> None:
    asked = kind()
    assert [asked.again() for _ in range(4)] == [1, 1, 0, 0]


@both
def test_a_job_that_came_long_ago_is_new(kind: type[Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_before, "MOST_SEEN", 2)
    asked = kind()
    jobs = [changed({"metadata.name": name}, JOB) for name in ("a", "b", "c")]
    assert [asked.again(job) for job in jobs * 4] == [1] * 12


def test_the_reply_has_the_uid_of_its_request_and_the_log_line_what_was_injected() -> None:
    asked = Asked()
    decisions = [asked.before.mutate(request(JOB), policy=asked.policy, view=NothingKnown()) for _ in range(3)]
    for decision in decisions:
        said = json.loads(review.encode(decision.response("u-7")))["response"]
        assert (said["uid"], said["allowed"], said["patchType"]) == ("u-7", True, "JSONPatch")
        assert json.loads(b64decode(said["patch"]))[0]["path"] == "/metadata/labels"
        assert (decision.name, [*dict.fromkeys(decision.authors)]) == ("train", ["asked"])


def test_a_refusal_is_the_same_for_the_reply_the_log_and_the_metrics() -> None:
    asked = AskedRule()
    first, *others = (decided("validate", asked.before, request(JOB), asked.policy, NothingKnown()) for _ in range(3))
    assert first.denied
    for other in others:
        assert json.loads(review.encode(other.response("u-7")))["response"]["uid"] == "u-7"
        assert (reply(other), other.denied, other.refused_gpus) == (reply(first), first.denied, first.refused_gpus)


@both
@pytest.mark.parametrize(
    "change",
    [
        {"metadata.name": "other"},
        {"metadata.generateName": "train-"},
        {"metadata.namespace": "other"},
        {"metadata.labels": {"a": "b"}},
        {"metadata.annotations": {"a": "b"}},
        {"metadata.annotations": None},
        {"metadata.finalizers": ["a/b"]},
        {"metadata.ownerReferences": [{"controller": False, "kind": "A", "name": "a"}]},
        {"spec.slotsPerWorker": 3},
        {"spec.unread": 3},
        {"status": {"conditions": []}},
    ],
    ids=str,
)
def test_it_is_asked_about_another_text(kind: type[Asked], change: dict[str, Any]) -> None:
    asked = kind()
    asked.known()
    assert asked.again(changed(change, JOB)) == 1


@both
@pytest.mark.parametrize(
    "fields",
    [
        {"username": "bob"},
        {"userInfo": {"username": "alice", "groups": ["system:masters"]}},
        {"userInfo": {"username": "alice"}},
        {"name": "other"},
        {"namespace": "other"},
        {"view": Snapshot([OTHER_TEAM])},
        {"view": NothingKnown()},
    ],
    ids=["user", "groups", "no groups", "name", "namespace", "cluster", "no cluster"],
)
def test_it_is_asked_where_something_else_is_another(kind: type[Asked], fields: dict[str, Any]) -> None:
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    asked.known(Snapshot([TEAM]))
    assert asked.again(**{"view": Snapshot([TEAM]), **fields}) == 1


@both
def test_it_is_asked_under_another_policy(kind: type[Asked]) -> None:
    asked = kind()
    asked.known()
    asked.policy = replace(asked.policy, sources={"mode": "another"})
    assert asked.again() == 1


def test_it_is_asked_on_another_day() -> None:
    asked = AskedRule()
    asked.known()
    asked.today += timedelta(1)
    assert asked.again() == 1


def test_what_was_decided_is_no_reply_when_the_time_is_up() -> None:
    asked = AskedRule()
    asked.known()
    with pytest.raises(pipelines.DeadlineExceeded):
        decided("validate", asked.before, request(JOB), asked.policy, NothingKnown(), time_left=lambda: 0.01)


def test_what_the_api_server_gives_each_object_anew_does_not_count() -> None:
    asked = AskedRule()
    jobs = [
        changed(
            {
                "metadata.uid": f"u-{second}",
                "metadata.creationTimestamp": f"2026-03-02T09:30:0{second}Z",
                "metadata.managedFields": [{"manager": "kubectl", "time": f"2026-03-02T09:30:0{second}Z"}],
            },
            JOB,
        )
        for second in range(4)
    ]
    assert [asked.again(job) for job in jobs] == [1, 1, 0, 0]


@both
def test_who_manages_which_field_and_when_does_not_count(kind: type[Asked]) -> None:
    asked = kind()
    managed = [
        changed({"metadata.managedFields": [{"manager": "kubectl", "time": f"2026-03-02T09:30:0{second}Z"}]}, JOB)
        for second in range(4)
    ]
    assert [asked.again(job) for job in managed] == [1, 1, 0, 0]


def test_a_mutating_review_with_a_uid_is_another() -> None:
    asked = Asked()
    asked.known()
    assert asked.again(changed({"metadata.uid": "u-9"}, JOB)) == 1


def test_a_rule_that_looks_at_the_uid_is_asked() -> None:
    asked = AskedRule(lambda job, _: job.metadata.uid)
    assert [asked.again() for _ in range(4)] == [1] * 4


@hooks
def test_the_reply_names_the_policy(hook: Hook) -> None:
    policies = load_policies(json.dumps(cases.HEAD))
    known: dict[str, Any] = {"policies": policies, "view": NothingKnown(), "today": TODAY, "time_left": lambda: 9.0}
    before = DecidedBefore()
    whole = pipelines.decide(hook, request(JOB), **known)
    assert whole.policy
    for _ in range(3):
        again = pipelines.decide(hook, request(JOB), mutating=before.mutate, validating=before.validate, **known)
        assert (reply(again), again.policy) == (reply(whole), whole.policy)
    assert before.size
