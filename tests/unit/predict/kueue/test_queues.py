"""The LocalQueue of a job after Kueue's webhook has run."""

import pytest

from tests.support.kueue_objects import CONFIG, Json, config, local_queue, namespace
from tests.support.snapshots import head
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import UNKNOWN, Unknown
from webhook.predict.kueue import queues

DEFAULT, OTHER = local_queue("default", "cq"), local_queue("other", "cq")
SELECTS = config("managedJobsNamespaceSelector: {matchLabels: {kueue: 'yes'}}\n")
ALL_JOBS = config("manageJobsWithoutQueueName: true\n")
NO_MPIJOBS = config("", CONFIG.replace("kubeflow.org/mpijob", "pod"))


@pytest.mark.parametrize(
    ("label", "objects", "expected"),
    [
        pytest.param("own", [], "own", id="the label"),
        pytest.param("", [config(), namespace(), DEFAULT], "default", id="Kueue's default"),
        pytest.param(None, [config(), DEFAULT], "default", id="namespaces unknown"),
        pytest.param(None, [namespace(), DEFAULT], "default", id="no configuration"),
        pytest.param(None, [config(), namespace(), OTHER], "", id="no default"),
        pytest.param(None, [SELECTS, namespace(), DEFAULT], "", id="namespace not selected"),
        pytest.param(None, [SELECTS, namespace(kueue="yes"), DEFAULT], "default", id="namespace selected"),
        pytest.param(None, [NO_MPIJOBS, namespace(), DEFAULT], "", id="no MPIJobs"),
        pytest.param(None, [ALL_JOBS, namespace(), OTHER], UNKNOWN, id="suspended until a user names a queue"),
        pytest.param(None, [config(), namespace()], UNKNOWN, id="queues unknown"),
        pytest.param(None, [SELECTS, namespace()], "", id="queues unknown, namespace not selected"),
        pytest.param(None, [namespace()], "", id="Kueue not visible"),
    ],
)
def test_queue_of_a_job_comes_from_its_label_or_from_kueues_default(
    label: str | None, objects: list[Json], expected: str | Unknown
) -> None:
    assert queues.of_job(Snapshot(objects), "team-a", label) == expected


def test_job_has_no_queue_if_the_namespace_has_none() -> None:
    assert queues.of_job(Snapshot([head("localqueues")]), "team-a", None) == ""
