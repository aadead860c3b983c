"""Conversion of MPIJobs to TrainJobs. `tests/integration/test_trainer.py` runs the results with the real Trainer."""

import copy
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import odd_values
from tests.support.jobs import GOOD, REMOVE, changed
from webhook.api import annotations
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.converters.report import ConversionError, Outcome, Report
from webhook.parts.trainer import conversion, kinds

Json = dict[str, Any]
WORKERS_POD = GOOD["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
ROLES = {WORKER: 0, LAUNCHER: 1}


class ConvertedJob(NamedTuple):
    document: Json
    report: Report
    runtime: Json


def convert_job(document: Json) -> ConvertedJob:
    converted, runtime = conversion.convert(document)
    return ConvertedJob(converted.document, converted.report, runtime)


def convert(changes: Json | None = None) -> ConvertedJob:
    return convert_job(changed(changes))


def runtime(converted: ConvertedJob) -> Json:
    spec: Json = converted.runtime["spec"]
    return spec


def replicated_job(converted: ConvertedJob, role: str) -> Json:
    job: Json = runtime(converted)["template"]["spec"]["replicatedJobs"][ROLES[role]]
    return job


def pod(converted: ConvertedJob, role: str) -> Json:
    spec: Json = replicated_job(converted, role)["template"]["spec"]["template"]["spec"]
    return spec


def notes(converted: ConvertedJob, outcome: Outcome) -> list[str]:
    return [note.field for note in converted.report.of(outcome)]


def test_train_job_has_the_command_and_the_numbers_of_nodes_and_processes() -> None:
    before = copy.deepcopy(GOOD)

    converted = convert_job(GOOD)

    assert before == GOOD
    assert converted.document["metadata"] == {"name": "train", "namespace": "team-a"}
    assert converted.document["spec"] == {
        "runtimeRef": {"apiGroup": kinds.GROUP, "kind": kinds.RUNTIME, "name": "train"},
        "trainer": {
            "numNodes": 4,
            "numProcPerNode": 2,
            "command": ["mpirun", "--oversubscribe", "-np", "8", "python", "train.py"],
        },
        "suspend": False,
    }
    assert converted.runtime["metadata"] == {"name": "train", "namespace": "team-a"}
    worker = pod(converted, WORKER)["containers"][0]
    assert (worker["name"], worker["command"]) == ("node", ["/usr/sbin/sshd", "-De"])
    assert worker["resources"] == {"limits": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": 2}}


@pytest.mark.parametrize(("as_worker", "nodes"), [(False, 4), (True, 5)])
def test_launcher_that_runs_ranks_is_a_node_and_sees_its_gpus(as_worker: bool, nodes: int) -> None:
    converted = convert({"spec.runLauncherAsWorker": as_worker})

    assert converted.document["spec"]["trainer"]["numNodes"] == nodes
    assert runtime(converted)["mlPolicy"]["mpi"]["runLauncherAsNode"] is as_worker
    env = [variable["name"] for variable in pod(converted, LAUNCHER)["containers"][0]["env"]]
    assert ("NVIDIA_VISIBLE_DEVICES" in env) is not as_worker


def test_operators_variables_replace_the_users_variables() -> None:
    env = [{"name": "K_MPI_JOB_ROLE", "value": "boss"}, {"name": "A", "value": "1"}]
    converted = convert({"Worker.template.spec.containers.0.env": env})
    assert pod(converted, WORKER)["containers"][0]["env"] == [
        {"name": "A", "value": "1"},
        {"name": "K_MPI_JOB_ROLE", "value": "worker"},
    ]


def test_keys_of_root_are_copied_with_a_mode_that_ssh_accepts(tmp_path: Path) -> None:
    converted = convert()

    for role in ROLES:
        copying, main = pod(converted, role)["initContainers"][0], pod(converted, role)["containers"][0]
        same = ("image", "resources")
        assert {key: copying.get(key) for key in same} == {key: main.get(key) for key in same}
        assert {"name": "mpi-ssh-keys", "mountPath": "/root/.ssh"} in main["volumeMounts"]
    mounted, home = tmp_path / "mounted", tmp_path / "home"
    mounted.mkdir()
    home.mkdir()
    for name, mode in (("id_rsa", 0o640), ("authorized_keys", 0o644)):
        (mounted / name).touch(mode)
    path = runtime(converted)["mlPolicy"]["mpi"]["sshAuthMountPath"]
    script = copying["command"][-1].replace(path, str(mounted)).replace("/root/.ssh", str(home))
    subprocess.run([*copying["command"][:-1], script], check=True)
    assert {path.name: path.stat().st_mode & 0o777 for path in home.iterdir()} == {
        "id_rsa": 0o600,
        "authorized_keys": 0o600,
    }


HOME = {"spec.sshAuthMountPath": "/home/mpiuser/.ssh"}
FS_GROUP = "spec.mpiReplicaSpecs[Launcher].template.spec.securityContext.fsGroup"
OF_CONTAINER = "Launcher.template.spec.containers.0.securityContext"
OF_POD = "Launcher.template.spec.securityContext"


@pytest.mark.parametrize(
    ("changes", "context", "outcome"),
    [
        ({OF_CONTAINER: {"runAsUser": 1000}}, {"fsGroup": 1000}, Outcome.CHANGED),
        ({OF_POD: {"runAsUser": 1000}}, {"runAsUser": 1000, "fsGroup": 1000}, Outcome.CHANGED),
        ({OF_POD: {"runAsUser": 1000, "fsGroup": 7}}, {"runAsUser": 1000, "fsGroup": 7}, None),
        ({OF_POD: {"supplementalGroups": [7]}}, {"supplementalGroups": [7]}, None),
        ({OF_CONTAINER: {"runAsUser": 0}}, {}, None),
        ({}, {}, Outcome.TO_DO),
    ],
)
def test_user_other_than_root_gets_the_group_of_the_key(changes: Json, context: Json, outcome: Outcome | None) -> None:
    converted = convert(HOME | changes)

    assert pod(converted, LAUNCHER).get("securityContext", {}) == context
    assert [each for each in Outcome if FS_GROUP in notes(converted, each)] == [outcome] * (outcome is not None)
    assert runtime(converted)["mlPolicy"]["mpi"]["sshAuthMountPath"] == "/home/mpiuser/.ssh"


def selector(**labels: str) -> Json:
    return {"matchLabels": {f"training.kubeflow.org/{key.replace('_', '-')}": each for key, each in labels.items()}}


def test_selectors_get_the_labels_of_job_set() -> None:
    near = {"topologyKey": "rack", "labelSelector": selector(operator_name="mpi-operator", job_role="worker")}
    near["matchLabelKeys"] = ["training.kubeflow.org/job-name"]
    others = {"key": "training.kubeflow.org/operator-name", "operator": "NotIn", "values": ["mpi-operator"]}
    spread = {"labelSelector": {**selector(job_name="train"), "matchExpressions": [others]}, "maxSkew": 1}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": near}]}
    converted = convert(
        {
            "Worker.template.spec.affinity": {"podAffinity": preferred},
            "Worker.template.spec.topologySpreadConstraints": [spread],
        }
    )

    worker = pod(converted, WORKER)
    (term,) = worker["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"]["matchExpressions"] == [
        {"key": kinds.JOB_SET_NAME, "operator": "Exists"},
        {"key": kinds.REPLICATED_JOB_NAME, "operator": "In", "values": ["node"]},
    ]
    assert term["podAffinityTerm"]["matchLabelKeys"] == [kinds.JOB_SET_NAME]
    assert worker["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [
        {"key": kinds.JOB_SET_NAME, "operator": "DoesNotExist"},
        {"key": kinds.JOB_SET_NAME, "operator": "In", "values": ["train"]},
    ]


def test_init_container_that_waits_for_workers_becomes_a_dependency() -> None:
    waiting = {"name": "wait-for-workers", "volumeMounts": [{"name": "mpi-job-config", "mountPath": "/etc/mpi"}]}
    own = {"name": "own", "volumeMounts": [{"name": "mpi-job-config", "mountPath": "/hosts"}]}
    for changes in (
        {"Launcher.template.spec.initContainers": [waiting, own]},
        {"Launcher.template.spec.initContainers": [own], "spec.launcherCreationPolicy": "WaitForWorkersReady"},
    ):
        converted = convert(changes)
        assert replicated_job(converted, LAUNCHER)["dependsOn"] == [{"name": "node", "status": "Ready"}]
        _, remaining = pod(converted, LAUNCHER)["initContainers"]
        assert remaining == {"name": "own", "volumeMounts": [{"name": "mpi-hostfile", "mountPath": "/hosts"}]}
    assert "dependsOn" not in replicated_job(convert(), LAUNCHER)


def test_run_policy_is_converted() -> None:
    policy = {
        "suspend": True,
        "activeDeadlineSeconds": 3600,
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": 60,
        "managedBy": "kueue.x-k8s.io/multikueue",
        "schedulingPolicy": {"minAvailable": 5},
    }
    converted = convert({"spec.runPolicy": policy})

    spec = converted.document["spec"]
    assert (spec["suspend"], spec["activeDeadlineSeconds"], spec["managedBy"]) == (True, 3600, policy["managedBy"])
    assert replicated_job(converted, LAUNCHER)["template"]["spec"]["backoffLimit"] == 0
    assert runtime(converted)["template"]["spec"]["ttlSecondsAfterFinished"] == 60
    assert "spec.runPolicy.schedulingPolicy" in notes(converted, Outcome.TO_DO)
    assert "spec.runPolicy.cleanPodPolicy" in notes(converted, Outcome.CHANGED)
    own = convert({"spec.runPolicy.managedBy": "kubeflow.org/mpi-operator"})
    assert "managedBy" not in own.document["spec"]


def test_only_annotations_of_the_webhook_are_removed() -> None:
    written = {annotations.QUEUE: "team", "example.com/ours": "yes"}
    converted = convert({"metadata.annotations": written})
    assert converted.document["metadata"]["annotations"] == {"example.com/ours": "yes"}
    assert notes(converted, Outcome.LOST) == [f"metadata.annotations[{annotations.QUEUE}]"]


def test_stored_job_needs_no_step_for_injections() -> None:
    converted = convert({"metadata.uid": "1", "status": {"conditions": [{"type": "Running", "status": "True"}]}})
    assert "uid" not in converted.document["metadata"]
    assert notes(converted, Outcome.TO_DO) == ["status", "apply"]
    assert "injections" in notes(convert(), Outcome.TO_DO)


def test_command_too_long_for_a_train_job_stays_in_the_runtime() -> None:
    words = ["mpirun", *(["-x", "A"] * 64)]
    converted = convert({"Launcher.template.spec.containers.0.command": words})
    assert "command" not in converted.document["spec"]["trainer"]
    assert pod(converted, LAUNCHER)["containers"][0]["command"] == words


def test_pod_in_the_host_network_gets_a_dns_policy_and_loses_its_hostname() -> None:
    converted = convert({"Worker.template.spec": {**WORKERS_POD, "hostNetwork": True, "hostname": "w"}})
    assert pod(converted, WORKER)["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert "hostname" not in pod(converted, WORKER)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"apiVersion": "kubeflow.org/v1"},
            "apiVersion: is not kubeflow.org/v2beta1: convert the job to kubeflow.org/v2beta1",
        ),
        ({"spec": REMOVE}, "spec: is not set"),
        ({"metadata": REMOVE}, "metadata.name: is not set"),
        ({"spec.mpiImplementation": "Intel"}, "spec.mpiImplementation: Intel: Trainer supports only OpenMPI"),
        ({"Worker": REMOVE}, "spec.mpiReplicaSpecs[Worker]: is not set"),
        ({"Worker.replicas": 0}, "spec.mpiReplicaSpecs[Worker].replicas: is 0"),
        ({"Worker.replicas": "two"}, "spec.mpiReplicaSpecs[Worker].replicas: is not a whole number"),
        (
            {"Worker.template.spec.containers": []},
            "spec.mpiReplicaSpecs[Worker].template.spec.containers: is not a list",
        ),
        (
            {"Launcher.template.spec.initContainers": [{"name": "node"}]},
            "spec.mpiReplicaSpecs[Launcher].template.spec.containers: a second container is named node: rename it",
        ),
    ],
)
def test_job_that_cannot_be_converted_is_rejected(changes: Json, message: str) -> None:
    with pytest.raises(ConversionError) as raised:
        convert(changes)
    assert str(raised.value).startswith(message)


def test_runtime_gets_its_name_from_generate_name() -> None:
    converted = convert({"metadata.name": REMOVE, "metadata.generateName": "train-"})
    assert converted.document["metadata"]["generateName"] == "train-"
    assert converted.document["spec"]["runtimeRef"]["name"] == "train"


FULL = changed(
    {
        "Launcher.template.spec.affinity": {"podAffinity": {"a": [{"labelSelector": selector(job_name="train")}]}},
        "Worker.template.spec.initContainers": [{"name": "a", "volumeMounts": [{"name": "ssh-auth"}], "env": []}],
        "Worker.template.spec.securityContext": {"runAsUser": 1000},
        "metadata.annotations": {annotations.QUEUE: "team"},
    }
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_conversion_of_any_values_raises_only_conversion_errors(data: st.DataObject) -> None:
    with suppress(ConversionError):
        convert_job({**odd_values.changed(FULL, data, depth=20), "kind": "MPIJob"})
