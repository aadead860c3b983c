from typing import Any

import pytest

from tests.support.rule_checks import as_texts, violations


@pytest.mark.parametrize(
    ("changes", "settings", "expected"),
    [
        ({"metadata.name": "x" * 53}, {}, None),
        ({"metadata.name": "x" * 54}, {}, "metadata.name: 54 characters leave no room for 100 workers"),
        ({"metadata.name": "x" * 54}, {"scaleTo": 10}, None),
        (
            {"metadata.name": "x" * 55},
            {},
            None,
        ),  # the rule `upstream-contract` reports a name that is too long for the current workers
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
def test_name_without_room_for_more_workers_is_reported(
    changes: dict[str, Any], settings: dict[str, Any], expected: str | None
) -> None:
    assert as_texts(violations("name-length", changes, settings=settings)) == ([expected] if expected else [])


FQDN = "Worker.template.spec.setHostnameAsFQDN"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # The full host name is train-worker-3.train.team-a.svc.cluster.local.
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
def test_full_host_name_above_64_characters_is_reported(changes: dict[str, Any], expected: str | None) -> None:
    result = as_texts(violations("name-length", changes))
    role = "Launcher" if any(key.startswith("Launcher") for key in changes) else "Worker"
    path = f"spec.mpiReplicaSpecs[{role}].template.spec.setHostnameAsFQDN"
    assert len(result) == (expected is not None)
    assert all(text.startswith((expected or "").format(path=path)) for text in result)


def test_fix_has_the_maximum_length_of_the_name() -> None:
    assert violations("name-length", {"metadata.name": "x" * 54})[0].fix == "Use a name of at most 53 characters."
    generated = violations("name-length", {"metadata.name": "", "metadata.generateName": "x" * 49})
    assert generated[0].fix == "Use a generateName of at most 48 characters."
