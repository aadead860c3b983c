"""The times at which notices are due. All replicas together send each notice once."""

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.support.job_lives import HOUR, START, condition, launcher_of, life
from webhook.cluster.job_lives import JobLife
from webhook.parts.job_metrics import deadline_events
from webhook.parts.job_metrics.deadline_events import TOLD_FOR, due, next_due
from webhook.predict.deadlines import in_words, remaining

DAY = 24 * HOUR
KEPT = 3600.0  # how long an API server keeps an Event
NOTIFY = {"timeout": "10h", "timeout-action": "notify-only"}
RUNNING = life("train", condition("Running"), started=START)
ASKING = life("train", condition("Running"), started=START, annotations=NOTIFY)
ENDED = life("train", condition("Failed", reason="DeadlineExceeded"), started=START, completed=START + DAY)
LIMITED = launcher_of(limit=int(DAY))


def told(job: JobLife, launcher: Any, hours: float) -> list[str]:
    return [f"{notice.reason}: {notice.note}" for notice in due(job, launcher, START + hours * HOUR)]


@pytest.mark.parametrize(("hours", "count"), [(0, 0), (19.19, 0), (19.2, 1), (19.94, 1), (19.96, 0), (24, 0)])
def test_most_of_a_limit_is_reported_from_80_percent_on_for_a_while(hours: float, count: int) -> None:
    assert told(RUNNING, LIMITED, hours) == count * [
        "TimeLimitNear: 80 % of the 1d that this job may take (activeDeadlineSeconds) are over. It is ended at "
        "2026-01-02T00:00:00Z and has failed then, however far it has come: let it save a checkpoint. "
        "The next one gets more time by the annotation training.openshift.io/timeout."
    ]


def test_the_end_is_reported_when_the_operator_says_that_it_was_the_limit() -> None:
    note = (
        "TimeLimitReached: This job was ended after the 1d that it may take (activeDeadlineSeconds), and has failed. "
        "Its pods' logs say how far it came. For more time set the annotation training.openshift.io/timeout, and "
        "create it again."
    )
    over = launcher_of("train-launcher", condition("Failed"), limit=int(DAY))
    assert told(ENDED, over, 24) == told(ENDED, over, 24.7) == [note]
    assert told(ENDED, over, 24.8) == []
    assert "after the time that it may take" in told(ENDED, None, 24)[0]  # its Job was cleaned up


def test_notified_job_continues() -> None:
    (near,) = told(ASKING, launcher_of(), 8)
    assert near == (
        "TimeLimitNear: 80 % of the 10h of training.openshift.io/timeout are over, and all of them at "
        "2026-01-01T10:00:00Z. The job goes on, by training.openshift.io/timeout-action: notify-only. "
        "Look whether it still makes progress, and delete it if it does not."
    )
    (over,) = told(ASKING, launcher_of(), 10.7)
    assert over.startswith("TimeLimitReached: The 10h of training.openshift.io/timeout are over. The job goes on, by")
    assert told(ASKING, launcher_of(), 10.8) == []
    # The limit of its policy gets a notice too.
    (near,) = told(ASKING, LIMITED, 8)
    assert "The job goes on until 2026-01-02T00:00:00Z, when it is ended (activeDeadlineSeconds), by" in near
    (near,) = told(ASKING, LIMITED, 19.2)
    assert "80 % of the 1d that this job may take" in near


@pytest.mark.parametrize(
    ("job", "launcher"),
    [
        (RUNNING, None),
        (RUNNING, launcher_of()),
        (RUNNING, launcher_of(limit=int(DAY), started=None)),
        (RUNNING, launcher_of(limit=int(DAY), suspend=True)),
        (RUNNING, launcher_of(limit=int(DAY), owner="an earlier job of this name")),
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
    assert [found for hours in range(30) for found in told(job, launcher, hours)] == []
    assert next_due(job, launcher, START) is None
    assert remaining(job, launcher, START) is None


def test_each_run_and_each_limit_gets_its_own_notice() -> None:
    def keys(**launcher: Any) -> set[str]:
        return {each.key for each in due(RUNNING, launcher_of(**launcher), START + 20 * HOUR)}

    first = keys(limit=int(25 * HOUR))
    assert len(first) == 1
    # Kueue let it wait for half an hour; a user gave the Job another limit.
    assert not first & keys(limit=int(24 * HOUR), started=START + HOUR / 2)
    assert not first & keys(limit=int(24.5 * HOUR))
    # It has run for a few hours only.
    assert keys(limit=int(25 * HOUR), started=START + 10 * HOUR) == set()


def test_remaining_time() -> None:
    assert remaining(RUNNING, LIMITED, START + HOUR) == 23 * HOUR
    assert remaining(RUNNING, LIMITED, START + 25 * HOUR) == 0
    assert remaining(ASKING, launcher_of(), START) is None
    at = START + 90 * 60
    assert in_words(RUNNING, LIMITED, at) == (
        "22h30m of 1d left: at 2026-01-02T00:00:00Z it is terminated (activeDeadlineSeconds)"
    )
    assert in_words(ASKING, LIMITED, at) == (
        "8h30m of 10h left: at 2026-01-01T10:00:00Z it has used its requested time (training.openshift.io/timeout); "
        "22h30m of 1d left: at 2026-01-02T00:00:00Z it is terminated (activeDeadlineSeconds)"
    )
    waiting = "its limit of 1d starts with the launcher, and again after each suspension"
    assert in_words(life(activeDeadlineSeconds=int(DAY)), None, at) == waiting
    assert in_words(RUNNING, launcher_of(limit=int(DAY), suspend=True), at) == waiting
    assert in_words(ENDED, LIMITED, at) == in_words(RUNNING, launcher_of(), at) == in_words(RUNNING, None, at) == ""


def test_notices_are_due_for_less_long_than_events_are_kept() -> None:
    assert TOLD_FOR < KEPT


@given(
    limit=st.integers(1, 10**6),
    looks=st.lists(st.floats(0, 2 * 10**6), max_size=40),
    notify=st.integers(1, 10**6) | st.none(),
)
def test_replicas_that_come_and_go_tell_each_notice_once(limit: int, looks: list[float], notify: int | None) -> None:
    """Each look is made by an arbitrary replica, which may have just started: replicas read only the cluster."""
    annotations = {"timeout": f"{notify}s", "timeout-action": "notify-only"} if notify else None
    running = life("train", started=START, annotations=annotations)
    ended = life("train", condition("Failed", reason="DeadlineExceeded"), started=START, completed=START + limit)
    kept: dict[str, float] = {}  # the Events of the API server, and until when it keeps them
    created: list[str] = []
    for at in sorted(looks):
        job, launcher = (running, launcher_of(limit=limit)) if at < limit else (ended, None)
        for notice in due(job, launcher, START + at):
            if kept.get(notice.key, -inf) <= at:  # or else it is a conflict
                kept[notice.key] = at + KEPT
                created.append(notice.key)
    assert len(created) == len(set(created))
    windows = [(0.8 * limit, min(limit, 0.8 * limit + TOLD_FOR)), (limit, limit + TOLD_FOR)]
    if notify and notify < limit:
        windows.append((0.8 * notify, min(notify, 0.8 * notify + TOLD_FOR)))
        windows.append((notify, min(limit, notify + TOLD_FOR)))
    slack = 1e-3  # times are kept in whole seconds, and floats are compared
    expected = sum(any(since + slack < at < until - slack for at in looks) for since, until in windows)
    at_most = sum(any(since - slack < at < until + slack for at in looks) for since, until in windows)
    assert expected <= len(created) <= at_most


@given(limit=st.integers(1, 10**6), after=st.floats(0, 2 * 10**6))
def test_wait_until_next_due_reaches_the_notice(limit: int, after: float) -> None:
    launcher, now = launcher_of(limit=limit), START + after
    wait = next_due(RUNNING, launcher, now)
    before = {each.key for each in due(RUNNING, launcher, now)}
    if wait is None:
        assert after >= 0.8 * limit - 1e-3
    else:
        assert before == set()
        assert [each.reason for each in due(RUNNING, launcher, now + wait + 1e-3)] == [deadline_events.IS_NEAR]
