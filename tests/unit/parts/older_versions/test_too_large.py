"""Very large jobs in other versions: the work is limited, and no stored value is lost."""

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


def shown(document: Json, version: str) -> Json:
    """The too large job in a different version."""
    opened = conversion_review.opened(raw(document))
    found: Json = json.loads(bytes(conversion_review.raw(both_ways.convert(opened, version, too_large=WHY))))
    return found


PODS = {
    "lists": {"containers": [{"name": "c", "x": [[]] * 30_000}]},
    "containers": {"containers": [{}] * 30_000},
    "env": {"containers": [{"name": "c", "env": [{"name": f"E{n}", "value": "v"} for n in range(26_000)]}]},
    "tolerations": {"containers": [{"name": "c"}], "tolerations": [{}] * 30_000},
}


@pytest.mark.parametrize("pod", PODS)
@pytest.mark.parametrize("version", OLDER)
def test_a_large_job_is_shown_as_it_is_and_led_back_without_a_look_at_its_pods(pod: str, version: str) -> None:
    whole = job(API_VERSION, PODS[pod], annotations={"team": "a"})
    older = shown(whole, version)
    assert older["spec"] == {key: value for key, value in whole["spec"].items() if key != "sshAuthMountPath"}
    assert older["apiVersion"] == version
    assert shown(older, API_VERSION) == whole


def test_metadata_from_an_older_client_is_converted() -> None:
    older = shown(job(API_VERSION, PODS["lists"]), V1)
    older["metadata"]["labels"] = {"a": "b"}
    assert shown(older, API_VERSION)["metadata"] == {"name": "a", "labels": {"a": "b"}}


def test_original_annotation_stays() -> None:
    written = json.dumps({"apiVersion": V1, "spec": {"cleanPodPolicy": "Running", "mpiReplicaSpecs": {}}})
    whole = job(API_VERSION, PODS["lists"], annotations={WRITTEN_AS: written})
    older = shown(whole, V1)
    assert older["spec"]["cleanPodPolicy"] == "Running"
    assert shown(older, API_VERSION) == whole
    older["spec"]["cleanPodPolicy"] = "All"
    with pytest.raises(ConversionError, match="too large to judge"):
        shown(older, API_VERSION)


@pytest.mark.parametrize("version", OLDER)
def test_too_large_job_is_rejected_when_sent_and_gets_a_placeholder_when_stored(version: str) -> None:
    """A list of all jobs would fail for one that is stored."""
    sent = job(version, PODS["lists"])
    with pytest.raises(ConversionError) as refused:
        shown(sent, API_VERSION)
    assert str(refused.value) == f"spec: {WHY}"
    stored = {**sent, "metadata": {"name": "a", "uid": "7"}}
    assert shown(stored, API_VERSION)["spec"] == NO_JOB
    with pytest.raises(ConversionError):
        shown({**sent, "metadata": {"name": "a", "uid": "7", "resourceVersion": "1"}}, API_VERSION)


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": None},
        {"metadata": 1},
        {"metadata": {"annotations": None}},
        {"metadata": {"annotations": {SHOWN: "[", WRITTEN_AS: "{}"}}},
        {"metadata": {"annotations": {SHOWN: "x" * 300_000}}},
        {"metadata": {"uid": [], "resourceVersion": {}}},
        {"spec": None},
        {"spec": [1]},
        {"spec": {}},
        {"apiVersion": 1},
        {"kind": []},
    ],
)
@pytest.mark.parametrize("version", [API_VERSION, V1, V1ALPHA1])
def test_odd_values_of_a_large_job_are_no_fault_of_ours(changes: Json, version: str) -> None:
    other = V1 if version == API_VERSION else API_VERSION
    with suppress(ConversionError):
        shown({**job(version, {"containers": [{}]}), **changes}, other)
