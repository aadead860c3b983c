from typing import Any

import pytest

from tests.support.jobs import REMOVE
from tests.support.rule_checks import fits_a_warning, found, violations
from webhook.rules import REGISTRY


@pytest.mark.parametrize(
    ("seconds", "settings", "warned"),
    [
        (REMOVE, {}, False),
        (0, {}, True),
        (29, {}, True),
        (30, {}, False),
        (60, {"minSeconds": 61}, True),
        (-1, {}, False),  # upstream-contract says so
    ],
)
def test_too_short(seconds: Any, settings: dict[str, Any], warned: bool) -> None:
    result = violations("retention", {"spec.runPolicy.ttlSecondsAfterFinished": seconds}, settings=settings)
    assert [v.fix for v in result] == [f"Set it to {settings.get('minSeconds', 30)} or more."] * warned
    assert found(result) == (
        [f"spec.runPolicy.ttlSecondsAfterFinished: after {seconds} s the job may run a second time"] if warned else []
    )


def test_it_only_warns_by_default() -> None:
    assert REGISTRY["retention"].settings().action == "warn"


@pytest.mark.parametrize(("policy", "told"), [(None, True), ("OnFailure", True), ("Never", False)])
def test_the_launchers_log_where_the_policy_asks(policy: str | None, told: bool) -> None:
    changes = {"Launcher.restartPolicy": policy}
    result = violations("retention", changes, settings={"launcherLog": True})
    path = "(advice) spec.mpiReplicaSpecs[Launcher].restartPolicy"
    assert found(result) == ([f"{path}: the log is deleted at backoffLimit"] if told else [])
    assert all(fits_a_warning("retention", each) for each in result)
    assert violations("retention", changes) == []
