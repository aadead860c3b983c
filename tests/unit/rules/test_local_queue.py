import pytest

from tests.support.kueue_objects import CONFIG, Json, cluster_queue, config, local_queue, manifest, namespace
from tests.support.rule_checks import as_texts, violations
from webhook.admission.messages import Finding
from webhook.api.kueue import QUEUE_NAME
from webhook.cluster.snapshot import Snapshot

PATH = "metadata.labels[kueue.x-k8s.io/queue-name]"
QUEUED = {"metadata.labels": {"kueue.x-k8s.io/queue-name": "train"}}
SELECTOR = "managedJobsNamespaceSelector: {matchLabels: {kueue: 'yes'}}\n"


def reported(*objects: Json, labels: Json | None = None) -> list[tuple[str, str]]:
    """(message, fix) of each violation of a job for the queue `train`."""
    result = violations(
        "local-queue", QUEUED if labels is None else {"metadata.labels": labels}, view=Snapshot(objects)
    )
    assert {violation.path for violation in result} <= {PATH}
    assert all(violation.fix in Finding("local-queue", violation).warning for violation in result)
    return [(violation.message, violation.fix) for violation in result]


QUEUE = local_queue("train", "gpus")
OTHER = local_queue("other", "cpus")
CLUSTER_QUEUES = [cluster_queue("cpus"), cluster_queue("gpus")]
ASK = "Ask for a queue."
ABSENT = "LocalQueue train doesn't exist"
NOT_SELECTED = "namespace doesn't match its selector (ClusterQueue gpus)"
NO_CHECK = "the queue (ClusterQueue gpus) has no MultiKueue check"


def test_job_without_a_queue_label_is_not_checked() -> None:
    assert reported(config(), namespace(), OTHER, labels={}) == []
    assert reported(config(), namespace(), OTHER, labels={"kueue.x-k8s.io/queue-name": ""}) == []


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([config(), namespace(), QUEUE, *CLUSTER_QUEUES], id="usable queue"),
        pytest.param([QUEUE, *CLUSTER_QUEUES], id="Kueue's configuration unknown"),
        pytest.param([QUEUE], id="ClusterQueues unknown"),
        pytest.param([config(), namespace()], id="LocalQueues unknown"),
        pytest.param([], id="nothing known"),
        pytest.param(
            [QUEUE, cluster_queue("gpus", namespaceSelector={"matchLabels": {"a": "b"}})], id="namespace unknown"
        ),
        pytest.param([local_queue("train", "gpus", stopPolicy="None"), *CLUSTER_QUEUES], id="not stopped"),
        # The status of the LocalQueue says that its ClusterQueue is inactive, but the ClusterQueue is active.
        pytest.param([local_queue("train", "gpus", inactive="ClusterQueueIsInactive"), *CLUSTER_QUEUES], id="stale"),
    ],
)
def test_usable_or_unknown_queue_is_accepted(objects: list[Json]) -> None:
    assert reported(*objects) == []


@pytest.mark.parametrize(
    ("objects", "message", "fix"),
    [
        ([OTHER, *CLUSTER_QUEUES], ABSENT, "Use other."),
        ([OTHER], ABSENT, "Use other."),
        ([local_queue("other", "cpus", stopPolicy="Hold")], ABSENT, ASK),
        ([local_queue("train", "gpus", namespace="b"), *CLUSTER_QUEUES], ABSENT, ASK),
        (
            [local_queue("train", "gpus", stopPolicy="Hold"), OTHER, *CLUSTER_QUEUES],
            "LocalQueue train is stopped (Hold)",
            "Use other.",
        ),
        ([local_queue("train", "gone"), *CLUSTER_QUEUES], "ClusterQueue gone doesn't exist", ASK),
        ([local_queue("train", "gone", inactive="X")], "ClusterQueue gone is inactive (X)", ASK),
        (
            [QUEUE, cluster_queue("gpus", stopPolicy="HoldAndDrain")],
            "ClusterQueue gpus is stopped (HoldAndDrain)",
            ASK,
        ),
        (
            [QUEUE, cluster_queue("gpus", inactive="FlavorNotFound")],
            "ClusterQueue gpus is inactive (FlavorNotFound)",
            ASK,
        ),
        ([QUEUE, namespace(), cluster_queue("gpus", namespaceSelector=None)], NOT_SELECTED, ASK),
        (
            [QUEUE, namespace(team="a"), cluster_queue("gpus", namespaceSelector={"matchLabels": {"team": "b"}})],
            NOT_SELECTED,
            ASK,
        ),
        ([*(local_queue(name, "gpus") for name in "abcd"), *CLUSTER_QUEUES], ABSENT, "Use a or b or c."),
        (
            [config(SELECTOR), namespace(), QUEUE, *CLUSTER_QUEUES],
            "Kueue does not manage this namespace (the job would wait for ever)",
            "Remove it.",
        ),
        (
            [config("", CONFIG.replace("kubeflow.org/mpijob", "pod")), OTHER],
            "Kueue does not manage MPIJobs here (its configuration lacks kubeflow.org/mpijob)",
            "Remove it, or enable them.",
        ),
    ],
)
def test_unusable_queue_is_reported(objects: list[Json], message: str, fix: str) -> None:
    assert reported(*objects) == [(message, fix)]


def test_queues_of_v1beta1_are_read() -> None:
    older = [
        {**each, "apiVersion": "kueue.x-k8s.io/v1beta1"} for each in (local_queue("train", "gone"), *CLUSTER_QUEUES)
    ]
    assert reported(*older) == [("ClusterQueue gone doesn't exist", ASK)]


MULTIKUEUE = {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}


def check_by(controller: str) -> Json:
    return manifest("AdmissionCheck", "multikueue", {"controllerName": f"kueue.x-k8s.io/{controller}"})


CHECKS = {"admissionChecksStrategy": {"admissionChecks": [{"name": "multikueue"}]}}


@pytest.mark.parametrize(
    ("changes", "objects", "message"),
    [
        ({**MULTIKUEUE, **QUEUED}, [QUEUE, cluster_queue("gpus", **CHECKS)], None),
        ({**MULTIKUEUE, **QUEUED}, [QUEUE, cluster_queue("gpus", admissionChecks=["multikueue"])], None),
        ({**MULTIKUEUE, **QUEUED}, [QUEUE, cluster_queue("gpus", **CHECKS), check_by("multikueue")], None),
        (
            {**MULTIKUEUE, **QUEUED},
            [QUEUE, cluster_queue("gpus", **CHECKS), check_by("provisioning-request")],
            NO_CHECK,
        ),
        ({**MULTIKUEUE, **QUEUED}, [QUEUE], None),
        ({**MULTIKUEUE, **QUEUED}, [], None),
        (MULTIKUEUE, [local_queue("default", "gpus"), cluster_queue("gpus", **CHECKS)], None),
        (MULTIKUEUE, [config("manageJobsWithoutQueueName: true"), namespace()], None),
        (QUEUED, [QUEUE, *CLUSTER_QUEUES], None),
        ({**MULTIKUEUE, **QUEUED}, [QUEUE, *CLUSTER_QUEUES], NO_CHECK),
        (MULTIKUEUE, [local_queue("default", "gpus"), *CLUSTER_QUEUES], NO_CHECK),
        (MULTIKUEUE, [QUEUE, *CLUSTER_QUEUES], "MultiKueue needs a queue (a label)"),
        (MULTIKUEUE, [], None),
    ],
)
def test_multikueue_job_without_a_multikueue_queue_is_reported(
    changes: Json, objects: list[Json], message: str | None
) -> None:
    result = violations("local-queue", changes, view=Snapshot(objects))
    assert as_texts(result) == ([f"spec.runPolicy.managedBy: {message}"] if message else [])


@pytest.mark.parametrize(
    ("changes", "place", "fix"),
    [
        ({f"metadata.{kind}": {key: "train"}}, f"metadata.{kind}[{key}]", fix)
        for kind, keys, fix in (
            (
                "labels",
                (
                    *("queue-name", "queueName", "kueue.x-k8s.io/queue", "kueue.x-k8s.io/queue_name"),
                    *("kueue.x-k8s.io/queueName", "kueue.x-k8s.io/que-name", "kueue.sigs.k8s.io/queue-name"),
                ),
                f"Rename it to {QUEUE_NAME}.",
            ),
            ("annotations", (QUEUE_NAME, "kueue.x-k8s.io/queue"), f"Move it to {PATH}."),
        )
        for key in keys
    ]
    + [
        (
            {"Worker.template.metadata": {kind: {QUEUE_NAME: "train"}}},
            f"spec.mpiReplicaSpecs[Worker].template.metadata.{kind}[{QUEUE_NAME}]",
            f"Move it to {PATH}.",
        )
        for kind in ("labels", "annotations")
    ],
)
def test_queue_name_under_a_key_that_kueue_does_not_read_is_reported(changes: Json, place: str, fix: str) -> None:
    (violation,) = result = violations("local-queue", changes)
    assert as_texts(result) == [f"{place}: has no effect"]
    assert violation.fix == fix


@pytest.mark.parametrize(
    ("labels", "view"),
    [
        ({"queue": "train"}, None),
        ({"kueue.x-k8s.io/pod-group-name": "train"}, None),
        ({"kueue.x-k8s.io/queue": "train"} | QUEUED["metadata.labels"], None),
        ({"kueue.x-k8s.io/queue": "train"}, Snapshot([config("", CONFIG.replace("kubeflow.org/mpijob", "pod"))])),
    ],
)
def test_unrelated_or_harmless_key_is_accepted(labels: Json, view: Snapshot | None) -> None:
    assert violations("local-queue", {"metadata.labels": labels}, view=view) == []


def test_pod_label_without_a_prefix_is_accepted() -> None:
    assert violations("local-queue", {"Worker.template.metadata": {"labels": {"queue-name": "train"}}}) == []


def test_name_that_no_queue_can_have_is_reported() -> None:
    assert reported(labels={QUEUE_NAME: "Team A"}) == []  # the API server rejects the label
    assert reported(labels={QUEUE_NAME: "Team_A"}) == [('"Team_A" contains "T"', "Write team-a.")]
