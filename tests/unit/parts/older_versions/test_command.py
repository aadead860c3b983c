"""The command `convert mpijob`: its output, its report and its exit codes."""

import json
from functools import partial
from typing import Any

import pytest

from tests.support.checking import Check
from tests.support.older_jobs import HOROVOD, TENSORFLOW
from webhook.api import yaml

UNITS = """
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: tensorflow-benchmarks-16, namespace: team-a}
spec:
  gpus: 16
  template:
    spec:
      containers:
        - image: registry.example.com/tensorflow-benchmarks:0.1.0
          name: tensorflow-benchmarks
          command: [mpirun, -np, "16", python, tf_cnn_benchmarks.py]
"""
GPU_LAUNCHER = """
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: pytorch, namespace: team-a}
spec:
  cleanPodPolicy: All
  mainContainer: torch
  runPolicy: {managedBy: kubeflow.org/training-operator}
  mpiReplicaSpecs:
    Launcher:
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - {name: torch, image: "registry.example.com/torch:2.0", command: [mpirun, -np, "3", python, train.py],
               resources: {limits: {nvidia.com/gpu: 1}}}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - {name: logs, image: "registry.example.com/logs:1.0", command: [logs]}
            - {name: torch, image: "registry.example.com/torch:2.0", resources: {limits: {nvidia.com/gpu: 1}}}
"""
JOBS = {"horovod": HOROVOD, "tensorflow": TENSORFLOW, "units": UNITS, "gpu launcher": GPU_LAUNCHER}


@pytest.fixture
def convert(program: Check) -> Check:
    return partial(program, "convert")


@pytest.mark.parametrize("name", JOBS)
def test_converted_job_is_admitted_and_stays_the_same_when_converted_again(
    convert: Check, program: Check, name: str
) -> None:
    result = convert("old.yaml", "--gpus-per-node", "8", old_yaml=JOBS[name])
    assert "old.yaml: team-a/" in result.stderr.rpartition(": admitted")[0]
    assert result.exit_code == 0
    checked = program("check", "-", stdin=result.stdout)
    assert checked.exit_code == 0
    again = convert("-", stdin=result.stdout)
    assert again.stdout == result.stdout
    assert "is already of kubeflow.org/v2beta1, left as it is" in again.stderr
    assert again.exit_code == 0


def test_report_has_the_verdict_and_the_changes_by_outcome(convert: Check) -> None:
    result = convert("old.yaml", old_yaml=GPU_LAUNCHER)
    assert [line for line in result.stderr.splitlines() if not line.startswith("    ")] == [
        "old.yaml: team-a/pytorch: kubeflow.org/v1 is kubeflow.org/v2beta1 now",
        "  mapped:",
        "  changed in meaning:",
        "  lost:",
        "  to be done:",
        "old.yaml: team-a/pytorch: admitted",
    ]
    assert "    spec.cleanPodPolicy: is spec.runPolicy.cleanPodPolicy now\n" in result.stderr
    assert '    image: "registry.example.com/torch:2.0" needs sshd with StrictModes no and ssh with ' in result.stderr
    worker = yaml.load_all(result.stdout)[0]["spec"]["mpiReplicaSpecs"]["Worker"]
    assert [container["name"] for container in worker["template"]["spec"]["containers"]] == ["torch", "logs"]


def test_role_name_in_the_plural_is_corrected(convert: Check) -> None:
    result = convert("old.yaml", old_yaml=HOROVOD.replace("Worker:", "Workers:"))
    assert "    spec.mpiReplicaSpecs[Workers]: is Worker now\n" in result.stderr
    assert yaml.load_all(result.stdout)[0]["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]


def test_job_that_does_not_set_gpus_per_node_is_rejected_without_the_option(convert: Check) -> None:
    result = convert("old.yaml", "new.yaml", old_yaml=UNITS, new_yaml=HOROVOD)
    assert result.exit_code == 1
    assert "error: old.yaml: team-a/tensorflow-benchmarks-16: spec.gpusPerNode: is not set" in result.stderr
    assert [job["metadata"]["name"] for job in yaml.load_all(result.stdout)] == ["horovod-mnist"]


def test_misspelt_kind_is_an_error(convert: Check) -> None:
    result = convert("old.yaml", old_yaml=HOROVOD.replace("kind: MPIJob", "kind: MpiJob"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'kind: "MpiJob" is not supported. Write MPIJob.' in result.stderr


def test_jobs_in_folders_and_lists_are_converted_and_other_objects_stay(convert: Check) -> None:
    (item,) = yaml.load_all(HOROVOD)
    jobs = json.dumps({"apiVersion": "v1", "kind": "List", "items": [item, {"apiVersion": "v1", "kind": "ConfigMap"}]})
    result = convert("jobs", "two.yaml", jobs__all_json=jobs, two_yaml=f"{TENSORFLOW}---{HOROVOD}")
    assert result.exit_code == 0
    kinds = [(document["kind"], document["apiVersion"]) for document in yaml.load_all(result.stdout)]
    new = ("MPIJob", "kubeflow.org/v2beta1")
    assert kinds == [new, ("ConfigMap", "v1"), new, new]
    assert "jobs/all.json: ConfigMap : is not an MPIJob, left as it is\n" in result.stderr


def test_options_are_applied(convert: Check) -> None:
    result = convert("-", "--ssh-path", "/home/user/.ssh", "--keep-launcher-small", stdin=GPU_LAUNCHER)
    (job,) = yaml.load_all(result.stdout)
    assert job["spec"]["sshAuthMountPath"] == "/home/user/.ssh"
    assert "runLauncherAsWorker" not in job["spec"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: [", "error: standard input: "),
        ("kind: ConfigMap\n", "error: no MPIJob in -\n"),
        ("- a\n", "error: standard input: is a list, not a Kubernetes object\n"),
    ],
)
def test_unusable_input_gives_exit_code_2(convert: Check, text: str, error: str) -> None:
    result = convert("-", stdin=text)
    assert result.exit_code == 2
    assert error in result.stderr


def test_job_that_cannot_be_converted_gives_exit_code_1(convert: Check) -> None:
    result = convert("-", stdin="{apiVersion: kubeflow.org/v1, kind: MPIJob}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "spec: is not set" in result.stderr


def test_control_characters_are_replaced_in_the_report(convert: Check) -> None:
    job: dict[str, Any] = yaml.load_all(HOROVOD)[0]
    job["spec"]["\x1b[31m\n"] = 1
    job["metadata"]["name"] = "\x1b]0;x\x07"
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = "a\x1b[2J"
    result = convert("-", stdin=json.dumps([job])[1:-1])
    assert "\x1b" not in result.stderr + result.stdout
    assert "spec.\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}: MPIJobs have no such field\n" in result.stderr


def test_json_has_object_report_and_verdict(convert: Check) -> None:
    result = convert("jobs.yaml", "-o", "json", jobs_yaml=f"{HOROVOD}---\nkind: ConfigMap\nmetadata: {{name: a}}\n")
    assert result.stderr == ""
    job, other = json.loads(result.stdout)
    assert [*job] == ["file", "object", "problems", "notes", "check"]
    assert (job["file"], job["object"]["apiVersion"]) == ("jobs.yaml", "kubeflow.org/v2beta1")
    assert {note["outcome"] for note in job["notes"]} <= {"mapped", "changed in meaning", "lost", "to be done"}
    assert result.exit_code == (0 if job["check"]["allowed"] else 1)
    assert (other["check"], other["object"]["metadata"]) == (None, {"name": "a"})
