"""name-length, clean-pod-policy, mpi-implementation and retention."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.jobs import REMOVE
from tests.support.rule_checks import found, violations
from webhook.rules import REGISTRY


@pytest.mark.parametrize(
    ("changes", "settings", "expected"),
    [
        ({"metadata.name": "x" * 53}, {}, None),
        ({"metadata.name": "x" * 54}, {}, "metadata.name: 54 characters leave no room for 100 workers"),
        ({"metadata.name": "x" * 54}, {"scaleTo": 10}, None),
        ({"metadata.name": "x" * 55}, {}, None),  # does not even fit today: upstream-contract says so
        (
            {"metadata.name": "", "metadata.generateName": "x" * 49},
            {},
            "metadata.generateName: 54 characters (5 of them generated) leave no room for 100 workers",
        ),
        ({"metadata.name": "", "metadata.generateName": "x" * 48}, {}, None),
        (
            {"metadata.name": "x" * 54, "metadata.generateName": "x" * 49},
            {},
            "metadata.generateName: 54 characters (5 of them generated) leave no room for 100 workers",
        ),
    ],
)
def test_name_length(changes: dict[str, Any], settings: dict[str, Any], expected: str | None) -> None:
    assert found(violations("name-length", changes, settings=settings)) == ([expected] if expected else [])


def test_name_length_says_how_long_a_name_may_be() -> None:
    assert violations("name-length", {"metadata.name": "x" * 54})[0].fix == "Use a name of at most 53 characters."
    generated = violations("name-length", {"metadata.name": "", "metadata.generateName": "x" * 49})
    assert generated[0].fix == "Use a generateName of at most 48 characters."


@pytest.mark.parametrize(
    ("value", "allowed", "refused"),
    [
        ("Running", None, False),
        ("None", None, False),
        (REMOVE, None, False),
        ("None", ["Running", "All"], True),
        (REMOVE, ["Running", "All"], True),  # the operator then takes None
        ("All", ["Running", "All"], False),
        ("nonsense", ["Running"], False),  # upstream-contract says so
    ],
)
def test_clean_pod_policy(value: Any, allowed: list[str] | None, refused: bool) -> None:
    settings = {"allowed": allowed} if allowed else {}
    result = violations("clean-pod-policy", {"spec.runPolicy.cleanPodPolicy": value}, settings=settings)
    assert [v.path for v in result] == ["spec.runPolicy.cleanPodPolicy"] * refused
    if refused:
        assert result[0].fix == "Use one of Running, All."


@pytest.mark.parametrize(
    ("value", "allowed", "refused"),
    [
        ("MPICH", None, False),
        ("MPICH", ["OpenMPI"], True),
        (REMOVE, ["Intel"], True),
        (REMOVE, ["OpenMPI"], False),
        ("nonsense", ["OpenMPI"], False),
    ],
)
def test_mpi_implementation(value: Any, allowed: list[str] | None, refused: bool) -> None:
    settings = {"allowed": allowed} if allowed else {}
    result = violations("mpi-implementation", {"spec.mpiImplementation": value}, settings=settings)
    assert [v.path for v in result] == ["spec.mpiImplementation"] * refused


@pytest.mark.parametrize("rule", ["clean-pod-policy", "mpi-implementation"])
@pytest.mark.parametrize("allowed", [[], ["Sometimes"]])
def test_the_allowed_values_must_be_real_ones(rule: str, allowed: list[str]) -> None:
    with pytest.raises(ValidationError):
        REGISTRY[rule].settings.model_validate({"allowed": allowed})


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
def test_retention(seconds: Any, settings: dict[str, Any], warned: bool) -> None:
    result = violations("retention", {"spec.runPolicy.ttlSecondsAfterFinished": seconds}, settings=settings)
    assert found(result) == (
        [f"spec.runPolicy.ttlSecondsAfterFinished: after {seconds} s the job may run a second time"] if warned else []
    )


def test_retention_only_warns_by_default() -> None:
    assert REGISTRY["retention"].settings().action == "warn"
