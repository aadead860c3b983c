"""Settings of injections that a policy may not have."""

import pytest
from pydantic import ValidationError

from tests.support.injecting import only

GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
TOO_LONG = "x" * 64
LABELS = [{"": "x"}, {"a b": "x"}, {"a": TOO_LONG}, {"a": 1}, {"a": "x y"}]
QUEUE = {"kueue.x-k8s.io/queue-name": "training"}
KUEUES = r"kueue\.x-k8s\.io/ belongs to Kueue: use the injections kueue-queue"
AMOUNTS = {"cpu": "1", "memory": "1Gi"}
VENDORS = [{}, {"resources": ["gpu"]}, *({"resources": [GPU], **more} for more in (
    {"present": "a b"}, {"product": "/x"}, {"taints": ["a b"]}, {"label": "x"}
))]  # fmt: skip
INVALID = {
    "gpu-nodes": [
        *({"nodeAffinity": value} for value in ("strongly", True)),
        *({"vendors": [vendor]} for vendor in VENDORS),
        {"vendors": [{"resources": [GPU]}] * 17},
    ],
    "image-pull-secrets": [{"secrets": [name]} for name in ("", "A", "a b", "a/b", "x" * 254)],
    "job-timeout": [{"default": value} for value in ("", "1 day", "0s", 86400)],
    "kueue-priority": [{"priorityClass": name} for name in ("a_b", "A", TOO_LONG)],
    "kueue-queue": [{"queue": name} for name in ("a_b", "A", TOO_LONG)],
    "labels": [
        {field: labels} for field in ("job", "pods") for labels in (*LABELS, {"training.kubeflow.org/job-name": "x"})
    ],
    "launcher-resources": [
        {"requests": AMOUNTS | {"cpu": "2"}},
        {"requests": AMOUNTS | {"cpu": "x"}},
        {"limits": AMOUNTS | {"cpu": "0"}},
        {"requests": {"cpu": "1"}},
        {"limits": AMOUNTS | {GPU: "1"}},
        {"when": "sometimes"},
    ],
    "networks": [{"networks": [name]} for name in ("", "a,b", "A", "a/b/c", "a@", '[{"name":"a"}]')],
    "node-selector": [{"labels": labels} for labels in (*LABELS, {"a/b/c": "x"})],
    "rdma": [
        *({"environment": names} for names in ({"1": ""}, {"A B": ""}, {"OMPI_MCA_mca_base_env_list": "A"})),
        *({"resource": name} for name in ("gpu", "a b/c", "rdma/*")),
        *({"hugepages": {EFA: amount}} for amount in ("1Mi", "x", "0")),
        {"perGpu": 1, "perPod": 1},
        {"perGpu": 0},
        {"perPod": 65},
        {"networks": ["a,b"]},
    ],
    "shared-memory": [{"size": size} for size in ("", "x", "0", "-1Gi", "1e1.5")],
    "topology": [{"keys": keys} for keys in (["a b"], [""], [5], [f"k{index}" for index in range(17)])],
    "volcano-queue": [{"queue": name} for name in ("a_b", "A")],
    "worker-readiness": [{"port": port} for port in (0, 65536, "ssh")],
}


@pytest.mark.parametrize(
    ("injection", "settings"), [(name, settings) for name, several in INVALID.items() for settings in several]
)
def test_an_invalid_setting_is_rejected(injection: str, settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        only(injection, **settings)


@pytest.mark.parametrize(
    ("injection", "settings", "message"),
    [
        ("labels", {"job": QUEUE}, KUEUES),
        ("labels", {"pods": QUEUE}, KUEUES),
        *(
            ("tolerations", {"tolerations": [toleration]}, message)
            for toleration, message in (
                ({}, "without a key the operator must be Exists"),
                ({"value": "x"}, "without a key the operator must be Exists"),
                ({"key": "a b"}, 'the key "a b" contains " "'),
                ({"key": "a", "value": "b c"}, 'the value "b c" contains " "'),
                ({"key": "a", "operator": "Exists", "value": "b"}, "the operator Exists takes no value"),
                ({"key": "a", "operator": "Gt", "value": "1"}, "'Equal' or 'Exists'"),
                ({"key": "a", "effect": "NoRun"}, "'NoSchedule', 'PreferNoSchedule' or 'NoExecute'"),
                ({"key": "a", "tolerationSeconds": 3}, "tolerationSeconds is only for the effect NoExecute"),
                ({"key": "a", "seconds": 3}, "Extra inputs are not permitted"),
            )
        ),
    ],
)
def test_an_invalid_setting_is_rejected_with_the_reason(
    injection: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        only(injection, **settings)
