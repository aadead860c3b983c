from typing import Any

import pytest

from tests.support.jobs import REMOVE
from tests.support.rule_checks import as_texts, fits_a_warning, violations


@pytest.mark.parametrize(
    ("seconds", "settings", "warned"),
    [
        (REMOVE, {}, False),
        (0, {}, True),
        (29, {}, True),
        (30, {}, False),
        (60, {"minSeconds": 61}, True),
        (-1, {}, False),  # the rule `upstream-contract` reports negative values
    ],
)
def test_ttl_below_the_minimum_is_reported(seconds: Any, settings: dict[str, Any], warned: bool) -> None:
    result = violations("retention", {"spec.runPolicy.ttlSecondsAfterFinished": seconds}, settings=settings)
    assert [v.fix for v in result] == [f"Set it to {settings.get('minSeconds', 30)} or more."] * warned
    assert as_texts(result) == (
        [f"spec.runPolicy.ttlSecondsAfterFinished: after {seconds} s the job may run a second time"] if warned else []
    )


@pytest.mark.parametrize(("policy", "reported"), [(None, True), ("OnFailure", True), ("Never", False)])
def test_loss_of_the_launchers_log_is_reported_only_with_the_setting_launcher_log(
    policy: str | None, reported: bool
) -> None:
    changes = {"Launcher.restartPolicy": policy}
    result = violations("retention", changes, settings={"launcherLog": True})
    path = "(advice) spec.mpiReplicaSpecs[Launcher].restartPolicy"
    assert as_texts(result) == ([f"{path}: the log is deleted at backoffLimit"] if reported else [])
    assert all(fits_a_warning("retention", each) for each in result)
    assert violations("retention", changes) == []
