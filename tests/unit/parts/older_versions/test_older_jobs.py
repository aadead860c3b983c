"""Conversion of all older versions: every field is converted or reported, and invalid input is rejected."""

import re
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import odd_values
from tests.support.older_jobs import FIELDS, V1, V1ALPHA1, V1ALPHA2, full
from webhook.api.mpijob import API_VERSION, OLDER_VERSIONS
from webhook.converters.report import ConversionError, Converted, Outcome
from webhook.parts.older_versions.older_jobs import convert
from webhook.parts.older_versions.replica_specs import Options

JOBS = {
    "v1": full(V1),
    "v1alpha2": full(V1ALPHA2),
    "v1alpha1 by GPUs": full(V1ALPHA1, "spec.processingUnits", "spec.replicas"),
    "v1alpha1 by units": full(V1ALPHA1, "spec.gpus", "spec.replicas"),
    "v1alpha1 by replicas": full(V1ALPHA1, "spec.gpus", "spec.processingUnits"),
}
Leaf = tuple[str, str]


def leaves(value: Any, path: str = "") -> Iterator[Leaf]:
    """Each value with its path. Items of a list have no index, because items may be removed or reordered."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for item in value:
            yield from leaves(item, path)
    else:
        yield path, repr(value)


def plain(field: str) -> str:
    return re.sub(r"\[([^]]*)]", lambda match: "" if match[1].isdigit() else f".{match[1]}", field)


def unreported(old: dict[str, Any], converted: Converted) -> set[Leaf]:
    """Values of the old job that are neither in the new job nor in the report."""
    remaining = set(leaves(converted.document))
    for role in ("Launcher", "Worker"):
        prefix = f"spec.mpiReplicaSpecs.{role}.template"
        if old["apiVersion"] == V1ALPHA1:
            remaining |= {(path.replace(prefix, "spec.template"), value) for path, value in remaining}
    # A note about the whole template does not report the fields in the template.
    reported = {plain(note.field) for note in converted.report.notes} - {"spec.template"}
    return {
        (path, value)
        for path, value in leaves(old)
        if (path, value) not in remaining and not any(f"{path}.".startswith(f"{field}.") for field in reported)
    }


def test_example_jobs_set_every_field_of_the_old_types() -> None:
    assert set(OLDER_VERSIONS) == set(FIELDS)
    for version, fields in FIELDS.items():
        paths = {path for job in JOBS.values() if job["apiVersion"] == version for path, _ in leaves(job)}
        assert [field for field in fields if not any(f"{path}.".startswith(f"{field}.") for path in paths)] == []


@pytest.mark.parametrize("options", [Options(), Options(keep_launcher_small=True, ssh_path="/home/user/.ssh")])
@pytest.mark.parametrize("name", JOBS)
def test_every_value_is_converted_or_reported(name: str, options: Options) -> None:
    old = deepcopy(JOBS[name])
    converted = convert(old, options)
    assert old == JOBS[name], "the input is not changed"
    assert unreported(old, converted) == set()
    assert converted.document["apiVersion"] == API_VERSION


def test_helper_finds_the_unreported_values_if_the_report_is_empty() -> None:
    converted = convert(JOBS["v1"])
    converted.report.notes.clear()
    paths = {path for path, _ in unreported(JOBS["v1"], converted)}
    assert {"status.startTime", "spec.cleanPodPolicy", "spec.mainContainer", "metadata.uid"} <= paths


@pytest.mark.parametrize(
    ("status", "step"),
    [
        ({"conditions": [{"type": "Succeeded", "status": "False"}]}, ""),
        ({"conditions": [{"type": "Running", "status": "True"}]}, "is running: the new one begins at the beginning"),
        (
            {"conditions": [{"type": "Running", "status": "False"}, {"type": "Failed", "status": "True"}]},
            "has ended (Failed): leave it out, or it runs once more",
        ),
        ({"launcherStatus": "Active"}, "is running"),
        ({"launcherStatus": "Succeeded", "workerReplicas": 2}, "has ended (Succeeded)"),
        ({"launcherStatus": ["x"], "conditions": {"type": {}}}, ""),
        ({"conditions": [{"type": [], "status": "True"}]}, ""),
        ("odd", ""),
    ],
)
def test_job_that_runs_or_has_ended_is_reported(status: Any, step: str) -> None:
    steps = [note.text for note in convert({**JOBS["v1"], "status": status}).report.of(Outcome.TO_DO)]
    notes = [text for text in steps if text.startswith("the job ")]
    assert len(notes) == bool(step)
    assert not step or step in notes[0]


@pytest.mark.parametrize("version", FIELDS)
def test_unknown_fields_are_reported_as_lost(version: str) -> None:
    old = next(deepcopy(job) for job in JOBS.values() if job["apiVersion"] == version)
    old["spec"]["nprocs"] = old["odd"] = 1
    lost = {note.field for note in convert(old).report.of(Outcome.LOST)}
    assert {"spec.nprocs", "odd"} <= lost


@pytest.mark.parametrize("version", [V1, V1ALPHA2])
def test_unknown_nested_fields_are_reported_as_lost(version: str) -> None:
    old = full(version)
    old["spec"]["runPolicy"]["retries"] = 1
    old["spec"]["mpiReplicaSpecs"]["Worker"]["slots"] = 1
    old["spec"]["mpiReplicaSpecs"]["Master"] = {}
    lost = {note.field for note in convert(old).report.of(Outcome.LOST)}
    assert {"spec.runPolicy.retries", "spec.mpiReplicaSpecs[Worker].slots", "spec.mpiReplicaSpecs[Master]"} <= lost


@pytest.mark.parametrize("version", FIELDS)
def test_v2beta1_fields_in_a_partly_converted_job_are_kept(version: str) -> None:
    old = next(deepcopy(job) for job in JOBS.values() if job["apiVersion"] == version)
    old["spec"]["sshAuthMountPath"] = "/home/user/.ssh"
    assert convert(old).document["spec"]["sshAuthMountPath"] == "/home/user/.ssh"
    assert convert(old, Options(ssh_path="/x/.ssh")).document["spec"]["sshAuthMountPath"] == "/x/.ssh"


def test_report_has_a_step_for_every_image() -> None:
    done = {note.text for note in convert(JOBS["v1"]).report.of(Outcome.TO_DO) if note.field == "image"}
    assert done == {
        '"image" needs sshd with StrictModes no and ssh with StrictHostKeyChecking no: older operators used kubectl '
        "exec, so the image may have no ssh"
    }


def test_only_the_annotation_of_kubectl_is_removed() -> None:
    assert convert(JOBS["v1"]).document["metadata"]["annotations"] == {"note": "mine"}


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"apiVersion": API_VERSION}, 'apiVersion: "kubeflow.org/v2beta1" is not a known version of MPIJob'),
        ({}, 'apiVersion: "" is not a known version of MPIJob'),
        ({"apiVersion": 1}, "MPIJob.apiVersion: is not text"),
        ({"apiVersion": V1}, "spec: is not set"),
        ({"apiVersion": V1, "spec": []}, "MPIJob.spec: is not a mapping"),
        ({"apiVersion": V1, "spec": {}}, "spec.mpiReplicaSpecs: is not set"),
        (
            {"apiVersion": V1, "spec": {"mpiReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [1]}}}}}},
            "spec.mpiReplicaSpecs[Worker].template.spec.containers: is not a list of containers",
        ),
    ],
)
def test_object_that_is_not_an_older_job_is_rejected(document: dict[str, Any], error: str) -> None:
    with pytest.raises(ConversionError, match=f"^{re.escape(error)}"):
        convert({"kind": "MPIJob", **document})


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_conversion_of_any_values_raises_only_conversion_errors(data: st.DataObject) -> None:
    job = odd_values.changed(JOBS[data.draw(st.sampled_from(sorted(JOBS)))], data)
    with suppress(ConversionError):
        convert(job)
