"""What is told of containers, their names, ports and policies."""

from typing import Any

import pytest

from tests.support.pod_template import BOX, SPEC, told


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {f"{BOX}.imagePullPolicy": "always"},
            ['spec.containers[0].imagePullPolicy: "always" is not supported. Write Always.'],
        ),
        (
            {f"{BOX}.imagePullPolicy": "Sometimes"},
            [
                (
                    'spec.containers[0].imagePullPolicy: "Sometimes" is not supported. Use one of Always, '
                    "IfNotPresent, Never."
                )
            ],
        ),
        (
            {f"{BOX}.name": "my_worker"},
            [
                (
                    'spec.containers[0].name: "my_worker" contains "_"; allowed are lower case letters, digits '
                    'and "-". Rename the container.'
                )
            ],
        ),
        ({f"{BOX}.name": ""}, ["spec.containers[0].name: is empty. Set it."]),
        (
            {f"{SPEC}.initContainers": [{"name": "worker", "image": "busybox:1"}]},
            ['spec.initContainers[0].name: there is another container "worker". Rename one of the two.'],
        ),
        (
            {
                f"{SPEC}.initContainers": [
                    {
                        "name": "wait",
                        "image": "busybox:1",
                        "readinessProbe": {"exec": {"command": ["true"]}},
                        "lifecycle": {},
                    }
                ]
            },
            [
                (
                    "spec.initContainers[0].readinessProbe: is not for init containers, unless they are "
                    "sidecars. Remove it, or set restartPolicy: Always."
                ),
                (
                    "spec.initContainers[0].lifecycle: is not for init containers, unless they are sidecars. "
                    "Remove it, or set restartPolicy: Always."
                ),
            ],
        ),
        (
            {f"{SPEC}.initContainers": [{"name": "wait", "image": "busybox:1", "restartPolicy": "always"}]},
            ['spec.initContainers[0].restartPolicy: "always" is not supported. Write Always.'],
        ),
        (
            {f"{SPEC}.ephemeralContainers": [{"name": "debug"}]},
            [("spec.ephemeralContainers: cannot be set on pods that are made. Remove it: kubectl debug adds them.")],
        ),
        (
            {f"{BOX}.terminationMessagePolicy": "file"},
            ['spec.containers[0].terminationMessagePolicy: "file" is not supported. Write File.'],
        ),
        (
            {f"{BOX}.ports": [{"containerPort": 70000}]},
            [("spec.containers[0].ports[0].containerPort: is 70000, at most 65535 is taken. Correct the number.")],
        ),
        ({f"{BOX}.ports": [{"name": "ssh"}]}, ["spec.containers[0].ports[0].containerPort: is missing. Set it."]),
        (
            {f"{BOX}.ports": [{"containerPort": 22, "protocol": "tcp"}]},
            ['spec.containers[0].ports[0].protocol: "tcp" is not supported. Write TCP.'],
        ),
        (
            {f"{BOX}.ports": [{"containerPort": 22, "name": "SSH"}]},
            [
                (
                    'spec.containers[0].ports[0].name: "SSH" must have at most 15 lower case letters, digits and '
                    '"-", a letter among them. Rename the port.'
                )
            ],
        ),
        (
            {f"{BOX}.ports": [{"containerPort": 22, "name": "ssh"}, {"containerPort": 23, "name": "ssh"}]},
            ['spec.containers[0].ports[1].name: there is another port "ssh". Rename the port.'],
        ),
        (
            {f"{BOX}.ports": [{"containerPort": 22, "hostPort": 22}, {"containerPort": 23, "hostPort": 22}]},
            [("spec.containers[0].ports[1].hostPort: another container has port 22 of the node. Use another port.")],
        ),
        (
            {f"{BOX}.ports": [{"containerPort": 22, "hostPort": 2222}], f"{SPEC}.hostNetwork": True},
            [
                (
                    "spec.containers[0].ports[0].hostPort: is 2222, must be the containerPort 22 with "
                    "hostNetwork. Remove it."
                )
            ],
        ),
        (
            {
                f"{BOX}.resizePolicy": [
                    {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
                    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                ]
            },
            [
                (
                    "spec.containers[0].resizePolicy[0].restartPolicy: RestartContainer does not go with a pod "
                    "whose restartPolicy is Never. Write NotRequired."
                ),
                "spec.containers[0].resizePolicy[1].resourceName: is there twice. Remove one of the two.",
            ],
        ),
        (
            {f"{BOX}.resources.claims": [{"name": "nic"}, {"name": "nic"}]},
            [
                (
                    'spec.containers[0].resources.claims[0].name: there is no resource claim "nic". Add it to '
                    "resourceClaims of the pod, or correct the name."
                ),
                (
                    'spec.containers[0].resources.claims[1].name: there is no resource claim "nic". Add it to '
                    "resourceClaims of the pod, or correct the name."
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
            f"{SPEC}.initContainers": [
                {
                    "name": "proxy",
                    "image": "busybox:1",
                    "restartPolicy": "Always",
                    "readinessProbe": {"exec": {"command": ["true"]}},
                }
            ]
        },
        {
            f"{BOX}.ports": [
                {"containerPort": 22, "hostPort": 22, "protocol": "UDP"},
                {"containerPort": 22, "hostPort": 22},
            ]
        },
        {
            f"{SPEC}.resourceClaims": [{"name": "nic", "resourceClaimTemplateName": "nic"}],
            f"{BOX}.resources.claims": [{"name": "nic", "request": "a"}, {"name": "nic", "request": "b"}],
        },
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
