"""What is told of probes and lifecycle handlers."""

from typing import Any

import pytest

from tests.support.pod_template import BOX, told


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {f"{BOX}.readinessProbe": {}},
            [("spec.containers[0].readinessProbe: does nothing. Set one of exec, httpGet, tcpSocket or grpc.")],
        ),
        (
            {f"{BOX}.readinessProbe": {"tcpSocket": {"port": "2222"}}},
            [
                (
                    'spec.containers[0].readinessProbe.tcpSocket.port: "2222" is text: a number is written '
                    "without quotes. Write a number, or a port's name."
                )
            ],
        ),
        (
            {f"{BOX}.readinessProbe": {"tcpSocket": {"port": "My_Port"}}},
            [
                (
                    'spec.containers[0].readinessProbe.tcpSocket.port: "My_Port" must have at most 15 lower case '
                    'letters, digits and "-", a letter among them. Write a number, or a port\'s name.'
                )
            ],
        ),
        (
            {f"{BOX}.readinessProbe": {"tcpSocket": {"port": 0}}},
            [("spec.containers[0].readinessProbe.tcpSocket.port: is 0, at least 1 is taken. Correct the number.")],
        ),
        (
            {f"{BOX}.readinessProbe": {"tcpSocket": {"port": ""}}},
            ["spec.containers[0].readinessProbe.tcpSocket.port: is empty. Set it."],
        ),
        (
            {f"{BOX}.readinessProbe": {"tcpSocket": {"port": 22}, "terminationGracePeriodSeconds": 3}},
            [
                (
                    "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: is not for readiness "
                    "probes. Remove it."
                )
            ],
        ),
        (
            {f"{BOX}.livenessProbe": {"exec": {"command": []}, "successThreshold": 2}},
            [
                "spec.containers[0].livenessProbe.exec.command: is empty. Set it.",
                'spec.containers[0].livenessProbe.successThreshold: "2" is not supported. Use one of 0, 1.',
            ],
        ),
        (
            {f"{BOX}.livenessProbe": {"exec": {"command": ["a"]}, "tcpSocket": {"port": 22}}},
            ["spec.containers[0].livenessProbe: has both exec and tcpSocket. Keep one of them."],
        ),
        (
            {
                f"{BOX}.startupProbe": {
                    "httpGet": {"port": 80, "scheme": "https", "httpHeaders": [{"name": "a b"}]},
                    "periodSeconds": -1,
                }
            },
            [
                'spec.containers[0].startupProbe.httpGet.scheme: "https" is not supported. Write HTTPS.',
                ("spec.containers[0].startupProbe.periodSeconds: is -1, at least 0 is taken. Correct the number."),
                (
                    'spec.containers[0].startupProbe.httpGet.httpHeaders[0].name: "a b" may have letters, digits '
                    'and "-" only. Correct the name.'
                ),
            ],
        ),
        (
            {f"{BOX}.lifecycle": {"preStop": {"sleep": {"seconds": 60}}, "postStart": {}}},
            [
                ("spec.containers[0].lifecycle.postStart: does nothing. Set one of exec, httpGet, tcpSocket or sleep."),
                (
                    "spec.containers[0].lifecycle.preStop.sleep.seconds: must be between 0 and "
                    "terminationGracePeriodSeconds, which is 30. Correct the number."
                ),
            ],
        ),
    ],
)
def test_faults(changes: dict[str, Any], expected: list[str]) -> None:
    assert told(changes) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {
            f"{BOX}.ports": [{"name": "ssh", "containerPort": 22}],
            f"{BOX}.readinessProbe": {"tcpSocket": {"port": "ssh"}, "successThreshold": 3},
        },
        {f"{BOX}.lifecycle": {"preStop": {"sleep": {}}}},
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
