"""The module `upstream` finds faults that only TrainJobs can have, because Trainer differs from mpi-operator."""

import pytest

from tests.support.trainer import LAUNCHER, patch, pods, record, runtime, train_job
from webhook.cluster.owned import Owned, Owner
from webhook.cluster.resources.config_maps import CONFIG_MAPS
from webhook.cluster.view import ABSENT, NothingKnown
from webhook.kit.context import Context
from webhook.parts.trainer import upstream
from webhook.parts.trainer.shape import of_runtime, of_train_job

ANOTHER = "Run as another user, with fsGroup, and sshAuthMountPath in its home."


def violations(find, job, base=None):
    violations = find(of_train_job(job, record(base or runtime())))
    return [(violation.path, violation.message, violation.fix) for violation in violations]


def names(shape):
    return upstream.longest_name(shape, Context())


@pytest.mark.parametrize(
    ("metadata", "nodes", "expected"),
    [
        ({"name": "x" * 44}, 3, None),
        ({"name": "x" * 45}, 3, ("name", 44)),
        ({"name": "x" * 45}, 1_000_001, ("name", 43)),
        ({"generateName": "x" * 39}, 3, None),
        ({"generateName": "x" * 40}, 3, ("generateName", 39)),
        ({}, 3, None),
    ],
)
def test_name_too_long_for_the_names_of_pods_is_reported(metadata, nodes, expected):
    job = train_job(numNodes=nodes)
    job["metadata"] = metadata

    limits = [] if expected is None else [expected]
    assert [(path, fix) for path, _, fix in violations(names, job)] == [
        (f"metadata.{field}", f"Use a {field} of at most {limit} characters.") for field, limit in limits
    ]


def test_length_of_a_runtimes_name_is_not_limited():
    assert list(names(of_runtime(runtime(name="x" * 60)))) == []


class ConfigMaps(NothingKnown):
    def __init__(self, name, owner=None, *, deleted=False):
        self._config_map = Owned("team", name, owner, deleted)

    def get(self, resource, key):
        return self._config_map if (resource, key) == (CONFIG_MAPS, ("team", self._config_map.name)) else ABSENT


OF_JOB = Owner("trainer.kubeflow.org", "TrainJob", "job", "u1")
FORMER = Owner("trainer.kubeflow.org", "TrainJob", "job", "u0")
OF_APP = Owner("apps.example.com", "App", "job", "u2")
NEVER = "so Trainer could never start the job"


@pytest.mark.parametrize(
    ("name", "owner", "deleted", "fault", "advisory"),
    [
        ("job-runtime-snapshot", OF_JOB, False, None, None),
        ("job-runtime-snapshot", FORMER, False, "belongs to a former job of this name", True),
        ("job-runtime-snapshot", OF_APP, True, "is still being deleted", True),
        ("job-runtime-snapshot", None, False, f"exists and is not the job's, {NEVER}", False),
        ("job-mpi-hostfile", OF_APP, False, f"exists and belongs to App job, {NEVER}", False),
        ("job-mpi-hostfile", None, False, None, None),
        ("another-mpi-hostfile", OF_APP, False, None, None),
    ],
)
def test_config_map_with_a_name_that_trainer_needs_is_reported(name, owner, deleted, fault, advisory):
    job = train_job()
    job["metadata"]["uid"] = "u1"
    ctx = Context(namespace="team", view=ConfigMaps(name, owner, deleted=deleted))

    taken = upstream.taken_names(of_train_job(job, record(runtime())), ctx)

    assert [(violation.path, violation.message, violation.advisory) for violation in taken] == (
        [] if fault is None else [("metadata.name", f'ConfigMap "{name}" {fault}', advisory)]
    )


def test_one_node_is_reported_if_the_launcher_is_a_node():
    assert violations(upstream.nodes, train_job(numNodes=1)) == [
        (
            "spec.mpiReplicaSpecs[Worker].replicas",
            "1 node, but Trainer creates two pods with all resources: the launcher is a node too",
            "Set numNodes to 2, which has the same effect.",
        )
    ]
    assert not violations(upstream.nodes, train_job(numNodes=1), runtime(runLauncherAsNode=False))
    assert not violations(upstream.nodes, train_job())


def test_several_launchers_are_reported():
    base = runtime()
    base["spec"]["mlPolicy"]["numNodes"] = 3

    assert violations(upstream.nodes, train_job(), base) == [
        (
            "spec.mpiReplicaSpecs[Launcher]",
            "3 launchers, each of which starts all ranks",
            "Set numNodes of the runtime to 1; for more nodes, parallelism of node.",
        )
    ]


def test_image_that_only_the_launcher_gets_is_reported():
    other = train_job(image="registry.example.com/own:1")

    assert violations(upstream.other_image, other) == [
        (
            "spec.trainer.image",
            "is only the launcher's image: the ranks on nodes run in registry.example.com/deepspeed:1.0",
            "Use a runtime with this image.",
        )
    ]
    of_trainer = patch("node", {}, labels={"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"})
    for job in (
        train_job(),
        train_job(image="registry.example.com/deepspeed:1.0"),
        train_job(image="registry.example.com/own:1", patches=[of_trainer]),
    ):
        assert not violations(upstream.other_image, job)


@pytest.mark.parametrize(
    ("user", "pod", "expected"),
    [
        (1000, {"fsGroup": 1000}, None),
        (1000, {"supplementalGroups": [0]}, None),
        (1000, {"runAsGroup": 0}, None),
        (None, {}, None),
        (1000, {}, ("securityContext.fsGroup", "Set fsGroup to 1000.")),
        (0, {"fsGroup": 0}, ("securityContext", ANOTHER)),
    ],
)
def test_user_who_cannot_use_the_ssh_key_is_reported(user, pod, expected):
    base = runtime()
    spec = pods(base, LAUNCHER)
    spec["securityContext"], spec["containers"][0]["securityContext"] = pod, {"runAsUser": user}

    place = "spec.mpiReplicaSpecs[Launcher].template.spec"
    assert [(path, fix) for path, _, fix in violations(upstream.key, train_job(), base)] == (
        [] if expected is None else [(f"{place}.{expected[0]}", expected[1])]
    )
