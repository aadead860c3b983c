"""The command `convert trainjob`: its output, its report and its exit codes."""

import json
from functools import partial

import pytest

from tests.support.checking import Check
from tests.support.jobs import GOOD, changed
from webhook.api import yaml

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"}}


@pytest.fixture
def convert(program: Check) -> Check:
    return partial(program, "convert", "trainjob")


def test_output_has_the_runtime_and_then_the_job_and_both_are_admitted(convert: Check, program: Check) -> None:
    result = convert("-", stdin=yaml.dump(GOOD))

    assert result.exit_code == 0
    kinds = [document["kind"] for document in yaml.load_all(result.stdout)]
    assert kinds == ["TrainingRuntime", "TrainJob"]
    checked = program("check", "-", "--trainer", stdin=result.stdout)
    assert (checked.exit_code, "2 jobs: 2 admitted, 0 rejected" in checked.stdout) == (0, True)


def test_report_has_the_verdict_and_the_changes_by_outcome(convert: Check) -> None:
    result = convert("job.yaml", job_yaml=yaml.dump(GOOD))

    assert [line for line in result.stderr.splitlines() if not line.startswith("    ")] == [
        "job.yaml: team-a/train: is a TrainJob of trainer.kubeflow.org/v1alpha1 now",
        "  mapped:",
        "  changed in meaning:",
        "  to be done:",
        "job.yaml: team-a/train: admitted",
    ]
    assert "    spec.slotsPerWorker: is spec.trainer.numProcPerNode\n" in result.stderr


def test_report_has_the_violations_of_a_job_that_would_be_rejected(convert: Check) -> None:
    result = convert("-", stdin=json.dumps(changed({"Worker.replicas": 300})))

    assert result.exit_code == 1
    assert "  1. spec.trainer.numNodes: 300 workers, at most 100 allowed [worker-count]\n" in result.stderr


def test_job_that_cannot_be_converted_gives_exit_code_1(convert: Check) -> None:
    result = convert("-", stdin=json.dumps(changed({"spec.mpiImplementation": "MPICH"})))

    assert (result.exit_code, result.stdout) == (1, "")
    assert "team-a/train: spec.mpiImplementation: MPICH: Trainer supports only OpenMPI" in result.stderr


def test_other_objects_are_unchanged(convert: Check) -> None:
    result = convert("-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [CONFIG_MAP, GOOD]}))

    assert result.exit_code == 0
    assert next(document["kind"] for document in yaml.load_all(result.stdout)) == "ConfigMap"
    assert convert("-", stdin=json.dumps(CONFIG_MAP)).exit_code == 2


def test_json_has_job_runtime_and_verdict(convert: Check) -> None:
    (entry,) = json.loads(convert("-", "-o", "json", stdin=json.dumps(GOOD)).stdout)

    assert (entry["object"]["kind"], entry["needs"]["kind"]) == ("TrainJob", "TrainingRuntime")
    assert entry["check"]["allowed"] is True
