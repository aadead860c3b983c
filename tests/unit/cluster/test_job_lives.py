"""Records of the status of MPIJobs, and records of launchers."""

import pytest

from tests.support.job_lives import HOUR, START, condition, launcher_of, life
from webhook.cluster.job_lives import JobLife, Launcher, Phase, launcher_key

LATER = START + HOUR
RUNNING = condition("Running", at=START + 60)


def failed(reason: str) -> JobLife:
    return life("train", condition("Failed", reason=reason), started=START, completed=LATER)


@pytest.mark.parametrize(
    ("job", "phase"),
    [
        (life(), Phase.QUEUED),
        (life("train", condition("Created"), started=START), Phase.QUEUED),
        (life("train", condition("Suspended"), condition("Running", "False"), suspend=True), Phase.QUEUED),
        (life("train", RUNNING, started=START), Phase.RUNNING),
        (life("train", RUNNING, started=START, suspend=True), Phase.QUEUED),
        (life("train", condition("Succeeded"), completed=LATER), Phase.SUCCEEDED),
        (failed("MPIJobFailed"), Phase.FAILED),
        # The operator continues a job after an eviction.
        (life("train", condition("Failed", reason="MPIJobEvicted"), RUNNING), Phase.RUNNING),
        (life("train", condition("Failed", "False"), condition("Succeeded"), completed=LATER), Phase.SUCCEEDED),
    ],
)
def test_phase_of_a_job(job: JobLife, phase: Phase) -> None:
    assert job.phase is phase
    assert job.over is (phase in {Phase.SUCCEEDED, Phase.FAILED})
    assert (job.ended is not None) is job.over
    assert job.running_since == (START + 60 if phase is Phase.RUNNING else None)


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("DeadlineExceeded", "DeadlineExceeded"),
        ("BackoffLimitExceeded/OOMKilled", "BackoffLimitExceeded"),
        ("MPIJobEvicted", "MPIJobEvicted"),
        ("MPIJobFailed", "MPIJobFailed"),
        ("Whatever a user writes", "other"),
        ("", "other"),
    ],
)
def test_failure_reason_is_one_of_a_fixed_set(reason: str, kept: str) -> None:
    assert failed(reason).reason == kept


@pytest.mark.parametrize(
    ("annotations", "seconds"),
    [
        (None, None),
        ({"timeout": "2h"}, None),
        ({"timeout": "2h", "timeout-action": "terminate"}, None),
        ({"timeout": "2h", "timeout-action": "notify-only"}, 7200),
        ({"timeout": "two", "timeout-action": "notify-only"}, None),
        ({"timeout-action": "notify-only"}, None),
    ],
)
def test_notice_time_of_a_notify_only_job(annotations: dict[str, str] | None, seconds: int | None) -> None:
    assert life(annotations=annotations).notify_after == seconds


def test_record_of_a_launcher() -> None:
    assert launcher_of(limit=60) == Launcher(owner="uid-train", started=START, limit=60)
    assert launcher_of(limit=60, suspend=True, started=None) == Launcher(owner="uid-train", limit=60, suspended=True)
    resumed = launcher_of("train-launcher", condition("Suspended"), limit=60, suspend=False)
    assert resumed == Launcher(owner="uid-train", started=START, limit=60, suspended=True)
    for end in ("Complete", "Failed"):
        over = launcher_of("train-launcher", condition(end))
        assert over is not None
        assert over.ended
    assert launcher_key(life()) == ("team-a", "train-launcher")


def test_job_that_is_not_a_launcher_has_no_record() -> None:
    assert launcher_of("train") is None
    assert launcher_of(kind="CronJob") is None
