"""Reading and setting fields of a job by path."""

import pytest

from tests.support.jobs import changed
from webhook.cli.policy.job_fields import FieldError, get, parse, put

WORKER = "spec.mpiReplicaSpecs[Worker].template.spec"


def test_keys_in_brackets_may_contain_dots() -> None:
    assert parse("metadata.labels[kueue.x-k8s.io/queue-name]") == ("metadata", "labels", "kueue.x-k8s.io/queue-name")
    assert parse(f"{WORKER}.containers[0].image")[-3:] == ("containers", "0", "image")


@pytest.mark.parametrize("path", ["", ".spec", "spec.", "spec..a", "spec[]", "spec[a", "spec]a", "a[b]c"])
def test_invalid_path_is_rejected(path: str) -> None:
    with pytest.raises(FieldError, match="is not a path"):
        parse(path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "train"),
        (f"{WORKER}.containers[0].name", "worker"),
        (f"{WORKER}.containers[worker].image", "registry.example.com/ml/train:1.4"),
        (f"{WORKER}.containers[other].image", None),
        (f"{WORKER}.containers[7].image", None),
        ("metadata.name.nope", None),
    ],
)
def test_get_returns_the_value_or_none(path: str, value: object) -> None:
    assert get(changed(), path) == value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.mpiReplicaSpecs[Worker].replicas", 9),
        ("metadata.annotations[training.openshift.io/timeout]", "3d"),
        (f"{WORKER}.containers[worker].image", "other:1"),
        (f"{WORKER}.containers[0].env[0].name", "A"),
        (f"{WORKER}.tolerations[0]", {"operator": "Exists"}),
        (f"{WORKER}.containers[1]", {"name": "second"}),
    ],
)
def test_put_writes_the_value(path: str, value: object) -> None:
    job = changed()
    put(job, path, value)
    assert get(job, path) == value


def test_null_removes_a_field() -> None:
    job = changed()
    put(job, "spec.slotsPerWorker", None)
    put(job, f"{WORKER}.containers[worker]", None)
    put(job, "metadata.labels.nope", None)
    assert "slotsPerWorker" not in job["spec"]
    assert get(job, f"{WORKER}.containers") == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (f"{WORKER}.containers[3]", "there is no [3] in the list: its items are called worker, and [1] adds one"),
        (
            "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].command[mpirun]",
            "there is no [mpirun] in the list: it has 6 items, and [6] adds one",
        ),
        ("metadata.name.first.second", "there is a value before first, which has no fields"),
    ],
)
def test_impossible_path_is_rejected(path: str, problem: str) -> None:
    with pytest.raises(FieldError) as raised:
        put(changed(), path, "x")
    assert str(raised.value) == problem
