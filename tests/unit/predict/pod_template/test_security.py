"""What is told of security contexts."""

from typing import Any

import pytest

from tests.support.pod_template import BOX, SPEC, told


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {f"{BOX}.securityContext": {"runAsUser": -1, "procMount": "Unmasked"}},
            [
                ("spec.containers[0].securityContext.runAsUser: is -1, at least 0 is taken. Correct the number."),
                (
                    "spec.containers[0].securityContext.procMount: Unmasked needs hostUsers: false in the pod. "
                    "Remove it."
                ),
            ],
        ),
        (
            {f"{BOX}.securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
            [
                (
                    "spec.containers[0].securityContext.allowPrivilegeEscalation: is false, but privileged is "
                    "true. Remove one of the two."
                )
            ],
        ),
        (
            {f"{BOX}.securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}},
            [
                (
                    "spec.containers[0].securityContext.allowPrivilegeEscalation: is false, but CAP_SYS_ADMIN is "
                    "added. Remove one of the two."
                )
            ],
        ),
        (
            {
                f"{BOX}.securityContext": {
                    "seccompProfile": {"type": "Localhost"},
                    "appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "x"},
                }
            },
            [
                (
                    "spec.containers[0].securityContext.seccompProfile.localhostProfile: is missing. Name the "
                    "profile on the nodes."
                ),
                (
                    "spec.containers[0].securityContext.appArmorProfile.localhostProfile: does not go with the "
                    "type RuntimeDefault. Remove it, or set the type to Localhost."
                ),
            ],
        ),
        (
            {
                f"{BOX}.securityContext": {
                    "seccompProfile": {"type": "Localhost", "localhostProfile": "/x"},
                    "appArmorProfile": {"type": "Localhost", "localhostProfile": " x"},
                }
            },
            [
                (
                    'spec.containers[0].securityContext.seccompProfile.localhostProfile: "/x" must be relative. '
                    "Name a path below the node's folder of profiles."
                ),
                (
                    "spec.containers[0].securityContext.appArmorProfile.localhostProfile: has blanks around it. "
                    "Remove them."
                ),
            ],
        ),
        (
            {f"{BOX}.securityContext": {"seccompProfile": {"type": "runtimedefault"}}},
            [
                (
                    'spec.containers[0].securityContext.seccompProfile.type: "runtimedefault" is not supported. '
                    "Write RuntimeDefault."
                )
            ],
        ),
        (
            {
                f"{SPEC}.securityContext": {
                    "fsGroupChangePolicy": "onRootMismatch",
                    "sysctls": [{"name": "A B"}, {"name": "a.b"}, {"name": "a.b"}],
                }
            },
            [
                ('spec.securityContext.fsGroupChangePolicy: "onRootMismatch" is not supported. Write OnRootMismatch.'),
                (
                    'spec.securityContext.sysctls[0].name: "A B" is not the name of a kernel parameter, such as '
                    "net.core.somaxconn. Correct the name."
                ),
                'spec.securityContext.sysctls[2].name: "a.b" is there twice. Remove one of the two.',
            ],
        ),
        (
            {f"{SPEC}.securityContext": {"windowsOptions": {}}, f"{SPEC}.os": {"name": "linux"}},
            ["spec.securityContext.windowsOptions: is not for a linux pod. Remove it."],
        ),
    ],
)
def test_faults(changes: dict[str, Any], expected: list[str]) -> None:
    assert told(changes) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {f"{BOX}.securityContext": {"procMount": "Unmasked"}, f"{SPEC}.hostUsers": False},
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
