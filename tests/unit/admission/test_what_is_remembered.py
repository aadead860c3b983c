"""What is remembered of decisions, what is not, and how much."""

import gc
import json
import weakref
from dataclasses import replace
from typing import Any

import pytest

from tests.bench.replies import cases
from tests.support.asked import (
    JOB,
    OTHER_TEAM,
    QUOTA,
    TEAM,
    TODAY,
    Asked,
    AskedRule,
    both,
    decided,
)
from tests.support.jobs import changed, request
from webhook.admission import decided_before
from webhook.admission.decided_before import DecidedBefore
from webhook.api import written
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.kit.settings import Action, InjectionSettings
from webhook.policy.in_force import load_policy


@both
@pytest.mark.parametrize(
    ("job", "fields"),
    [
        (JOB, {"old": changed({"spec.slotsPerWorker": 7}, JOB)}),
        (changed({"metadata.annotations": {"long": "x" * decided_before.LARGEST}}, JOB), {}),
    ],
    ids=["update", "large"],
)
def test_what_is_not_kept(kind: type[Asked], job: dict[str, Any], fields: dict[str, Any]) -> None:
    asked = kind()
    for _ in range(4):
        asked.again(job, **fields)
    assert asked.before.size == 0


@both
def test_nothing_is_kept_of_plug_ins_or_after_a_long_list(kind: type[Asked]) -> None:
    asked = kind(plugin="theirs")
    assert [asked.again() for _ in range(4)] == [1] * 4
    many = Snapshot([TEAM | {"metadata": {"name": f"team-{number}"}} for number in range(40)])
    asked = kind(lambda _, ctx: ctx.view.all(NAMESPACES))
    assert [asked.again(view=many) for _ in range(4)] == [1] * 4


@pytest.mark.parametrize("action", ["deny", "warn"])
def test_nothing_is_kept_where_a_quota_counts_the_job(action: str) -> None:
    policy = load_policy(json.dumps(cases.HEAD | {"rules": {"resource-quota": {"action": action}}}))
    before, view = DecidedBefore(), Snapshot([TEAM, QUOTA])
    for uid in ("u-1", "u-2", "u-3"):
        asked = request(changed({"metadata.uid": uid}, JOB))
        reservation = decided("validate", before, asked, policy, view).reservation
        assert (reservation.uid if reservation else "") == (uid if action == "deny" else "")
    assert before.size == 0
    for _ in range(3):
        decided("validate", before, request(JOB), policy, Snapshot([TEAM]))
    assert before.size > 0, "without a quota it is"


def test_nothing_is_kept_of_own_rules_or_rights() -> None:
    own = {"id": "never", "expression": "false", "message": "never"}
    policy = load_policy(json.dumps(cases.HEAD | {"rules": {"custom": [own]}}))
    before = DecidedBefore()
    for _ in range(3):
        assert not decided("validate", before, request(JOB), policy, NothingKnown()).allowed
    assert before.size == 0
    annotations = {"training.openshift.io/exempt": "asked", "training.openshift.io/exempt-reason": "a test"}
    asked = AskedRule()
    job = changed({"metadata.annotations": annotations}, JOB)
    assert [asked.again(job) for _ in range(3)] == [1] * 3
    for granted in (True, False):
        known: dict[str, Any] = {"policy": asked.policy, "view": NothingKnown(), "today": TODAY}
        decision = asked.before.validate(request(job), granted={"asked": granted}, **known)
        assert decision.allowed is granted


def test_nothing_is_kept_where_an_injection_of_a_plug_in_is_required() -> None:
    asked = Asked(plugin="theirs")
    ((entry, _),) = asked.policy.injections
    required = ((entry, InjectionSettings(required=Action.WARN)),)
    policy = replace(asked.policy, injections=required, rules=())
    for _ in range(3):
        decided("validate", asked.before, request(JOB), policy, NothingKnown())
    assert (asked.times, asked.before.size) == (3, 0)


def test_many_findings_are_not_kept() -> None:
    policy = load_policy(json.dumps(cases.HEAD | {"mode": "warn"}))
    limits = {f"example.com/r{number}": "wrong" for number in range(decided_before.MOST_FOUND + 1)}
    job = changed({"Worker.template.spec.containers.0.resources.limits": limits}, JOB)
    before = DecidedBefore()
    for _ in range(3):
        decision = decided("validate", before, request(job), policy, NothingKnown())
        assert len(decision.warned) > decided_before.MOST_FOUND
    assert before.size == 0


@both
def test_long_names_and_large_answers_are_not_kept(kind: type[Asked]) -> None:
    asked = kind()
    for _ in range(3):
        asked.again(username="\N{SNOWMAN}" * decided_before.LARGEST)
    annotations = {f"a{number}": "" for number in range(4000)}
    view = Snapshot([TEAM | {"metadata": {"name": "team", "annotations": annotations}}])
    large = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    for _ in range(3):
        large.again(view=view)
    assert asked.before.size == large.before.size == 0


@both
def test_what_is_kept_in_place_of_another_is_counted_once(kind: type[Asked]) -> None:
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    asked.known(Snapshot([TEAM]))
    size = asked.before.size
    for view in (Snapshot([OTHER_TEAM]), Snapshot([TEAM])):
        assert [asked.again(view=view) for _ in range(3)] == [1, 0, 0]
        assert asked.before.size == size


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each review that is noted."""
    noted: list[int] = []
    view = decided_before.AskedView
    monkeypatch.setattr(decided_before, "AskedView", lambda asked: noted.append(1) or view(asked))
    return noted


VIEWS = Snapshot([TEAM]), Snapshot([OTHER_TEAM])


@both
@pytest.mark.parametrize("why", ["cluster", "text", "too large"])
def test_what_is_noted_in_vain_is_not_noted_for_long(
    kind: type[Asked], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = _counted(monkeypatch)
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    for number in range(9):
        labels = {"build": str(number)} if why == "text" else {}
        annotations = {"note": "x" * 20_000} if why == "too large" else {}
        job = changed({"metadata.labels": labels, "metadata.annotations": annotations}, JOB)
        with monkeypatch.context() as patch:
            patch.setattr(decided_before, "MOST_OF_ONE", 10_000)
            asked.again(job, view=VIEWS[number % 2 if why == "cluster" else 0])
    assert len(noted) == decided_before.MOST_IN_VAIN


@both
def test_what_is_recalled_between_is_noted_again_and_again(kind: type[Asked]) -> None:
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    asked.known(VIEWS[0])
    for number in range(9):
        assert [asked.again(view=VIEWS[1 - number % 2]) for _ in range(2)] == [1, 0]


@both
def test_what_was_in_vain_is_counted_of_so_many_jobs(kind: type[Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_before, "MOST_SEEN", 5)
    asked = kind(lambda _, ctx: ctx.view.get(NAMESPACES, "team"))
    for number in range(20):
        for view in VIEWS * 2:
            asked.again(view=view, username=f"user-{number}")
        assert len(asked.before._in_vain) <= 5


def test_a_job_with_a_generated_name_is_new() -> None:
    asked = AskedRule()
    for number in range(4):
        asked.again(changed({"metadata.generateName": "train-", "metadata.name": f"train-{number}"}, JOB), name="")
    assert asked.before.size == 0


def test_a_policy_that_was_replaced_is_not_kept() -> None:
    asked = AskedRule()
    asked.known()
    gone = weakref.ref(asked.policy)
    asked.policy = load_policy(None)
    written.known.clear()  # what is known of a spec has its policy
    gc.collect()
    assert gone() is None


@both
def test_memory_has_a_bound(kind: type[Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_before, "MOST_IN_ALL", 40_000)
    asked = kind()
    for number in range(50):
        for _ in range(2):
            asked.again(changed({"metadata.name": f"job-{number}"}, JOB))
        assert 0 < asked.before.size <= 40_000
    assert asked.again(changed({"metadata.name": "job-49"}, JOB)) == 0
    assert asked.again(changed({"metadata.name": "job-0"}, JOB)) == 1
