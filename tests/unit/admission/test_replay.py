import json
from datetime import date
from typing import Any

import pytest

from tests.support.jobs import changed
from tests.support.policies import layer
from tests.support.quota_objects import quota
from webhook.admission.what_if.replay import Replay, Replayer
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.policy.in_force import PolicySet


def policies(text: str) -> PolicySet:
    return PolicySet([layer("p", text)])


def jobs(*workers: int) -> list[bytes]:
    def stored(index: int, count: int) -> dict[str, Any]:
        return changed({"metadata.name": f"job-{index}", "Worker.replicas": count})

    return [json.dumps(stored(index, count)).encode() for index, count in enumerate(workers)]


def replay(before: str, after: str, data: list[bytes]) -> Replay:
    replayer = Replayer(before=policies(before), after=policies(after), view=NothingKnown(), today=date(2026, 11, 21))
    replayer.add(data)
    return replayer.result


AT_MOST_3 = "rules: {worker-count: {max: 3}}"


@pytest.mark.parametrize(
    ("before", "after", "summary"),
    [
        ("", "", "would newly deny none of 4 jobs"),
        ("", AT_MOST_3, "would newly deny 2 of 4 jobs: worker-count 2 (team-a/job-1, team-a/job-2)"),
        (
            "",
            "rules: {worker-count: {max: 3}, gpus: {max: 1}}",
            "would newly deny 3 of 4 jobs: gpus 3, worker-count 2 (team-a/job-0, team-a/job-1, team-a/job-2)",
        ),
        ("", "mode: audit", "only loosens: would newly deny none of 4 jobs, and admit 1 (team-a/job-3)"),
        (AT_MOST_3, AT_MOST_3.replace("3", "2"), "would newly deny 1 of 4 jobs: worker-count 1 (team-a/job-0)"),
    ],
)
def test_replay_reports_changed_verdicts(before: str, after: str, summary: str) -> None:
    assert replay(before, after, jobs(3, 4, 5, 1)).summary() == summary


@pytest.mark.parametrize(
    ("before", "after", "summary"),
    [
        ("", "", ""),
        ("", "injections: {labels: {enabled: false}}", "changed injections: labels no longer into 2"),
        (
            "injectOnly: []",
            "injectOnly: [labels, istio]",
            "changed injections: istio newly into 2, labels newly into 2",
        ),
        (
            "injectOnly: [job-timeout]\ninjections: {job-timeout: {default: 1h}}",
            "injectOnly: [job-timeout]\ninjections: {job-timeout: {default: 2h}}",
            "changed injections: job-timeout differently into 2",
        ),
    ],
)
def test_replay_reports_changed_injections(before: str, after: str, summary: str) -> None:
    assert replay(before, after, jobs(3, 4)).injections_summary() == summary


def test_replayed_job_is_judged_after_injection() -> None:
    """A job without a newly required injection is not reported, because it would get the injection on submission."""
    required = "injections: {labels: {required: deny}}"
    assert replay("injectOnly: []", required, jobs(3)).newly_denied == {}


def test_list_of_many_injections_is_cut() -> None:
    result = replay("injectOnly: []", "", jobs(3))
    result.injections = {f"i{number}": {"newly": ["a"]} for number in range(8)}
    assert result.injections_summary().endswith("i5 newly into 1, and 2 more")


def test_list_of_many_names_is_cut_and_an_unfinished_replay_is_reported() -> None:
    result = replay("", AT_MOST_3, jobs(4, 4, 4, 4, 4))
    result.complete = False
    assert result.summary() == (
        "would newly deny 5 of the first 5 jobs: worker-count 5 (team-a/job-0, team-a/job-1, team-a/job-2, ...)"
    )


def test_unreadable_job_is_not_counted() -> None:
    assert replay("", "", [b"", b"[]", b'{"metadata": 3}', b"\xff"]).total == 0


def test_running_job_does_not_exceed_the_quota_by_its_own_usage() -> None:
    running, too_large = jobs(4, 9)
    full = {"requests.nvidia.com/gpu": "8"}
    replayer = Replayer(
        before=policies("rules: {resource-quota: {action: 'off'}}"),
        after=policies(""),
        view=Snapshot([quota(full, full), json.loads(running)]),
        today=date(2026, 11, 21),
    )
    replayer.add([running, too_large])
    assert replayer.result.newly_denied == {"team-a/job-1": ["resource-quota"]}
