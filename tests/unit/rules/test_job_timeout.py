"""job-timeout: readable, of one opinion, not too long."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from tests.support.any_job import Json, any_job
from tests.support.jobs import changed, request
from tests.support.policies import HEADER
from tests.support.rule_checks import fits_a_warning, found, run, violations
from tests.support.strategies import PROPERTY
from webhook.admission import pipelines
from webhook.admission.pipelines import load_policy
from webhook.cluster.view import NothingKnown
from webhook.rules import CauseReason
from webhook.rules.job_timeout import Settings

FIELD = "spec.runPolicy.activeDeadlineSeconds"
TIMEOUT = "training.openshift.io/timeout"
ACTION = "training.openshift.io/timeout-action"
DAY = 24 * 60 * 60


def job(seconds: int | None = None, **annotations: str) -> Json:
    names = {"timeout": TIMEOUT, "action": ACTION}
    metadata = {"metadata.annotations": {names[key]: value for key, value in annotations.items()}}
    return metadata | ({FIELD: seconds} if seconds is not None else {})


@pytest.mark.parametrize(
    "changes",
    [
        job(),
        job(DAY),
        job(7 * DAY),
        job(timeout="7d"),
        job(3 * DAY, timeout="72h"),
        job(action="notify-only"),
        job(DAY, action="terminate"),
    ],
)
def test_good(changes: Json) -> None:
    assert violations("job-timeout", changes) == []


@pytest.mark.parametrize(
    ("changes", "path", "message", "fix"),
    [
        (
            job(7 * DAY + 1),
            FIELD,
            "604801 s are longer than 7d (604800 s)",
            "Set it to 604800 or less, or ask who may exempt jobs from it.",
        ),
        (
            job(timeout="8d"),
            f"metadata.annotations[{TIMEOUT}]",
            "691200 s are longer than 7d (604800 s)",
            "Set it to 7d or less, or ask who may exempt jobs from it.",
        ),
        (  # as the injection leaves it, or the user wrote both
            job(8 * DAY, timeout="8d"),
            f"metadata.annotations[{TIMEOUT}]",
            "691200 s are longer than 7d (604800 s)",
            "Set it to 7d or less and remove spec.runPolicy.activeDeadlineSeconds if you wrote it, "
            "or ask who may exempt jobs from it.",
        ),
        (
            job(timeout="soon"),
            f"metadata.annotations[{TIMEOUT}]",
            f'{TIMEOUT} "soon" is not a duration like 72h or 7d',
            "Write it as 90m, 72h or 7d.",
        ),
        (
            job(DAY, timeout="72h"),
            FIELD,
            f'is 86400, and {TIMEOUT} "72h" is 259200 s',
            "Remove one of the two.",
        ),
        (
            job(action="explode\n"),
            f"metadata.annotations[{ACTION}]",
            f'{ACTION} "explode?" is not known',
            "Use terminate or notify-only, or remove it.",
        ),
    ],
)
def test_refused(changes: Json, path: str, message: str, fix: str) -> None:
    [violation] = violations("job-timeout", changes)
    assert (violation.path, violation.message, violation.fix) == (path, message, fix)
    assert not violation.advisory


def test_what_is_too_long_and_of_two_opinions_is_both() -> None:
    annotation, field = violations("job-timeout", job(30 * DAY, timeout="9d"))
    assert (annotation.path, annotation.fix) == (f"metadata.annotations[{TIMEOUT}]", "Remove it.")
    assert annotation.message == f'{TIMEOUT} "9d" is 777600 s, and activeDeadlineSeconds is 2592000'
    assert (field.path, field.fix.partition(",")[0]) == (FIELD, "Set it to 604800 or less")
    assert [each.fix for each in violations("job-timeout", job(DAY, timeout="9d"))] == ["Remove it."]


def test_the_annotation_of_a_job_that_exists() -> None:
    [violation] = violations("job-timeout", job(DAY, timeout="72h"), old=job(DAY, timeout="24h"))
    assert violation.advisory
    assert violation.message == f'{TIMEOUT} "72h" changes nothing on a job that exists, which has 86400 s'
    assert violation.fix == f"Set {FIELD} to 259200."
    assert found(violations("job-timeout", job(3 * DAY, timeout="72h"), old=job(DAY, timeout="72h"))) == []
    assert fits_a_warning("job-timeout", violation) or len(violation.message) < 120


@pytest.mark.parametrize("stored", [DAY, 7 * DAY])
def test_the_annotation_of_a_job_that_exists_asks_for_too_much(stored: int) -> None:
    [violation] = violations("job-timeout", job(stored, timeout="9d"), old=job(stored))
    assert violation.fix == f"Set {FIELD} to 604800 or less, or ask who may exempt jobs from it."
    assert violation.advisory


@pytest.mark.parametrize(
    ("without", "most", "fix"),
    [
        (job(), "7d", "Set it to 604800 or less, or ask who may exempt jobs from it."),
        (job(action="notify-only"), None, "Set it to the seconds that the job may take."),
        (job(timeout="72h"), "7d", "Set it to 259200, as annotated."),
        (job(timeout="9d"), None, "Set it to 777600, as annotated."),
        (job(timeout="9d"), "7d", "Set it to as many seconds as you annotate instead."),
    ],
)
def test_no_limit_at_all(without: Json, most: str | None, fix: str) -> None:
    allowed = violations("job-timeout", without, settings={"max": most})
    violation, *others = violations("job-timeout", without, settings={"max": most, "unlimited": False})
    assert others == allowed, "what is wrong otherwise"
    assert (violation.path, violation.reason) == (FIELD, CauseReason.REQUIRED)
    assert (violation.message, violation.fix) == ("is missing, and every job has a limit here", fix)


def test_a_limit_is_no_fault_where_every_job_has_one() -> None:
    assert violations("job-timeout", job(DAY), settings={"unlimited": False}) == []


def test_nobody_gets_around_a_limit_that_every_job_has() -> None:
    policy = load_policy(f"{HEADER}rules: {{job-timeout: {{unlimited: false}}}}")

    def denied(made: Json, stored: Json | None = None) -> list[str]:
        mutated = pipelines.mutate(request(made, old=stored), policy=policy, view=NothingKnown())
        sent = request(mutated.document if mutated.patch else made, old=stored)
        decision = pipelines.validate(sent, policy=policy, view=NothingKnown(), today=date.min)
        return [finding.rule for finding in decision.denied]

    for values in ({TIMEOUT: "72h"}, {}):
        assert denied(changed({"metadata.annotations": values})) == []
    for values in ({ACTION: "notify-only"}, {"training.openshift.io/skip": "job-timeout"}):
        assert denied(changed({"metadata.annotations": values})) == ["job-timeout"]
    assert denied(changed(job()), changed(job(DAY))) == ["job-timeout"], "taken out"
    labelled = changed({"metadata.labels": {"a": "b"}})
    assert denied(labelled, changed(job())) == [], "it never had one"


def test_the_limit_is_a_setting() -> None:
    assert violations("job-timeout", job(30 * DAY), settings={"max": None}) == []
    assert violations("job-timeout", job(DAY), settings={"max": "12h"})
    with pytest.raises(ValidationError):
        Settings(max="tomorrow")


def test_longer_for_whom_rbac_allows() -> None:
    exempt = {"training.openshift.io/exempt": "job-timeout", "training.openshift.io/exempt-reason": "OPS-1"}
    sent = request(changed(job(8 * DAY) | {"metadata.annotations": exempt}))

    def denied(granted: dict[str, bool] | None) -> list[str]:
        decision = pipelines.validate(
            sent, policy=load_policy(None), view=NothingKnown(), granted=granted, today=date.min
        )
        return [finding.rule for finding in decision.denied]

    assert denied({"job-timeout": False}) == ["job-timeout"]
    assert denied({"job-timeout": True}) == []


@PROPERTY
@given(any_job())
def test_never_raises(made: Any) -> None:
    run("job-timeout", made)
