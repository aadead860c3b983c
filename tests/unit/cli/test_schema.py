"""`mpijob-webhook schema`: the JSON Schema of jobs agrees with `check`."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.checking import run
from tests.support.jobs import GOOD, REMOVE, changed
from tests.support.paths import EXAMPLES
from tests.support.policies import HEADER
from webhook.api import yaml
from webhook.cli.files import Manifest
from webhook.cli.job_check import check
from webhook.cli.job_document_schema import json_schema
from webhook.cli.job_world import JobWorld, of_nothing
from webhook.policy.in_force import load_policies

NAME = "metadata.name"


def schema_of(policy: str = "") -> tuple[Draft202012Validator, JobWorld]:
    world = of_nothing()
    world.instead = load_policies(HEADER + policy) if policy else None
    schema = json_schema(world.policy("default"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema), world


SCHEMA, WORLD = schema_of()


def test_command_prints_the_schema_with_the_limits_of_the_policy(tmp_path: Path) -> None:
    result = run("schema", "job")
    assert result.exit_code == 0
    schema = json.loads(result.stdout)
    assert schema == SCHEMA.schema
    assert (schema["title"], schema["additionalProperties"]) == ("MPIJob", False)
    assert len(result.stdout) < 150_000, "the schema is small, because an editor reads it at each start"
    (tmp_path / "policy.yaml").write_text(f"{HEADER}rules: {{worker-count: {{max: 4}}}}\n")
    result = run("schema", "job", "--policy", str(tmp_path / "policy.yaml"))
    workers = json.loads(result.stdout)["properties"]["spec"]["properties"]["mpiReplicaSpecs"]["properties"]["Worker"]
    assert workers["properties"]["replicas"] == {
        "type": "integer",
        "description": "Number of workers. 2 to 4, including the launcher if runLauncherAsWorker is true.",
        "minimum": 1,
        "maximum": 4,
    }


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_valid_examples_fit_the_schema(path: Path) -> None:
    for document in yaml.load_all(path.read_text(encoding="utf-8")):
        if document["kind"] == "MPIJob" and not path.name.startswith("bad-"):
            assert [*SCHEMA.iter_errors(document)] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"Worker.replicas": 1},
        {"Worker.replicas": 2},
        {"Worker.replicas": 100},
        {"Worker.replicas": 101},
        {"Worker.replicas": 0},
        {"Worker.replicas": -1},
        {"Worker.replicas": REMOVE},
        {"Worker.replicas": "two"},
        {"Worker": REMOVE},
        {"Worker.replicas": 1, "spec.runLauncherAsWorker": True},
        {"Worker.replicas": 99, "spec.runLauncherAsWorker": True},
        {"Worker.replicas": 100, "spec.runLauncherAsWorker": True},
        {"Worker.replicaz": 2},
        {"Launcher.replicas": 2},
        {"Launcher.replicas": REMOVE},
        {"Launcher": REMOVE},
        {"Launcher.restartPolicy": "Always"},
        {"spec.mpiImplementation": "MPICH"},
        {"spec.mpiImplementation": "LAM"},
        {"spec.launcherCreationPolicy": "Never"},
        {"spec.slotsPerWorker": 0},
        {"spec.slotsPerWorker": -1},
        {"spec.runPolicy.activeDeadlineSeconds": 0},
        {"spec.runPolicy.activeDeadlineSeconds": 604800},
        {"spec.runPolicy.activeDeadlineSeconds": 604801},
        {"spec.runPolicy.backoffLimit": -1},
        {"spec.runPolicy.cleanPodPolicy": "Some"},
        {"spec.runPolicy.managedBy": "me"},
        {"spec.runPolicy.ttlSecondsAfterFinished": -1},
        {NAME: "a" * 53},
        {NAME: "a" * 54},
        {"spec.what": 1},
        {"spec": 1},
        {"metadata.labels": {"a": 1}},
    ],
    ids=" ".join,
)
def test_schema_agrees_with_check(changes: dict[str, Any]) -> None:
    agrees(changed(changes), SCHEMA, WORLD)


@pytest.mark.parametrize(
    "policy",
    [
        "rules: {worker-count: {min: 0, max: 3}}",
        "rules: {worker-count: {action: warn, max: 3}, upstream-contract: {action: warn}}",
        "rules: {mpi-implementation: {allowed: [Intel]}, clean-pod-policy: {allowed: [All]}}",
        "rules: {slots: {min: 3}, job-timeout: {max: 1h}}",
        "rules: {worker-count: {action: 'off'}, job-timeout: {action: 'off'}, name-length: {action: 'off'}}",
        "mode: warn",
    ],
)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"Worker": REMOVE},
        {"Worker.replicas": 5},
        {"spec.mpiImplementation": "Intel", "spec.runPolicy.cleanPodPolicy": "All"},
        {"spec.runPolicy.activeDeadlineSeconds": 3601},
        {NAME: "a" * 53},
    ],
    ids=" ".join,
)
def test_schema_has_the_limits_of_the_policy(policy: str, changes: dict[str, Any]) -> None:
    schema, world = schema_of(policy)
    agrees(changed(changes), schema, world)


def agrees(job: dict[str, Any], schema: Draft202012Validator, world: JobWorld) -> None:
    """Assert that the schema rejects a job if and only if `check` rejects it."""
    errors = [error.message for error in schema.iter_errors(job)]
    verdict = check(Manifest("a.yaml", job), world)
    assert bool(errors) == (not verdict.allowed), (errors, verdict.validation.message)


def test_fields_have_descriptions() -> None:
    workers = json_schema(WORLD.policy("default"))["properties"]["spec"]["properties"]["mpiReplicaSpecs"]
    assert workers["description"].startswith("The pods: one Launcher")
    assert [*SCHEMA.iter_errors({**GOOD, "status": {}})] == []
