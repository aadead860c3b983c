import json

import pytest

from tests.support.jobs import REMOVE, changed
from webhook.api import mpijob
from webhook.api.shape import ShapeError


def decode(job: object) -> mpijob.MPIJob:
    return mpijob.decode(json.dumps(job).encode())


def test_operator_defaults_are_added() -> None:
    job = mpijob.apply_operator_defaults(
        decode({"spec": {"mpiReplicaSpecs": {"Launcher": {}, "Worker": {}, "Foo": {}}}})
    )
    assert job.spec.slots_per_worker == 1
    assert job.spec.ssh_auth_mount_path == "/root/.ssh"
    assert job.spec.mpi_implementation == "OpenMPI"
    assert job.spec.launcher_creation_policy == "AtStartup"
    assert job.run_policy.clean_pod_policy == "None"
    assert job.launcher is not None
    assert (job.launcher.replicas, job.launcher.restart_policy) == (1, "OnFailure")
    assert job.worker is not None
    assert (job.worker.replicas, job.worker.restart_policy) == (0, "Never")


def test_defaults_do_not_change_fields_that_are_set() -> None:
    values = {"Worker.restartPolicy": "Always", "spec.slotsPerWorker": 0, "spec.runPolicy.cleanPodPolicy": ""}
    job = mpijob.apply_operator_defaults(decode(changed(values)))
    assert job.worker is not None
    assert job.worker.restart_policy == "Always"
    assert job.spec.slots_per_worker == 0
    assert job.run_policy.clean_pod_policy == ""
    assert job.workers == 4


@pytest.mark.parametrize(
    ("manager", "here"),
    [(REMOVE, True), ("kubeflow.org/mpi-operator", True), ("kueue.x-k8s.io/multikueue", False), ("", False)],
)
def test_job_is_managed_here_if_the_field_managed_by_is_absent_or_names_the_operator(
    manager: object, here: bool
) -> None:
    assert decode(changed({"spec.runPolicy.managedBy": manager})).managed_here is here


def test_unknown_fields_and_keys_are_ignored() -> None:
    job = decode(changed({"spec.foo": {"a": [1]}, "spec.mpiReplicaSpecs.Foo": None}))
    assert list(job.spec.mpi_replica_specs or {}) == ["Launcher", "Worker", "Foo"]
    assert [(role, path) for role, path, _ in job.replicas] == [
        ("Launcher", "spec.mpiReplicaSpecs[Launcher]"),
        ("Worker", "spec.mpiReplicaSpecs[Worker]"),
    ]


@pytest.mark.parametrize("workers", [REMOVE, None, 0, -3])
def test_missing_or_negative_replicas_count_as_no_workers(workers: object) -> None:
    assert decode(changed({"Worker.replicas": workers})).workers == 0


@pytest.mark.parametrize(
    ("job", "path", "message"),
    [
        (b"", "", "Input data was truncated"),
        (b"null", "", "must be a mapping, not null"),
        ({"metadata.labels": {"a": 1}}, "metadata.labels[...]", "must be a string, not a whole number"),
        (
            {"spec.mpiReplicaSpecs": {"a": {}, "Worker": {"replicas": 2.5}}},
            "spec.mpiReplicaSpecs[Worker].replicas",
            "must be a whole number, not a number",
        ),
        (
            {"Worker.template.spec.containers": [None]},
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0]",
            "must be a mapping, not null",
        ),
        ({"spec.runPolicy.suspend": "yes"}, "spec.runPolicy.suspend", "must be true or false, not a string"),
        ({"spec.slotsPerWorker": 2**31}, "spec.slotsPerWorker", "must be a whole number of 2147483647 or less"),
        ({"spec.slotsPerWorker": -(2**32)}, "spec.slotsPerWorker", "must be a whole number of -2147483648 or more"),
        (b"[" * 200_000, "", "must be a mapping, not a list"),
        (b'{"a":' * 200_000, "", "maximum recursion depth exceeded"),
        (b'{"spec": "\xff"}', "spec", "must be a mapping, not a string"),
        (b'{"kind": "\xff"}', "", "codec can't decode byte 0xff"),
    ],
)
def test_wrong_shape_is_an_error_with_its_path(job: bytes | dict[str, object], path: str, message: str) -> None:
    data = job if isinstance(job, bytes) else json.dumps(changed(job)).encode()
    with pytest.raises(ShapeError) as caught:
        mpijob.decode(data)
    assert caught.value.path == path
    assert message.lower() in caught.value.message.lower()
