"""A job that is decoded with its templates is the same job, and the templates are those in its JSON."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from tests.support.strategies import PROPERTY, mangled_jobs
from webhook.api import mpijob, written
from webhook.api.shape import ShapeError

JOB: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"name": "train"},
    "spec": {
        "slotsPerWorker": 2,
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": {"spec": {"containers": [{"name": "l", "image": "i"}]}}},
            "Worker": {"restartPolicy": "Never"},
            "Other": None,
        },
    },
    "status": {"conditions": [{"type": "Created", "status": "True"}]},
}


def test_each_template_is_as_it_stands_in_the_document() -> None:
    text = json.dumps(JOB, indent=3).encode()
    job, templates = written.decode(text)
    assert job == mpijob.decode(text)
    assert type(job.spec) is mpijob.MPIJobSpec
    assert list(templates) == ["Launcher"]
    assert templates["Launcher"] in text
    assert json.loads(templates["Launcher"]) == JOB["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    assert written.templates(text) == templates


@pytest.mark.parametrize("specs", [None, {}, {"Worker": None}])
def test_a_job_without_templates(specs: object) -> None:
    text = json.dumps({"spec": {"mpiReplicaSpecs": specs}}).encode()
    assert written.decode(text) == (mpijob.decode(text), {})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.slotsPerWorker", {"spec": {"slotsPerWorker": "2"}}),
        ("spec.mpiReplicaSpecs[Worker].replicas", {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": "2"}}}}),
        ("spec.mpiReplicaSpecs[Worker].template", {"spec": {"mpiReplicaSpecs": {"Worker": {"template": None}}}}),
        (
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].args",
            {"spec": {"mpiReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"args": "x"}]}}}}}},
        ),
    ],
)
def test_a_fault_has_its_whole_path(path: str, value: object) -> None:
    text = json.dumps(value).encode()
    with pytest.raises(ShapeError) as expected:
        mpijob.decode(text)
    with pytest.raises(ShapeError) as raised:
        written.decode(text)
    assert (raised.value.path, raised.value.message) == (expected.value.path, expected.value.message)
    assert raised.value.path == path


@PROPERTY
@given(mangled_jobs())
def test_whatever_the_job_both_ways_say_the_same(job: object) -> None:
    text = json.dumps(job).encode()
    assert _outcome(written.decode, text) == _outcome(lambda data: (mpijob.decode(data), written.templates(data)), text)


def _outcome(decode: Callable[[bytes], object], text: bytes) -> object:
    try:
        return decode(text)
    except ShapeError as error:
        return str(error)
