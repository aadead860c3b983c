"""What is told of volume mounts and devices."""

from typing import Any

import pytest

from tests.support.pod_template import BOX, SPEC, told

VOLUMES = f"{SPEC}.volumes"
MOUNTS = f"{BOX}.volumeMounts"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {VOLUMES: [{"name": "scratch"}], MOUNTS: [{"name": "scrtch", "mountPath": "/scratch"}]},
            [
                (
                    'spec.containers[0].volumeMounts[0].name: there is no volume "scrtch". Write "scratch", or '
                    "add the volume."
                )
            ],
        ),
        (  # the volume of the injection is not what was meant
            {VOLUMES: [{"name": "shared-memory"}], MOUNTS: [{"name": "shared-memry", "mountPath": "/data"}]},
            [
                (
                    'spec.containers[0].volumeMounts[0].name: there is no volume "shared-memry". Add the volume under '
                    "volumes, or correct the name."
                )
            ],
        ),
        (
            {MOUNTS: [{"name": "data", "mountPath": "/data"}]},
            [
                (
                    'spec.containers[0].volumeMounts[0].name: there is no volume "data". Add the volume under '
                    "volumes, or correct the name."
                )
            ],
        ),
        (
            {VOLUMES: [{"name": "a"}], MOUNTS: [{"name": "a", "mountPath": "/a"}, {"name": "a", "mountPath": "/a"}]},
            [
                (
                    'spec.containers[0].volumeMounts[1].mountPath: there is another mount at "/a". '
                    "Mount it elsewhere, or keep one of the two."
                )
            ],
        ),
        (
            {VOLUMES: [{"name": "a"}], MOUNTS: [{"name": "a", "mountPath": ""}]},
            ["spec.containers[0].volumeMounts[0].mountPath: is empty. Set it."],
        ),
        (
            {
                VOLUMES: [{"name": "a"}],
                MOUNTS: [
                    {"name": "a", "mountPath": "/a", "subPath": "/b"},
                    {"name": "a", "mountPath": "/b", "subPathExpr": "../c"},
                ],
            },
            [
                ('spec.containers[0].volumeMounts[0].subPath: "/b" must be relative. Name a path inside the volume.'),
                (
                    'spec.containers[0].volumeMounts[1].subPathExpr: "../c" must not contain "..". Name a path '
                    "inside the volume."
                ),
            ],
        ),
        (
            {VOLUMES: [{"name": "a"}], MOUNTS: [{"name": "a", "mountPath": "/a", "subPath": "b", "subPathExpr": "c"}]},
            [("spec.containers[0].volumeMounts[0].subPathExpr: does not go with subPath. Remove one of the two.")],
        ),
        (
            {VOLUMES: [{"name": "a"}], MOUNTS: [{"name": "a", "mountPath": "/a", "mountPropagation": "Bidirectional"}]},
            [
                (
                    "spec.containers[0].volumeMounts[0].mountPropagation: Bidirectional is for privileged "
                    "containers only. Remove it."
                )
            ],
        ),
        (
            {VOLUMES: [{"name": "a"}], MOUNTS: [{"name": "a", "mountPath": "/a", "recursiveReadOnly": "Enabled"}]},
            [
                "spec.containers[0].volumeMounts[0].recursiveReadOnly: needs readOnly: true. "
                "Set readOnly: true beside it.",
            ],
        ),
        (
            {
                VOLUMES: [{"name": "a"}],
                MOUNTS: [
                    {
                        "name": "a",
                        "mountPath": "/a",
                        "readOnly": True,
                        "recursiveReadOnly": "Enabled",
                        "mountPropagation": "HostToContainer",
                    }
                ],
            },
            [
                (
                    "spec.containers[0].volumeMounts[0].recursiveReadOnly: does not go with mountPropagation. "
                    "Remove one of the two."
                )
            ],
        ),
        (
            {f"{BOX}.volumeDevices": [{"name": "a", "devicePath": "/dev/a"}]},
            [
                (
                    'spec.containers[0].volumeDevices[0].name: there is no volume "a". Add the volume under '
                    "volumes, or correct the name."
                )
            ],
        ),
        (
            {VOLUMES: [{"name": "a"}], f"{BOX}.volumeDevices": [{"name": "a", "devicePath": "/dev/../a"}]},
            [
                (
                    'spec.containers[0].volumeDevices[0].name: "a" is no claim, and only claims can be devices. '
                    "Use a persistentVolumeClaim, or volumeMounts."
                ),
                (
                    'spec.containers[0].volumeDevices[0].devicePath: "/dev/../a" must not contain "..". Correct '
                    "the path."
                ),
            ],
        ),
        (
            {
                VOLUMES: [{"name": "a", "persistentVolumeClaim": {"claimName": "a"}}],
                f"{BOX}.volumeDevices": [{"name": "a", "devicePath": "/dev/a"}, {"name": "a", "devicePath": "/dev/b"}],
            },
            ["spec.containers[0].volumeDevices[1]: is there twice. Remove one of the two."],
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
                {"name": "keys", "image": "busybox:1", "volumeMounts": [{"name": "ssh-auth", "mountPath": "/keys"}]}
            ]
        },
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
