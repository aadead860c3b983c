"""What is told of variables and where they come from."""

from typing import Any

import pytest

from tests.support.pod_template import BOX, told


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {f"{BOX}.env": [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            ["spec.containers[0].env[0].valueFrom: does not go with value. Remove one of the two."],
        ),
        (
            {f"{BOX}.env": [{"name": "A", "valueFrom": {}}]},
            [
                (
                    "spec.containers[0].env[0].valueFrom: names no source. Set one of fieldRef, "
                    "resourceFieldRef, configMapKeyRef or secretKeyRef, or value instead of it."
                )
            ],
        ),
        (
            {
                f"{BOX}.env": [
                    {
                        "name": "A",
                        "valueFrom": {
                            "configMapKeyRef": {"name": "a", "key": "b"},
                            "secretKeyRef": {"name": "a", "key": "b"},
                        },
                    }
                ]
            },
            [("spec.containers[0].env[0].valueFrom: names 2 sources, and there can be only one. Keep one of them.")],
        ),
        (
            {f"{BOX}.env": [{"name": "A=B", "value": "1"}]},
            [
                (
                    'spec.containers[0].env[0].name: "A=B" may have printable ASCII characters only, and no "=". '
                    "Rename the variable."
                )
            ],
        ),
        ({f"{BOX}.env": [{"name": "", "value": "1"}]}, ["spec.containers[0].env[0].name: is empty. Set it."]),
        (
            {f"{BOX}.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]},
            [
                (
                    'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: there is no field "metadata.labels" '
                    "to be had here. Use one of metadata.name, metadata.namespace, metadata.uid, spec.nodeName, "
                    "spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP, status.podIPs, or "
                    "metadata.labels['KEY']."
                )
            ],
        ),
        (
            {f"{BOX}.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}}]},
            [
                (
                    "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: \"metadata.labels['a b']\" has a key "
                    'that contains " "; allowed are letters, digits, "-", "_" and ".". Correct the key.'
                )
            ],
        ),
        (
            {
                f"{BOX}.env": [
                    {"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}}
                ]
            },
            ['spec.containers[0].env[0].valueFrom.fieldRef.apiVersion: "v2" is not supported. Write v1.'],
        ),
        (
            {f"{BOX}.env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}}]},
            [
                (
                    'spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: "limits.gpu" is not '
                    "supported. Use one of limits.cpu, limits.ephemeral-storage, limits.memory, requests.cpu, "
                    "requests.ephemeral-storage, requests.memory."
                )
            ],
        ),
        (
            {
                f"{BOX}.env": [
                    {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}
                ]
            },
            [("spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: 2 is not supported. Use 1m or 1.")],
        ),
        (
            {
                f"{BOX}.env": [
                    {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "2Mi"}}}
                ]
            },
            [
                (
                    "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: 2Mi is not supported. Use 1, "
                    "or one of the units: 1Mi, 1Gi, 1M and so on."
                )
            ],
        ),
        (
            {f"{BOX}.env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "My_Secret", "key": "a b"}}}]},
            [
                (
                    'spec.containers[0].env[0].valueFrom.secretKeyRef.name: "My_Secret" contains "M"; allowed '
                    'are lower case letters, digits, "-" and ".". Correct the name.'
                ),
                (
                    'spec.containers[0].env[0].valueFrom.secretKeyRef.key: "a b" may have letters, digits, "-", '
                    '"_" and "." only. Correct the key.'
                ),
            ],
        ),
        (
            {f"{BOX}.env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "."}}}]},
            [
                (
                    'spec.containers[0].env[0].valueFrom.secretKeyRef.key: "." must not be ".", nor start with '
                    '"..". Correct the key.'
                )
            ],
        ),
        (
            {f"{BOX}.envFrom": [{"prefix": "A_"}]},
            ["spec.containers[0].envFrom[0]: names no source. Set configMapRef or secretRef."],
        ),
        (
            {f"{BOX}.envFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}, "prefix": "="}]},
            [
                (
                    'spec.containers[0].envFrom[0].prefix: "=" may have printable ASCII characters only, and no '
                    '"=". Correct the prefix.'
                ),
                ("spec.containers[0].envFrom[0]: names two sources, and there can be only one. Make two items of it."),
            ],
        ),
        (
            {f"{BOX}.envFrom": [{"configMapRef": {"name": "A"}}]},
            [
                (
                    'spec.containers[0].envFrom[0].configMapRef.name: "A" contains "A"; allowed are lower case '
                    'letters, digits, "-" and ".". Correct the name.'
                )
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
            f"{BOX}.env": [
                {"name": "my var", "value": "1"},
                {"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "spec.host"}}},
                {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['A']"}}},
            ]
        },
        {
            f"{BOX}.env": [
                {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi", "divisor": "1Mi"}}}
            ]
        },
        {f"{BOX}.envFrom": [{"configMapRef": {"name": "a-"}}]},
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
