"""What is told of values of a wrong type."""

from typing import Any

import pytest

from tests.support.pod_template import BOX, SPEC, told


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {f"{BOX}.livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": "30"}},
            ["spec.containers[0].livenessProbe.periodSeconds: must be a whole number, not a string. Correct the type."],
        ),
        ({f"{SPEC}.dnsConfig": "x"}, ["spec.dnsConfig: must be a mapping, not a string. Correct the type."]),
        ({f"{BOX}.stdin": "yes"}, ["spec.containers[0].stdin: must be true or false, not a string. Correct the type."]),
        (
            {f"{BOX}.readinessProbe": {"tcpSocket": {"port": True}}},
            [
                (
                    "spec.containers[0].readinessProbe.tcpSocket.port: must be a whole number or a string, not "
                    "true or false. Correct the type."
                )
            ],
        ),
        (
            {f"{SPEC}.tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 2**70}]},
            [
                (
                    "spec.tolerations[0].tolerationSeconds: is too large, at most 9223372036854775807 is taken. "
                    "Correct the number."
                ),
                (
                    "spec.tolerations[0].effect: must be NoExecute where tolerationSeconds is set. Write "
                    "NoExecute, or remove tolerationSeconds."
                ),
            ],
        ),
        (
            {f"{BOX}.volumeDevices": {}},
            ["spec.containers[0].volumeDevices: must be a list, not a mapping. Correct the type."],
        ),
    ],
)
def test_faults(changes: dict[str, Any], expected: list[str]) -> None:
    assert told(changes) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {f"{SPEC}.tolerations": None},
        {f"{SPEC}.unheardOf": 1},
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
