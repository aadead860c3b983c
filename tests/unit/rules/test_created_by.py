"""created-by: the annotation is the requester's name at creation and cannot change."""

from datetime import date
from typing import Any

import pytest

from tests.support.jobs import changed, request
from tests.support.kueue_objects import config
from tests.support.policies import HEADER
from tests.support.rule_checks import violations
from webhook.admission import pipelines
from webhook.admission.pipelines import Decision, load_policy
from webhook.api.annotations import CREATED_BY, TIMEOUT
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason

PATH = f"metadata.annotations[{CREATED_BY}]"


def by(name: str | None, **more: str) -> dict[str, Any]:
    return {"metadata.annotations": {**more, **({} if name is None else {CREATED_BY: name})}}


@pytest.mark.parametrize("name", [None, "alice"])
def test_a_new_job_may_have_the_requester_s_name(name: str | None) -> None:
    assert violations("created-by", by(name)) == []


@pytest.mark.parametrize("name", ["bob", "", "Alice", "alice ", "system:serviceaccount:team-a:alice"])
def test_another_name_in_a_new_job_is_rejected(name: str) -> None:
    [violation] = violations("created-by", by(name))
    assert (violation.path, violation.message) == (PATH, f'is "{name}", but "alice" creates the job')
    assert violation.fix == "Remove it: admission writes it."
    assert violation.reason is CauseReason.FORBIDDEN


@pytest.mark.parametrize(
    ("old", "new", "message", "fix"),
    [
        ("bob", "alice", '"bob" was changed to "alice"', "Restore it."),
        ("bob", "", '"bob" was changed to ""', "Restore it."),
        ("bob", None, '"bob" was removed', "Restore it."),
        (None, "alice", '"alice" was added to a job that exists', "Remove it."),
    ],
)
def test_an_update_that_changes_it_is_rejected(old: str | None, new: str | None, message: str, fix: str) -> None:
    [violation] = violations("created-by", by(new), old=by(old))
    assert (violation.path, violation.message, violation.fix) == (PATH, message, fix)


@pytest.mark.parametrize("name", [None, "alice", "bob"])
def test_an_update_of_any_user_that_keeps_it_is_admitted(name: str | None) -> None:
    assert violations("created-by", by(name, other="x"), old=by(name)) == []


def validate(job: Any, username: str, policy: str = "", **about: Any) -> Decision:
    view = about.pop("view", Snapshot([]))
    sent = request(job, username=username, **about)
    return pipelines.validate(sent, policy=load_policy(HEADER + policy), view=view, today=date(2026, 11, 26))


def names_another(decision: Decision) -> bool:
    return any(finding.rule == "created-by" for finding in decision.denied)


COPY = {"metadata.labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"}, **by("alice")}


@pytest.mark.parametrize("kueue", [True, False])
@pytest.mark.parametrize("requester", ["system:serviceaccount:kueue-system:multikueue-sa", "eve"])
def test_only_a_controller_may_copy_the_job_of_another(requester: str, kueue: bool) -> None:
    believed = kueue and requester != "eve"
    decision = validate(changed(COPY), requester, view=Snapshot([config()] if kueue else []))
    assert names_another(decision) is not believed


def test_a_program_that_restores_jobs_needs_an_exemption() -> None:
    velero = "system:serviceaccount:velero:velero"
    assert names_another(validate(changed(by("alice")), velero))
    policy = f"exemptions: [{{rules: [created-by], users: ['{velero}'], reason: backups}}]"
    assert not names_another(validate(changed(by("alice")), velero, policy))
    assert names_another(validate(changed(by("alice")), "eve", policy))


def test_the_annotation_of_an_unreadable_stored_job_excuses_nothing() -> None:
    assert names_another(validate(changed(by("eve")), "eve", old={"metadata": {"annotations": 3}, "spec": 3}))


def test_another_change_next_to_it_does_not_excuse_it() -> None:
    decision = validate(changed(by("eve", **{TIMEOUT: "1h"})), "eve", old=changed(by("alice")))
    assert names_another(decision)


def test_unknown_requester_causes_no_violation() -> None:
    assert not names_another(validate(changed(by("alice")), ""))
