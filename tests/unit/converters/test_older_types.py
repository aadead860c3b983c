"""What clients of older versions can read: the fields of the CRD, of its types."""

from typing import Any

import pytest
import yaml

from tests.support import older_jobs
from tests.support.older_jobs import V1, V1ALPHA1, V1ALPHA2
from tools.older_versions_crd import FILE
from webhook.api.mpijob import OLDER_VERSIONS
from webhook.converters.both_ways import OWN_FIELDS, faults

Json = dict[str, Any]
PORT = {"httpGet": {"port": "ssh"}}


def in_container(**fields: Any) -> Json:
    return {"template": {"spec": {"containers": [{"name": "mpi", **fields}]}}}


def test_the_fields_of_the_crd() -> None:
    operations = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    versions = {
        f"kubeflow.org/{each['value']['name']}": each["value"]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        for each in operations
        if each["path"] == "/spec/versions/-"
    }
    assert [*versions] == [*OLDER_VERSIONS]
    for version, spec in versions.items():
        types = {key: each["type"] for key, each in spec["properties"].items()}
        own = {key: shape.type for key, shape in OWN_FIELDS[version].items()}
        common = {"slotsPerWorker": "integer", "runPolicy": "object", "mpiReplicaSpecs": "object"}
        assert types == {**common, **own, **({"template": "object"} if version == V1ALPHA1 else {})}


@pytest.mark.parametrize("version", OLDER_VERSIONS)
def test_a_job_with_every_field(version: str) -> None:
    assert [each for each in faults(version, older_jobs.full(version)["spec"]) if each.text != "is no quantity"] == []


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"template": None, "gpus": None},
        {"template": {"metadata": {"creationTimestamp": None}}},
        in_container(resources={"limits": {"cpu": 1, "memory": "2Gi"}}, readinessProbe=PORT),
        in_container(env=[{"name": "A"}], ports=[{"containerPort": 22}]),
    ],
)
def test_what_can_be_read(spec: Any) -> None:
    assert [*faults(V1ALPHA1, spec)] == []


@pytest.mark.parametrize(
    ("version", "spec", "found"),
    [
        (V1, [], ("spec", "is not a mapping", True)),
        (V1, {"cleanPodPolicy": 5}, ("spec.cleanPodPolicy", "is not text", True)),
        (V1, {"slotsPerWorker": True}, ("spec.slotsPerWorker", "is not a whole number", True)),
        (V1, {"slotsPerWorker": 2**31}, ("spec.slotsPerWorker", "does not fit into 32 bits", False)),
        (V1, {"gpus": 5}, ("spec.gpus", "is no field of this version", False)),
        (V1ALPHA2, {"mpiReplicaSpecs": {"Worker": 5}}, ("spec.mpiReplicaSpecs[Worker]", "is not a mapping", True)),
        (
            V1ALPHA1,
            {"template": {"spec": {"volumes": [{"name": "a", "hostPath": 5}]}}},
            ("spec.template.spec.volumes[0].hostPath", "is not a mapping", True),
        ),
        (V1ALPHA1, in_container(env={}), ("spec.template.spec.containers[0].env", "is not a list", True)),
        (
            V1ALPHA1,
            in_container(resources={"limits": {"port": "many"}}),
            ("spec.template.spec.containers[0].resources.limits[port]", "is no quantity", False),
        ),
        (
            V1ALPHA1,
            in_container(readinessProbe={"httpGet": {"port": 2**40}}),
            ("spec.template.spec.containers[0].readinessProbe.httpGet.port", "does not fit into 32 bits", False),
        ),
    ],
)
def test_what_cannot(version: str, spec: Any, found: tuple[str, str, bool]) -> None:
    assert [*faults(version, spec)] == [found]
