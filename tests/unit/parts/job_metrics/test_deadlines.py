"""A notice says that the time limit of a job is near or has passed. All replicas together write each notice once."""

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.support.job_lives import HOUR, START, condition, launcher_of, life
from webhook.cluster.job_lives import JobLife
from webhook.parts.job_metrics import deadline_events
from webhook.parts.job_metrics.deadline_events import NOTICE_DURATION, due, next_due
from webhook.predict.deadlines import in_words, remaining

DAY = 24 * HOUR
EVENT_TTL = 3600.0  # seconds for which an API server stores an Event
NOTIFY = {"timeout": "10h", "timeout-action": "notify-only"}
RUNNING = life("train", condition("Running"), started=START)
NOTIFIED = life("train", condition("Running"), started=START, annotations=NOTIFY)
ENDED = life("train", condition("Failed", reason="DeadlineExceeded"), started=START, completed=START + DAY)
LIMITED = launcher_of(limit=int(DAY))


def notices(job: JobLife, launcher: Any, hours: float) -> list[str]:
    return [f"{notice.reason}: {notice.note}" for notice in due(job, launcher, START + hours * HOUR)]


@pytest.mark.parametrize(("hours", "count"), [(0, 0), (19.19, 0), (19.2, 1), (19.94, 1), (19.96, 0), (24, 0)])
def test_notice_of_a_near_limit_is_due_for_a_while_after_80_percent_of_the_time(hours: float, count: int) -> None:
    assert notices(RUNNING, LIMITED, hours) == count * [
        "TimeLimitNear: 80 % of this job's time limit of 1d (activeDeadlineSeconds) have passed. At "
        "2026-01-02T00:00:00Z the job is terminated and fails, even if it is nearly done: save a checkpoint before. "
        "For a longer limit of the next job set the annotation training.openshift.io/timeout."
    ]


def test_notice_about_the_end_is_due_if_the_operator_reports_the_limit_as_the_reason() -> None:
    note = (
        "TimeLimitReached: This job was terminated after its time limit of 1d (activeDeadlineSeconds), and has failed. "
        "Its pods' logs show its progress. For a longer limit set the annotation training.openshift.io/timeout, and "
        "create the job again."
    )
    over = launcher_of("train-launcher", condition("Failed"), limit=int(DAY))
    assert notices(ENDED, over, 24) == notices(ENDED, over, 24.7) == [note]
    assert notices(ENDED, over, 24.8) == []
    assert (
        "after its time limit (activeDeadlineSeconds)" in notices(ENDED, None, 24)[0]
    )  # the operator has deleted the launcher's Job


def test_notices_for_notify_only_say_that_the_job_continues() -> None:
    (near,) = notices(NOTIFIED, launcher_of(), 8)
    assert near == (
        "TimeLimitNear: 80 % of the 10h in the annotation training.openshift.io/timeout have passed, and the rest "
        "passes at 2026-01-01T10:00:00Z. The job continues, because of training.openshift.io/timeout-action: "
        "notify-only. Check whether it makes progress, and delete it if it does not."
    )
    (over,) = notices(NOTIFIED, launcher_of(), 10.7)
    assert over.startswith(
        "TimeLimitReached: The 10h in the annotation training.openshift.io/timeout have passed. The job continues, "
    )
    assert notices(NOTIFIED, launcher_of(), 10.8) == []
    # The limit in activeDeadlineSeconds gets a notice too.
    (near,) = notices(NOTIFIED, LIMITED, 8)
    assert "The job continues until 2026-01-02T00:00:00Z, when it is terminated (activeDeadlineSeconds), " in near
    (near,) = notices(NOTIFIED, LIMITED, 19.2)
    assert "80 % of this job's time limit of 1d" in near


@pytest.mark.parametrize(
    ("job", "launcher"),
    [
        (RUNNING, None),
        (RUNNING, launcher_of()),
        (RUNNING, launcher_of(limit=int(DAY), started=None)),
        (RUNNING, launcher_of(limit=int(DAY), suspend=True)),
        (RUNNING, launcher_of(limit=int(DAY), owner="an earlier job with this name")),
        (RUNNING, launcher_of("train-launcher", condition("Complete"), limit=int(DAY))),
        (RUNNING, launcher_of(limit=2**63 - 1)),
        (structs.replace(RUNNING, leaving=True), LIMITED),
        (structs.replace(ENDED, leaving=True), LIMITED),
        (life(managedBy="kueue.x-k8s.io/multikueue"), LIMITED),
        (life("train", condition("Succeeded"), completed=START + DAY - 1), LIMITED),
        (life("train", condition("Failed", reason="MPIJobFailed"), completed=START + DAY - 1), LIMITED),
    ],
)
def test_inactive_limit_gets_no_notice(job: JobLife, launcher: Any) -> None:
    assert not any(notices(job, launcher, hours) for hours in range(30))
    assert next_due(job, launcher, START) is None
    assert remaining(job, launcher, START) is None


def test_each_run_and_each_limit_gets_a_separate_notice() -> None:
    def keys(**launcher: Any) -> set[str]:
        return {notice.key for notice in due(RUNNING, launcher_of(**launcher), START + 20 * HOUR)}

    first = keys(limit=int(25 * HOUR))
    assert len(first) == 1
    # Kueue started the job half an hour later.
    assert not first & keys(limit=int(24 * HOUR), started=START + HOUR / 2)
    # A user changed the limit of the launcher's Job.
    assert not first & keys(limit=int(24.5 * HOUR))
    # The job has run for only ten hours.
    assert keys(limit=int(25 * HOUR), started=START + 10 * HOUR) == set()


def test_remaining_time_is_returned_in_seconds_and_in_words() -> None:
    assert remaining(RUNNING, LIMITED, START + HOUR) == 23 * HOUR
    assert remaining(RUNNING, LIMITED, START + 25 * HOUR) == 0
    assert remaining(NOTIFIED, launcher_of(), START) is None
    at = START + 90 * 60
    assert in_words(RUNNING, LIMITED, at) == (
        "22h30m of 1d left: at 2026-01-02T00:00:00Z it is terminated (activeDeadlineSeconds)"
    )
    assert in_words(NOTIFIED, LIMITED, at) == (
        "8h30m of 10h left: at 2026-01-01T10:00:00Z it has used its requested time (training.openshift.io/timeout); "
        "22h30m of 1d left: at 2026-01-02T00:00:00Z it is terminated (activeDeadlineSeconds)"
    )
    waiting = "its limit of 1d starts with the launcher, and again after each suspension"
    assert in_words(life(activeDeadlineSeconds=int(DAY)), None, at) == waiting
    assert in_words(RUNNING, launcher_of(limit=int(DAY), suspend=True), at) == waiting
    assert in_words(ENDED, LIMITED, at) == in_words(RUNNING, launcher_of(), at) == in_words(RUNNING, None, at) == ""


def test_notice_is_due_for_a_shorter_time_than_events_are_stored() -> None:
    assert NOTICE_DURATION < EVENT_TTL


@given(
    limit=st.integers(1, 10**6),
    looks=st.lists(st.floats(0, 2 * 10**6), max_size=40),
    notify=st.integers(1, 10**6) | st.none(),
)
def test_each_notice_is_written_once_if_replicas_restart(limit: int, looks: list[float], notify: int | None) -> None:
    """At each time in `looks`, a replica without stored data handles the job. Only the API server stores the Events."""
    annotations = {"timeout": f"{notify}s", "timeout-action": "notify-only"} if notify else None
    running = life("train", started=START, annotations=annotations)
    ended = life("train", condition("Failed", reason="DeadlineExceeded"), started=START, completed=START + limit)
    expiry: dict[str, float] = {}  # the time at which the API server deletes each Event
    created: list[str] = []
    for at in sorted(looks):
        job, launcher = (running, launcher_of(limit=limit)) if at < limit else (ended, None)
        for notice in due(job, launcher, START + at):
            if expiry.get(notice.key, -inf) <= at:  # before its deletion, the Event cannot be created again
                expiry[notice.key] = at + EVENT_TTL
                created.append(notice.key)
    assert len(created) == len(set(created))
    windows = [(0.8 * limit, min(limit, 0.8 * limit + NOTICE_DURATION)), (limit, limit + NOTICE_DURATION)]
    if notify and notify < limit:
        windows.append((0.8 * notify, min(notify, 0.8 * notify + NOTICE_DURATION)))
        windows.append((notify, min(limit, notify + NOTICE_DURATION)))
    slack = 1e-3  # for rounding errors of floats
    expected = sum(any(since + slack < at < until - slack for at in looks) for since, until in windows)
    at_most = sum(any(since - slack < at < until + slack for at in looks) for since, until in windows)
    assert expected <= len(created) <= at_most


@given(limit=st.integers(1, 10**6), after=st.floats(0, 2 * 10**6))
def test_next_due_returns_the_wait_until_the_next_notice(limit: int, after: float) -> None:
    launcher, now = launcher_of(limit=limit), START + after
    wait = next_due(RUNNING, launcher, now)
    before = {notice.key for notice in due(RUNNING, launcher, now)}
    if wait is None:
        assert after >= 0.8 * limit - 1e-3
    else:
        assert before == set()
        assert [notice.reason for notice in due(RUNNING, launcher, now + wait + 1e-3)] == [deadline_events.IS_NEAR]
