"""The rule `created-by`: in a new job, the annotation can only name the requester. An update cannot change the name."""

from typing import Any

import pytest

from tests.support.jobs import changed
from tests.support.kueue_objects import config
from tests.support.rule_checks import decide, violations
from webhook.api.annotations import CREATED_BY, TIMEOUT
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason

PATH = f"metadata.annotations[{CREATED_BY}]"


def by(name: str | None, **more: str) -> dict[str, Any]:
    return {"metadata.annotations": {**more, **({} if name is None else {CREATED_BY: name})}}


@pytest.mark.parametrize("name", [None, "alice"])
def test_name_of_the_requester_in_a_new_job_is_accepted(name: str | None) -> None:
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
def test_update_that_changes_the_name_is_rejected(old: str | None, new: str | None, message: str, fix: str) -> None:
    [violation] = violations("created-by", by(new), old=by(old))
    assert (violation.path, violation.message, violation.fix) == (PATH, message, fix)


@pytest.mark.parametrize("name", [None, "alice", "bob"])
def test_update_that_keeps_the_name_is_accepted_from_every_user(name: str | None) -> None:
    assert violations("created-by", by(name, other="x"), old=by(name)) == []


def is_rejected(job: Any, username: str, policy: str = "", **about: Any) -> bool:
    decision = decide(job, policy, username=username, **about)
    return any(finding.rule == "created-by" for finding in decision.denied)


COPY = {"metadata.labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"}, **by("alice")}


@pytest.mark.parametrize("kueue", [True, False])
@pytest.mark.parametrize("requester", ["system:serviceaccount:kueue-system:multikueue-sa", "eve"])
def test_copied_job_of_another_user_is_accepted_only_from_multikueue(requester: str, kueue: bool) -> None:
    trusted = kueue and requester != "eve"
    assert is_rejected(changed(COPY), requester, view=Snapshot([config()] if kueue else [])) is not trusted


def test_backup_tool_needs_an_exemption_to_restore_the_jobs_of_users() -> None:
    velero = "system:serviceaccount:velero:velero"
    assert is_rejected(changed(by("alice")), velero)
    policy = f"exemptions: [{{rules: [created-by], users: ['{velero}'], reason: backups}}]"
    assert not is_rejected(changed(by("alice")), velero, policy)
    assert is_rejected(changed(by("alice")), "eve", policy)


def test_name_is_rejected_if_the_stored_job_is_unreadable() -> None:
    assert is_rejected(changed(by("eve")), "eve", old={"metadata": {"annotations": 3}, "spec": 3})


def test_changed_name_is_rejected_together_with_another_change() -> None:
    assert is_rejected(changed(by("eve", **{TIMEOUT: "1h"})), "eve", old=changed(by("alice")))


def test_unknown_requester_causes_no_violation() -> None:
    assert not is_rejected(changed(by("alice")), "")
