"""The facts of a job in the variable `job` of custom rules."""

import json

import pytest

from tests.support.any_job import Json
from tests.support.jobs import changed
from tests.support.rule_checks import defaulted
from webhook.admission.validate.custom_rules import JobFacts, job_facts
from webhook.kit.context import Context

LAUNCHER = "Launcher.template.spec"
VOLUMES = [{"name": "data", "image": {"reference": "registry.example.com/ml/data:2"}}, {"name": "s", "emptyDir": {}}]


def facts(changes: Json) -> JobFacts:
    job = changed(changes)
    return job_facts(defaulted(job), Context(document=json.dumps(job).encode()))


@pytest.mark.parametrize(
    ("changes", "total"),
    [
        ({}, 8),
        ({f"{LAUNCHER}.containers.0.resources": {"limits": {"nvidia.com/gpu": 4}}}, 12),
        ({f"{LAUNCHER}.containers.0.resources": {"limits": {"cpu": "4"}}, "spec.runLauncherAsWorker": True}, 8),
    ],
)
def test_gpus_of_the_launcher_are_in_the_total(changes: Json, total: int) -> None:
    assert facts(changes).total_gpus == total


def test_images_include_image_volumes() -> None:
    images = facts({}).images
    assert facts({"Worker.template.spec.volumes": VOLUMES}).images == (*images, "registry.example.com/ml/data:2")
    assert facts({"Worker.template.spec.volumes": VOLUMES[1:]}).images == images
