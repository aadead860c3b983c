"""Pods that the kubelet or a controller never starts, and similar pods that start."""

import pytest

from tests.support.pod_template import BOX, SPEC, told
from tests.support.refused_pods import CASES, Case


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_pods_in_the_table_have_the_expected_faults(case: Case) -> None:
    assert told(case.changes) == ([case.told] if case.told else [])


def test_windows_pod_may_run_as_user_0() -> None:
    context = {"runAsNonRoot": True, "runAsUser": 0}
    assert told({f"{SPEC}.os": {"name": "windows"}, f"{BOX}.securityContext": context}) == []


def test_empty_overhead_is_not_a_fault() -> None:
    assert told({f"{SPEC}.overhead": {}}) == [], "the operator's client leaves out an empty overhead"
