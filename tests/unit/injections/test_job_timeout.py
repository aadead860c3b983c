import json

import pytest

from tests.support.injecting import Example, hold, inject, mpijob
from webhook.admission.pipelines import Policy, load_policy
from webhook.api import duration
from webhook.api.limits import MAX_DURATION_CHARACTERS

TIMEOUT = "training.openshift.io/timeout"
ACTION = "training.openshift.io/timeout-action"
ENDS = "the job is ended and fails"
DAY = ({"/spec/runPolicy": {"activeDeadlineSeconds": 86_400}}, f"{ENDS} after 24h (86400 s); the default")
EXAMPLE = Example({"default": "24855d3h14m7s"})


def with_rule(rule: dict[str, object]) -> Policy:
    """A policy with these settings of the rule `job-timeout`."""
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}
    return load_policy(json.dumps({**head, "rules": {"job-timeout": rule}}))


def annotated(**values: str) -> dict[str, object]:
    return mpijob(metadata={"annotations": {ACTION if key == "action" else TIMEOUT: v for key, v in values.items()}})


def test_default_limit_is_one_day():
    added, notes = inject("job-timeout", mpijob())
    assert added == DAY[0]
    assert notes == [f"{ENDS} after 24h (86400 s); set {TIMEOUT} for more"]


@pytest.mark.parametrize(("text", "seconds"), [("72h", 259_200), ("90m", 5_400), ("1h30m", 5_400), ("7d", 604_800)])
@pytest.mark.parametrize("values", [{}, {"action": "terminate"}])
def test_annotation_becomes_the_limit(text, seconds, values):
    added, notes = inject("job-timeout", annotated(timeout=text, **values))
    assert added == {"/spec/runPolicy": {"activeDeadlineSeconds": seconds}}
    assert notes == [f"{ENDS} after {text} ({seconds} s); as annotated"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("3 days", '"3 days" is not a duration like 72h or 7d'),
        ("", '"" is not a duration like 72h or 7d'),
        ("3600", '"3600" needs a unit, for example 72h or 7d'),
        ("0h", '"0h" is zero'),
        ("0.5s", '"0.5s" is not whole seconds'),
        ("99999d", '"99999d" is longer than 24855d'),
    ],
)
def test_invalid_annotation_is_reported_and_the_default_applies(text, fault):
    added, notes = inject("job-timeout", annotated(timeout=text))
    assert added == DAY[0]
    assert notes == [f"{TIMEOUT} {fault}; 24h applies", DAY[1]]


def test_without_a_default_only_the_annotation_applies():
    assert inject("job-timeout", mpijob(), default=None) == ({}, [])
    assert inject("job-timeout", annotated(timeout="2d"), default=None)[0] == {
        "/spec/runPolicy": {"activeDeadlineSeconds": 172_800}
    }
    notes = [f'{TIMEOUT} "soon" is not a duration like 72h or 7d; no limit applies']
    assert inject("job-timeout", annotated(timeout="soon"), default=None) == ({}, notes)


@pytest.mark.parametrize("seconds", [0, 60, 10**9])
@pytest.mark.parametrize("values", [{}, {"timeout": "72h"}, {"timeout": "soon"}, {"action": "never"}])
def test_limit_of_the_user_stays(seconds, values):
    job = annotated(**values)
    job["spec"]["runPolicy"] = {"activeDeadlineSeconds": seconds}
    assert inject("job-timeout", job) == ({}, [])


@pytest.mark.parametrize(
    ("timeout", "rule", "seconds"),
    [
        ({}, {}, 604_800),
        ({"timeout": "72h"}, {}, 604_800),
        ({}, {"max": "12h"}, 43_200),
        ({"timeout": "72h"}, {"max": None}, None),
        ({"timeout": "72h"}, {"action": "warn"}, None),
    ],
)
def test_notify_only_job_gets_the_maximum_as_its_limit(timeout, rule, seconds):
    decision = hold(annotated(action="notify-only", **timeout), with_rule(rule))
    run_policy = decision.document["spec"].get("runPolicy", {})
    assert run_policy.get("activeDeadlineSeconds") == seconds
    note = f"notify-only: the job is ended and fails after {seconds} s, the longest time that is allowed"
    assert (note in decision.told.get("job-timeout", [])) is (seconds is not None)
    assert len(f"job-timeout: {note}") <= 120


@pytest.mark.parametrize("action", ["Notify-Only", "kill", ""])
def test_unknown_action_is_reported(action):
    added, notes = inject("job-timeout", annotated(action=action, timeout="1h"))
    assert added == {"/spec/runPolicy": {"activeDeadlineSeconds": 3_600}}
    assert notes[0] == f'{ACTION} "{action}" is not terminate or notify-only; terminate applies'


def test_limit_is_added_to_an_existing_run_policy():
    added, _ = inject("job-timeout", mpijob(run_policy={"activeDeadlineSeconds": None, "backoffLimit": 1}))
    assert added == {"/spec/runPolicy/activeDeadlineSeconds": 86_400}


def test_longest_notes_fit_into_a_warning():
    longest = "24855d3h14m7s"
    assert duration.parse(longest) == duration.MAX_SECONDS
    zero = "0" * (MAX_DURATION_CHARACTERS - 1) + "s"
    for text in ("x" * 300, "1" * MAX_DURATION_CHARACTERS, zero, "99999999999d", "0.00001s"):
        job = annotated(timeout=text, action="y" * 300)
        notes = inject("job-timeout", job, default=longest)[1]
        assert len(notes) == 3
        assert all(len(f"job-timeout: {note}") <= 120 for note in notes), notes
    (note,) = inject("job-timeout", mpijob(), default=longest)[1]
    assert len(f"job-timeout: {note}") <= 120


@pytest.mark.parametrize(
    ("rule", "seconds"),
    [
        ({"max": "12h"}, 43_200),
        ({"max": "7d"}, 86_400),
        ({"max": None}, 86_400),
        ({"max": "1h", "action": "off"}, 86_400),
    ],
)
def test_default_does_not_exceed_the_maximum_of_the_rule(rule, seconds):
    policy = with_rule(rule)
    for job, expected in ((mpijob(), seconds), (annotated(timeout="2d"), 172_800)):
        assert hold(job, policy).document["spec"]["runPolicy"]["activeDeadlineSeconds"] == expected
