"""The templates are those in the JSON of the job."""

import json
from typing import Any

import pytest

from webhook.api import written

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
    templates = written.templates(text)
    assert list(templates) == ["Launcher"]
    assert templates["Launcher"] in text
    assert json.loads(templates["Launcher"]) == JOB["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]


@pytest.mark.parametrize("specs", [None, {}, {"Worker": None}])
def test_a_job_without_templates(specs: object) -> None:
    assert written.templates(json.dumps({"spec": {"mpiReplicaSpecs": specs}}).encode()) == {}
