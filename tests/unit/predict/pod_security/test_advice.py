"""The suggested fix for each violation of a Pod Security level."""

from random import Random
from typing import Any

import pytest

from tests.support.pod_security.pods import pod
from webhook.predict.pod_security import LATEST, NEWEST, Level, Version, evaluate
from webhook.predict.pod_security.advice import advice, permitting
from webhook.predict.pod_security.checks import REGISTRY
from webhook.predict.pod_security.pod import convert


def advices(level: Level, spec: dict[str, Any]) -> list[str]:
    template = convert({"spec": spec})
    return [advice(result, template) for result in evaluate(level, LATEST, template)]


RDMA = "DMA needs no hostPath: a device resource such as rdma/hca in limits brings the devices"
NVIDIA = "GPUs need no hostPath: nvidia.com/gpu in limits brings the devices"
AMD = "GPUs need no hostPath: amd.com/gpu in limits brings the devices"
DEVICES = "devices need no hostPath: a device resource in limits brings them"
STORAGE = "se a PersistentVolumeClaim, or an emptyDir for scratch space"


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/dev/infiniband"], f"R{RDMA}."),
        (["/dev/infiniband/uverbs0"], f"R{RDMA}."),
        (["/dev/infiniband2"], f"D{DEVICES[1:]}."),
        (["/dev/shm"], "Use an emptyDir with medium: Memory."),
        (["/dev/hugepages"], "Use an emptyDir with medium: HugePages."),
        (["/dev/nvidia0"], f"{NVIDIA}."),
        (["/dev/nvidia-caps/x"], f"{NVIDIA}."),
        (["/dev/kfd", "/dev/dri"], f"{AMD}."),
        (["/dev"], f"D{DEVICES[1:]}."),
        (["/developers"], f"U{STORAGE}."),
        (["/data", "/dev/infiniband", "/scratch", None], f"U{STORAGE}; R{RDMA}."),
    ],
)
@pytest.mark.parametrize("level", [Level.BASELINE, Level.RESTRICTED])
def test_advice_for_a_host_path_names_a_replacement(level: Level, paths: list[str | None], expected: str) -> None:
    volumes = [{"name": f"v{index}", "hostPath": {"path": path}} for index, path in enumerate(paths)]
    # A pod without containers: only its volumes violate the level.
    assert advices(level, {"volumes": volumes}) == [expected]


def test_claim_is_suggested_for_volumes_that_only_the_level_restricted_rejects() -> None:
    claim = "each storage through a PersistentVolumeClaim"
    assert advices(Level.RESTRICTED, {"volumes": [{"nfs": {}}]}) == [f"R{claim}."]
    both = [{"nfs": {}}, {"hostPath": {"path": "/data"}}]
    assert advices(Level.RESTRICTED, {"volumes": both}) == [f"U{STORAGE}; r{claim}."]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"hostNetwork": True}, ["Remove hostNetwork", "device resource", "secondary network"]),
        ({"hostIPC": True}, ["Remove hostIPC", "/dev/shm"]),
        ({"hostPID": True}, ["Remove hostPID."]),
        ({"hostNetwork": True, "hostPID": True, "hostIPC": False}, ["Remove hostNetwork", "Remove hostPID"]),
    ],
)
def test_advice_for_host_namespaces_says_what_to_remove(spec: dict[str, Any], words: list[str]) -> None:
    (text,) = advices(Level.BASELINE, spec)
    assert all(word in text for word in words)
    assert text.count("Remove") == sum(value for value in spec.values())


@pytest.mark.parametrize("level", [Level.BASELINE, Level.RESTRICTED])
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_advice_for_ipc_lock_explains_the_capability(level: Level, kind: str) -> None:
    context = {"capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}, "runAsNonRoot": True}
    context |= {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}}
    (text,) = advices(level, {kind: [{"name": "a", "securityContext": context}]})
    assert text.startswith('Remove "IPC_LOCK" from capabilities.add. IPC_LOCK is in effect for root only')
    assert "LimitMEMLOCK=infinity" in text


def test_advice_names_the_capabilities_to_drop_and_to_remove() -> None:
    added = [{"name": name, "securityContext": {"capabilities": {"add": [name]}}} for name in ("SYS_ADMIN", "CHOWN")]
    assert advices(Level.BASELINE, {"containers": added}) == ['Remove "SYS_ADMIN" from capabilities.add.']
    drop = 'Set capabilities.drop: ["ALL"].'
    both = f'{drop} Remove "CHOWN", "SYS_ADMIN" from capabilities.add.'
    assert both in advices(Level.RESTRICTED, {"containers": added})
    assert drop in advices(Level.RESTRICTED, {"containers": [{"name": "a"}]})


def test_every_check_has_advice() -> None:
    seen = set()
    for seed in range(1500):
        template = convert(pod(Random(seed)))
        for level in (Level.BASELINE, Level.RESTRICTED):
            for version in (Version(18), Version(30), LATEST):
                for result in evaluate(level, version, template):
                    seen.add(result.check)
                    text = advice(result, template)
                    assert text.endswith(".")
                    assert text[0].isupper()
    assert seen == set(REGISTRY)


@pytest.mark.parametrize("seed", range(60))
def test_permitting_level_is_the_strictest_that_allows_the_fields(seed: int) -> None:
    template = convert(pod(Random(seed)))
    for version in (Version(10), Version(30), NEWEST):
        fields = {path for result in evaluate(Level.BASELINE, version, template) for path in result.paths}
        for result in evaluate(Level.RESTRICTED, version, template):
            allowed = permitting(result, version, template)
            assert (allowed is Level.PRIVILEGED) == bool(fields.intersection(result.paths))
