"""The injection `shared-memory` mounts a memory volume at /dev/shm of containers with accelerators.

The size of the volume is within the memory limits.
"""

from typing import Any

import pytest

from tests.support.injecting import PATHS, Example, hold, inject, mpijob, only, policy_of
from tests.support.jobs import GOOD
from tests.support.limit_ranges import limit_range
from tests.support.quota_objects import cluster, quota
from webhook.cluster.snapshot import Snapshot

EXAMPLE = Example(job=GOOD)
SPEC = f"{PATHS['Worker']}/spec"
GPU = {"nvidia.com/gpu": 8}


def job(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    named = [{"name": f"c{index}", "image": "mpi:1", **container} for index, container in enumerate(containers)]
    return mpijob(worker={"spec": {"containers": named, **fields}})


def gpus(memory: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"resources": {"limits": {**GPU, **({"memory": memory} if memory else {})}}, **fields}


def volume(**limit: str) -> list[dict[str, Any]]:
    return [{"name": "shared-memory", "emptyDir": {"medium": "Memory", **limit}}]


MOUNTS = [{"name": "shared-memory", "mountPath": "/dev/shm"}]


@pytest.mark.parametrize(
    ("memory", "size", "limit"),
    [
        ("64Gi", None, "64Gi"),
        ("64Gi", "16Gi", "16Gi"),
        ("64Gi", "65Gi", "64Gi"),
        (None, "16Gi", "16Gi"),
        (None, None, None),
        ("nonsense", None, None),
        ("-1", None, None),
        ("64", "16Gi", "16Gi"),
    ],
)
def test_volume_is_within_the_memory_limit(memory: str | None, size: str | None, limit: str | None) -> None:
    added, notes = inject("shared-memory", job(gpus(memory)), size=size)
    assert added == {
        f"{SPEC}/volumes": volume(**({"sizeLimit": limit} if limit else {})),
        f"{SPEC}/containers/0/volumeMounts": MOUNTS,
    }
    assert notes == [f"mounted a memory volume{f' of {limit}' if limit else ''} at /dev/shm of the worker"]


@pytest.mark.parametrize(("size", "limit"), [(None, "16Gi"), ("32Gi", "16Gi"), ("8Gi", "8Gi")])
def test_volume_is_within_the_memory_limit_of_the_pod(size: str | None, limit: str) -> None:
    resources = {"limits": {"cpu": 8, "memory": "16Gi"}}
    added, _ = inject("shared-memory", job(gpus(), resources=resources), size=size)
    assert added[f"{SPEC}/volumes"] == volume(sizeLimit=limit)


def test_volume_is_within_an_injected_memory_limit() -> None:
    """A quota requires the limit, and the injection `launcher-resources` sets it."""
    settings: dict[str, dict[str, Any]] = {name: {"enabled": True} for name in ("launcher-resources", "shared-memory")}
    settings["shared-memory"] |= {"size": "64Gi"}
    submitted = mpijob(launcher={"spec": {"containers": [{"name": "mpi", "image": "mpi:1", **gpus()}]}})
    view = cluster(quota({"limits.memory": "1Ti"}, namespace="team"))
    document = hold(submitted, policy_of(settings), view=view).document
    assert document is not None
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    assert launcher["containers"][0]["resources"]["limits"]["memory"] == "2Gi"
    assert launcher["volumes"] == volume(sizeLimit="2Gi")


def test_containers_with_accelerators_share_one_volume_within_the_lowest_limit() -> None:
    claim = {"resources": {"claims": [{"name": "gpu"}]}}
    added, _ = inject("shared-memory", job(gpus("8Gi"), {}, gpus("4Gi"), claim, volumes=[{"name": "data"}]))
    assert added == {
        f"{SPEC}/volumes/-": volume(sizeLimit="4Gi")[0],
        f"{SPEC}/containers/0/volumeMounts": MOUNTS,
        f"{SPEC}/containers/2/volumeMounts": MOUNTS,
        f"{SPEC}/containers/3/volumeMounts": MOUNTS,
    }


@pytest.mark.parametrize(
    "submitted",
    [
        job({}),
        job({"resources": {"limits": {"nvidia.com/gpu": 0}}}),
        *(
            job(gpus(volumeMounts=[{"name": "x", "mountPath": path}]))
            for path in ("/dev/shm", "/dev/shm/", "//dev/shm", "dev/shm", "./dev/shm", "/dev", "/")
        ),
        job(gpus(), hostIPC=True),
        job(gpus(), volumes=[{"name": "shared-memory", "persistentVolumeClaim": {"claimName": "x"}}]),
        mpijob(worker={"spec": None}),
    ],
)
def test_pod_that_needs_no_volume_stays_unchanged(submitted: dict[str, Any]) -> None:
    assert inject("shared-memory", submitted) == ({}, [])


def test_volume_is_within_the_default_limit_of_a_limit_range() -> None:
    limits = {"type": "Container", "default": {"memory": "32Gi"}}
    view = Snapshot([limit_range("bounds", limits, namespace="team")])
    decision = hold(job(gpus()), only("shared-memory", size="40Gi"), view=view)
    assert decision.patch[0]["value"] == volume(sizeLimit="32Gi")


def test_mount_below_dev_shm_does_not_prevent_the_volume() -> None:
    added, _ = inject("shared-memory", job(gpus(volumeMounts=[{"name": "x", "mountPath": "/dev/shm/cache"}])))
    assert added[f"{SPEC}/containers/0/volumeMounts/-"] == MOUNTS[0]


def test_launcher_with_accelerators_gets_a_volume() -> None:
    launcher = {"spec": {"containers": [{"name": "mpi", "image": "registry.example.com/mpi:1", **gpus("8Gi")}]}}
    _, notes = inject("shared-memory", mpijob(launcher=launcher))
    assert notes == ["mounted a memory volume of 8Gi at /dev/shm of the launcher"]


def test_names_of_accelerators_come_from_the_setting_resources() -> None:
    submitted = job({"resources": {"limits": {"example.com/npu": 1}}})
    assert inject("shared-memory", submitted) == ({}, [])
    assert inject("shared-memory", submitted, resources=["example.com/*"])[1]


@pytest.mark.parametrize(
    ("fields", "unchanged"),
    [
        ({"os": {"name": "windows"}}, True),
        ({"nodeSelector": {"kubernetes.io/os": "windows"}}, True),
        ({"os": {"name": "linux"}, "nodeSelector": {"kubernetes.io/os": "linux"}}, False),
    ],
)
def test_only_pods_for_windows_stay_unchanged(fields: dict[str, Any], unchanged: bool) -> None:
    assert (inject("shared-memory", job(gpus("8Gi"), **fields)) == ({}, [])) == unchanged
