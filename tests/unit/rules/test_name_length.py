from typing import Any

import pytest

from tests.support.rule_checks import found, violations


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
        (
            {"metadata.name": "x" * 54, "metadata.generateName": "train-"},
            {},
            "metadata.name: 54 characters leave no room for 100 workers",
        ),
    ],
)
def test_room_for_the_names_of_workers(changes: dict[str, Any], settings: dict[str, Any], expected: str | None) -> None:
    assert found(violations("name-length", changes, settings=settings)) == ([expected] if expected else [])


FQDN = "Worker.template.spec.setHostnameAsFQDN"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # worker-3 in train.team-a.svc.cluster.local
        ({FQDN: True}, None),
        ({FQDN: True, "metadata.name": "x" * 14}, None),
        ({"metadata.name": "x" * 30}, None),
        ({FQDN: False, "metadata.name": "x" * 30}, None),
        ({FQDN: True, "metadata.name": "x" * 15}, "(advice) {path}: the full host name has 65 characters"),
        ({FQDN: True, "metadata.name": "x" * 20}, "(advice) {path}: the full host name has 75 characters"),
        ({FQDN: True, "metadata.name": "x" * 21}, "{path}: the full host name has 77 characters"),
        ({FQDN.replace("Worker", "Launcher"): True, "metadata.name": "x" * 30}, "{path}: the full host name has 95"),
    ],
)
def test_a_full_name_that_no_host_can_have(changes: dict[str, Any], expected: str | None) -> None:
    result = found(violations("name-length", changes))
    role = "Launcher" if any(key.startswith("Launcher") for key in changes) else "Worker"
    path = f"spec.mpiReplicaSpecs[{role}].template.spec.setHostnameAsFQDN"
    assert len(result) == (expected is not None)
    assert all(text.startswith((expected or "").format(path=path)) for text in result)


def test_the_fix_says_how_long_a_name_may_be() -> None:
    assert violations("name-length", {"metadata.name": "x" * 54})[0].fix == "Use a name of at most 53 characters."
    generated = violations("name-length", {"metadata.name": "", "metadata.generateName": "x" * 49})
    assert generated[0].fix == "Use a generateName of at most 48 characters."
