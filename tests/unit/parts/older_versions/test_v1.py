"""Conversion of MPIJobs of kubeflow.org/v1 and v1alpha2, field by field."""

from copy import deepcopy
from typing import Any

import pytest

from tests.support.older_jobs import V1, V1ALPHA2
from webhook.converters.report import ConversionError, Outcome
from webhook.parts.older_versions.older_jobs import convert
from webhook.parts.older_versions.replica_specs import Options

MPIRUN = ["mpirun", "-np", "2", "train"]


def job(version: str = V1, spec: dict[str, Any] | None = None, **roles: dict[str, Any]) -> dict[str, Any]:
    launcher = {"template": {"spec": {"containers": [{"name": "mpi", "image": "a:1", "command": MPIRUN}]}}}
    worker = {"replicas": 2, "template": {"spec": {"containers": [{"name": "mpi", "image": "a:1"}]}}}
    replicas = {"Launcher": {**launcher, **roles.get("launcher", {})}, "Worker": {**worker, **roles.get("worker", {})}}
    whole = {"mpiReplicaSpecs": replicas, **(spec or {})}
    return deepcopy({"apiVersion": version, "kind": "MPIJob", "metadata": {"name": "a"}, "spec": whole})


def spec_of(old: dict[str, Any], **options: Any) -> dict[str, Any]:
    spec: dict[str, Any] = convert(old, Options(**options)).document["spec"]
    return spec


def notes(old: dict[str, Any], outcome: Outcome, **options: Any) -> dict[str, str]:
    return {note.field: note.text for note in convert(old, Options(**options)).report.of(outcome)}


@pytest.mark.parametrize(
    ("version", "spec", "policy"),
    [
        (V1, {}, None),
        (V1, {"cleanPodPolicy": "All"}, {"cleanPodPolicy": "All"}),
        (V1, {"cleanPodPolicy": "All", "runPolicy": {"cleanPodPolicy": "None"}}, {"cleanPodPolicy": "None"}),
        (V1ALPHA2, {"cleanPodPolicy": "All", "runPolicy": {"cleanPodPolicy": "None"}}, {"cleanPodPolicy": "All"}),
        (V1ALPHA2, {"backoffLimit": 3, "runPolicy": {"backoffLimit": 1}}, {"backoffLimit": 1}),
        (V1ALPHA2, {"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 9}),
        (V1, {"runPolicy": {"managedBy": "kubeflow.org/training-operator"}}, None),
        (V1, {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}, {"managedBy": "kueue.x-k8s.io/multikueue"}),
    ],
)
def test_run_policy_is_converted(version: str, spec: dict[str, Any], policy: dict[str, Any] | None) -> None:
    assert spec_of(job(version, spec)).get("runPolicy") == policy


def test_value_that_the_old_operator_ignored_is_reported_as_lost() -> None:
    both = {"cleanPodPolicy": "All", "runPolicy": {"cleanPodPolicy": "None"}}
    assert notes(job(V1, both), Outcome.LOST) == {
        "spec.cleanPodPolicy": "spec.runPolicy.cleanPodPolicy was used, and stays"
    }
    assert notes(job(V1ALPHA2, both), Outcome.LOST) == {
        "spec.runPolicy.cleanPodPolicy": "spec.cleanPodPolicy was used, and replaces it"
    }
    same = {"cleanPodPolicy": "All", "runPolicy": {"cleanPodPolicy": "All"}}
    assert notes(job(V1, same), Outcome.LOST) == {}


@pytest.mark.parametrize(
    ("version", "written", "launcher", "worker"),
    [
        (V1, None, "Never", "Never"),
        (V1, "OnFailure", "OnFailure", "OnFailure"),
        (V1, "ExitCode", "OnFailure", "OnFailure"),
        (V1ALPHA2, None, "OnFailure", "OnFailure"),
        (V1ALPHA2, "Never", "Never", "Never"),
    ],
)
def test_restart_policy_is_converted(version: str, written: str | None, launcher: str, worker: str) -> None:
    policy = {} if written is None else {"restartPolicy": written}
    old = job(version, launcher=policy, worker=policy)
    roles = spec_of(old)["mpiReplicaSpecs"]
    assert (roles["Launcher"]["restartPolicy"], roles["Worker"]["restartPolicy"]) == (launcher, worker)
    field = "spec.mpiReplicaSpecs[Worker].restartPolicy"
    assert (field in notes(old, Outcome.CHANGED)) is (
        written in {"Always", "ExitCode"} or (version, written) == (V1ALPHA2, "Never")
    )


def test_retries_of_a_launcher_without_backoff_limit_are_reported() -> None:
    field = "spec.runPolicy.backoffLimit"
    assert "up to 6 times" in notes(job(), Outcome.CHANGED)[field]
    assert field not in notes(job(spec={"runPolicy": {"backoffLimit": 0}}), Outcome.CHANGED)


def test_main_container_becomes_the_first_in_both_roles() -> None:
    side = {"name": "side", "image": "s:1"}
    pods = {"template": {"spec": {"containers": [side, {"name": "mpi", "image": "a:1", "command": ["sleep", "365d"]}]}}}
    old = job(spec={"mainContainer": "mpi"}, launcher=pods, worker={**pods, "replicas": 2})
    roles = spec_of(old)["mpiReplicaSpecs"]
    names = {role: [c["name"] for c in replica["template"]["spec"]["containers"]] for role, replica in roles.items()}
    assert names == {"Launcher": ["mpi", "side"], "Worker": ["mpi", "side"]}
    assert "command" not in roles["Worker"]["template"]["spec"]["containers"][0]
    note = notes(old, Outcome.CHANGED)["spec.mpiReplicaSpecs[Worker].template.spec.containers[0]"]
    assert note.startswith("is the second container now, since mainContainer names a different container, and runs its")


def test_main_container_that_does_not_exist_is_reported() -> None:
    steps = notes(job(spec={"mainContainer": "x"}), Outcome.TO_DO)
    assert "spec.mpiReplicaSpecs[Launcher].template.spec.containers" in steps


ONE_GPU = {"limits": {"nvidia.com/gpu": 1, "cpu": 1}, "requests": {"nvidia.com/gpu": 1}}
GPU = {"template": {"spec": {"containers": [{"name": "mpi", "image": "a:1", "resources": ONE_GPU}]}}}


def test_launcher_with_gpus_runs_ranks_unless_the_option_removes_its_gpus() -> None:
    old = job(launcher=GPU)
    assert spec_of(old)["runLauncherAsWorker"] is True
    resources = "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].resources"
    assert "--keep-launcher-small" in notes(old, Outcome.CHANGED)[resources]
    small = spec_of(old, keep_launcher_small=True)
    assert "runLauncherAsWorker" not in small
    container = small["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"cpu": 1}, "requests": {}}
    assert resources in notes(old, Outcome.LOST, keep_launcher_small=True)
    assert "runLauncherAsWorker" not in spec_of(job(V1ALPHA2, launcher=GPU))
    assert resources in notes(job(V1ALPHA2, launcher=GPU), Outcome.TO_DO)


@pytest.mark.parametrize(("old", "new"), [("OpenMPI", "OpenMPI"), ("IntelMPI", "Intel"), ("MPICH", "MPICH")])
def test_mpi_distribution_becomes_mpi_implementation(old: str, new: str) -> None:
    assert spec_of(job(V1ALPHA2, {"mpiDistribution": old}))["mpiImplementation"] == new


def test_default_mpi_implementation_is_reported() -> None:
    assert "set Intel or MPICH" in notes(job(), Outcome.CHANGED)["spec.mpiImplementation"]
    for named in (job(spec={"mpiImplementation": "Intel"}), job(V1ALPHA2, {"mpiDistribution": "IntelMPI"})):
        assert "spec.mpiImplementation" not in notes(named, Outcome.CHANGED)


def test_field_that_the_old_operator_ignored_is_reported() -> None:
    policy = {"runPolicy": {"ttlSecondsAfterFinished": 5, "backoffLimit": 1}}
    ignored = {"spec.runPolicy.ttlSecondsAfterFinished", "spec.runPolicy.backoffLimit"}
    assert ignored <= notes(job(V1, policy), Outcome.CHANGED).keys()
    assert "spec.runPolicy.backoffLimit" not in notes(job(V1ALPHA2, policy), Outcome.CHANGED)


def test_missing_number_of_workers_is_reported() -> None:
    old = job(worker={"replicas": None})
    assert "spec.mpiReplicaSpecs[Worker].replicas" in notes(old, Outcome.TO_DO)


def test_value_of_the_wrong_type_is_rejected() -> None:
    with pytest.raises(ConversionError, match=r"^spec\.mpiReplicaSpecs\.Worker: is not a mapping$"):
        convert({**job(), "spec": {"mpiReplicaSpecs": {"Worker": 3}}})
