"""What is told of volumes and their sources."""

from typing import Any

import pytest

from tests.support.pod_template import SPEC, told

VOLUMES = f"{SPEC}.volumes"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {VOLUMES: [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/a"}}]},
            [
                (
                    "spec.volumes[0]: has both emptyDir and hostPath, and a volume has one source. Make two "
                    "volumes of it, or remove one of them."
                )
            ],
        ),
        (
            {VOLUMES: [{"name": "a", "emptyDir": {"medium": "memory"}}]},
            [
                '(advice) spec.volumes[0].emptyDir.medium: "memory" is known to no node, so the pods never start. '
                "Write Memory, or remove it."
            ],
        ),
        (
            {VOLUMES: [{"name": "My_Data"}]},
            [
                (
                    'spec.volumes[0].name: "My_Data" contains "M"; allowed are lower case letters, digits and '
                    '"-". Rename the volume.'
                )
            ],
        ),
        (
            {VOLUMES: [{"name": "a"}, {"name": "a"}]},
            ['spec.volumes[1].name: there is another volume "a". Rename the volume.'],
        ),
        (
            {VOLUMES: [{"name": "a", "hostPath": {"path": "/a", "type": "directory"}}]},
            ['spec.volumes[0].hostPath.type: "directory" is not supported. Write Directory.'],
        ),
        (
            {VOLUMES: [{"name": "a", "hostPath": {"path": "/a/../b"}}]},
            ['spec.volumes[0].hostPath.path: "/a/../b" must not contain "..". Correct the path.'],
        ),
        (
            {VOLUMES: [{"name": "a", "persistentVolumeClaim": {}}]},
            ["spec.volumes[0].persistentVolumeClaim.claimName: is missing. Set it."],
        ),
        (
            {
                VOLUMES: [
                    {
                        "name": "a",
                        "configMap": {
                            "name": "a",
                            "defaultMode": 777,
                            "items": [{"key": "a", "path": "/b"}, {"key": "a", "path": "..c"}],
                        },
                    }
                ]
            },
            [
                ("spec.volumes[0].configMap.defaultMode: is 777, at most 511 is taken. Write it in octal, as 0644."),
                ('spec.volumes[0].configMap.items[0].path: "/b" must be relative. Name a path inside the volume.'),
                (
                    'spec.volumes[0].configMap.items[1].path: "..c" must not start with "..". Name a path inside '
                    "the volume."
                ),
            ],
        ),
        (
            {VOLUMES: [{"name": "a", "secret": {"secretName": "a", "items": [{"key": "a"}]}}]},
            ["spec.volumes[0].secret.items[0].path: is missing. Set it."],
        ),
        (
            {VOLUMES: [{"name": "a", "emptyDir": {"sizeLimit": "64"}}]},
            ["(advice) spec.volumes[0].emptyDir.sizeLimit: means 64 bytes. Write the unit, such as 8Gi."],
        ),
        (
            {VOLUMES: [{"name": "a", "nfs": {"server": "s", "path": "export"}}]},
            ['spec.volumes[0].nfs.path: "export" must start with /. Correct the path.'],
        ),
        (
            {VOLUMES: [{"name": "a", "csi": {"driver": "My_Driver", "nodePublishSecretRef": {"name": "S_1"}}}]},
            [
                (
                    'spec.volumes[0].csi.driver: "My_Driver" contains "_"; allowed are lower case letters, '
                    'digits, "-" and ".". Correct the name.'
                ),
                (
                    'spec.volumes[0].csi.nodePublishSecretRef.name: "S_1" contains "S"; allowed are lower case '
                    'letters, digits, "-" and ".". Correct the name.'
                ),
            ],
        ),
        (
            {VOLUMES: [{"name": "a", "csi": {"driver": "a" * 64, "nodePublishSecretRef": {}}}]},
            [
                "spec.volumes[0].csi.driver: has 64 characters, at most 63 are allowed. Correct the name.",
                "spec.volumes[0].csi.nodePublishSecretRef.name: is missing. Set it.",
            ],
        ),
        (
            {VOLUMES: [{"name": "a", "image": {"pullPolicy": "never"}}]},
            [
                "spec.volumes[0].image.reference: is missing. Set it.",
                'spec.volumes[0].image.pullPolicy: "never" is not supported. Write Never.',
            ],
        ),
        (
            {
                VOLUMES: [
                    {
                        "name": "a",
                        "downwardAPI": {
                            "items": [
                                {"path": "a"},
                                {
                                    "path": "b",
                                    "fieldRef": {"fieldPath": "metadata.name"},
                                    "resourceFieldRef": {"resource": "limits.cpu"},
                                },
                                {"path": "c", "resourceFieldRef": {"resource": "limits.cpu"}},
                            ]
                        },
                    }
                ]
            },
            [
                (
                    "spec.volumes[0].downwardAPI.items[0]: has neither fieldRef nor resourceFieldRef. Set one of "
                    "the two."
                ),
                ("spec.volumes[0].downwardAPI.items[1]: has both fieldRef and resourceFieldRef. Keep one of the two."),
                (
                    "spec.volumes[0].downwardAPI.items[2].resourceFieldRef.containerName: is missing. Name the "
                    "container."
                ),
            ],
        ),
        (
            {
                VOLUMES: [
                    {
                        "name": "a",
                        "projected": {
                            "sources": [
                                {"configMap": {"name": "a", "items": [{"key": "a", "path": "x"}]}},
                                {"secret": {"name": "b", "items": [{"key": "a", "path": "x"}]}},
                                {"configMap": {"name": "a"}, "secret": {"name": "b"}},
                                {"serviceAccountToken": {"path": "../t", "expirationSeconds": 60}},
                            ]
                        },
                    }
                ]
            },
            [
                (
                    "spec.volumes[0].projected.sources[3].serviceAccountToken.expirationSeconds: is 60, at least "
                    "600 is taken. Correct the number."
                ),
                (
                    'spec.volumes[0].projected.sources[1].secret.items[0].path: another source makes "x" too. '
                    "Give it another path."
                ),
                (
                    "spec.volumes[0].projected.sources[2]: has several sources, and an item has one. Make an "
                    "item of each source."
                ),
                (
                    'spec.volumes[0].projected.sources[3].serviceAccountToken.path: "../t" must not contain '
                    '"..". Name a path inside the volume.'
                ),
            ],
        ),
        (
            {VOLUMES: [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
            [
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: is missing. Set it.",
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: is missing. "
                    "Set it to what is needed, such as 100Gi."
                ),
            ],
        ),
        (
            {
                VOLUMES: [
                    {
                        "name": "a",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "metadata": {"name": "x"},
                                "spec": {
                                    "accessModes": ["ReadWriteOncePod", "ReadWriteMany"],
                                    "resources": {"requests": {"storage": 0}},
                                    "storageClassName": "A",
                                    "dataSource": {"kind": "VolumeSnapshot", "name": "s"},
                                    "dataSourceRef": {"apiGroup": "A", "kind": "V", "name": "s"},
                                },
                            }
                        },
                    }
                ]
            },
            [
                "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: cannot be set here. Remove it.",
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: ReadWriteOncePod goes with "
                    "no other mode. Keep one."
                ),
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: is 0. Set "
                    "it to what is needed, such as 100Gi."
                ),
                (
                    'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName: "A" contains "A"; '
                    'allowed are lower case letters, digits, "-" and ".". Correct the name.'
                ),
                (
                    'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource.kind: "VolumeSnapshot" needs '
                    "an apiGroup. Set apiGroup, or the kind PersistentVolumeClaim."
                ),
                (
                    'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef.apiGroup: "A" contains '
                    '"A"; allowed are lower case letters, digits, "-" and ".". Correct the group.'
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
            VOLUMES: [
                {"name": "a"},
                {"name": "b", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
                {"name": "c", "hostPath": {"path": "/a", "type": ""}},
                {"name": "d", "hostPath": None},
            ]
        },
        {VOLUMES: [{"name": "a", "emptyDir": {"sizeLimit": 0}}]},
        {VOLUMES: [{"name": "a", "emptyDir": {"sizeLimit": -1}}]},
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
