"""The fix suggested for a job ignores the limits of rules from which the job is exempt."""

from datetime import date

import pytest

from tests.support.jobs import changed
from tests.support.quota_objects import cluster, quota
from tests.support.rule_checks import decide

RULES = "rules: {worker-count: {min: 4}}"
EXEMPTION = "exemptions: [{rules: [worker-count], namespaces: [team-a], reason: a trial, expires: 2026-01-31}]"
ASKED = {"training.openshift.io/exempt": "worker-count", "training.openshift.io/exempt-reason": "OPS-1"}
FITS = "Reduce worker count to 3 (6 GPUs total)"


def advice(policy: str, *, granted: dict[str, bool] | None = None, day: int = 1, asks: bool = False) -> str:
    """The fix for a job with four workers of two GPUs each, under this policy and a quota of seven GPUs."""
    job = changed({"metadata.annotations": ASKED if asks else {}, "metadata.namespace": "team-a"})
    view = cluster(quota({"requests.nvidia.com/gpu": 7}))
    (finding,) = decide(job, policy, view=view, today=date(2026, 1, day), granted=granted).denied
    return finding.violation.fix


def test_suggested_fix_respects_the_limits_of_rules() -> None:
    assert FITS not in advice(RULES)
    assert FITS in advice("rules: {worker-count: {min: 3}}")


def test_limits_of_rules_are_ignored_if_the_policy_exempts_the_job() -> None:
    both = f"{RULES}\n{EXEMPTION}"
    assert FITS in advice(both)
    assert FITS not in advice(both.replace("team-a", "team-b"))
    assert FITS not in advice(both.replace("01-31", "01-01"), day=2), "the exemption has ended"


@pytest.mark.parametrize(
    ("granted", "fits"), [(None, False), ({"worker-count": False}, False), ({"worker-count": True}, True)]
)
def test_limits_of_rules_are_ignored_if_the_requested_exemption_is_granted(
    granted: dict[str, bool] | None, fits: bool
) -> None:
    assert (FITS in advice(RULES, granted=granted, asks=True)) == fits
