"""Conversion of very large jobs: the processor time is limited, and no stored value is lost."""

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from tests.support.older_jobs import V1, V1ALPHA1, V1ALPHA2
from webhook.api.mpijob import API_VERSION
from webhook.converters.report import ConversionError
from webhook.parts.older_versions import both_ways, conversion_review
from webhook.parts.older_versions.both_ways import NO_JOB, SHOWN, WRITTEN_AS

Json = dict[str, Any]
OLDER = (V1, V1ALPHA2, V1ALPHA1)
WHY = "too large to judge: 60,000 mappings and lists, at most 20,000"


def job(version: str, pod: Json, **metadata: Any) -> Json:
    roles = {role: {"template": {"spec": pod}} for role in ("Launcher", "Worker")}
    spec = {"mpiReplicaSpecs": roles, "sshAuthMountPath": "/home/mpi/.ssh", "slotsPerWorker": 2}
    if version != API_VERSION:
        del spec["sshAuthMountPath"]
    return {"apiVersion": version, "kind": "MPIJob", "metadata": {"name": "a", **metadata}, "spec": spec}


def raw(document: Json) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(document).encode())


def converted(document: Json, version: str) -> Json:
    """Convert a job that is too large to judge."""
    opened = conversion_review.opened(raw(document))
    new: Json = json.loads(bytes(conversion_review.raw(both_ways.convert(opened, version, too_large=WHY))))
    return new


PODS = {
    "lists": {"containers": [{"name": "c", "x": [[]] * 30_000}]},
    "containers": {"containers": [{}] * 30_000},
    "env": {"containers": [{"name": "c", "env": [{"name": f"E{n}", "value": "v"} for n in range(26_000)]}]},
    "tolerations": {"containers": [{"name": "c"}], "tolerations": [{}] * 30_000},
}


@pytest.mark.parametrize("pod", PODS)
@pytest.mark.parametrize("version", OLDER)
def test_large_v2beta1_job_keeps_its_spec_when_converted_to_an_older_version_and_back(pod: str, version: str) -> None:
    original = job(API_VERSION, PODS[pod], annotations={"team": "a"})
    older = converted(original, version)
    assert older["spec"] == {key: value for key, value in original["spec"].items() if key != "sshAuthMountPath"}
    assert older["apiVersion"] == version
    assert converted(older, API_VERSION) == original


def test_labels_set_by_an_older_client_are_converted() -> None:
    older = converted(job(API_VERSION, PODS["lists"]), V1)
    older["metadata"]["labels"] = {"a": "b"}
    assert converted(older, API_VERSION)["metadata"] == {"name": "a", "labels": {"a": "b"}}


def test_fields_that_only_v1_has_are_kept_and_a_change_of_them_is_rejected() -> None:
    written = json.dumps({"apiVersion": V1, "spec": {"cleanPodPolicy": "Running", "mpiReplicaSpecs": {}}})
    original = job(API_VERSION, PODS["lists"], annotations={WRITTEN_AS: written})
    older = converted(original, V1)
    assert older["spec"]["cleanPodPolicy"] == "Running"
    assert converted(older, API_VERSION) == original
    older["spec"]["cleanPodPolicy"] = "All"
    with pytest.raises(ConversionError, match="too large to judge"):
        converted(older, API_VERSION)


@pytest.mark.parametrize("version", OLDER)
def test_too_large_job_is_rejected_in_a_request_and_gets_a_stand_in_if_stored(version: str) -> None:
    """The stand-in NO_JOB is a suspended job without pods.

    A list of all jobs would fail if the conversion of one stored job failed.
    """
    for metadata in ({}, {"uid": "7", "resourceVersion": "1"}):
        with pytest.raises(ConversionError) as rejected:
            converted(job(version, PODS["lists"], **metadata), API_VERSION)
        assert str(rejected.value) == f"spec: {WHY}"
    assert converted(job(version, PODS["lists"], uid="7"), API_VERSION)["spec"] == NO_JOB


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": None},
        {"metadata": {"annotations": None}},
        {"metadata": {"annotations": {SHOWN: "[", WRITTEN_AS: "{}"}}},
        {"metadata": {"annotations": {SHOWN: "x" * 300_000}}},
        {"metadata": {"uid": [], "resourceVersion": {}}},
        {"spec": None},
        {"spec": [1]},
        {"apiVersion": 1},
        {"kind": []},
    ],
)
@pytest.mark.parametrize("version", [API_VERSION, V1, V1ALPHA1])
def test_conversion_of_a_large_job_with_any_values_raises_only_conversion_errors(changes: Json, version: str) -> None:
    other = V1 if version == API_VERSION else API_VERSION
    with suppress(ConversionError):
        converted({**job(version, {"containers": [{}]}), **changes}, other)
