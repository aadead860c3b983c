"""What Trainer and JobSet do otherwise than mpi-operator."""

import pytest

from tests.support.trainer import LAUNCHER, NODE, patch, pods, record, replicated_job, runtime, train_job
from webhook.admission.trainer import upstream
from webhook.predict.trainer.shape import of_runtime, of_train_job

ANOTHER = "Run as another user, with fsGroup, and sshAuthMountPath in its home."


def told(find, job, base=None):
    return [(each.path, each.message, each.fix) for each in find(of_train_job(job, record(base or runtime())))]


@pytest.mark.parametrize(
    ("metadata", "nodes", "found"),
    [
        ({"name": "x" * 44}, 3, None),
        ({"name": "x" * 45}, 3, ("metadata.name", 44)),
        ({"name": "x" * 45}, 1_000_001, ("metadata.name", 43)),
        ({"generateName": "x" * 39}, 3, None),
        ({"generateName": "x" * 40}, 3, ("metadata.generateName", 39)),
        ({}, 3, None),
    ],
)
def test_names_leave_room_for_those_of_pods(metadata, nodes, found):
    job = train_job(numNodes=nodes)
    job["metadata"] = metadata

    assert [(path, fix) for path, _, fix in told(upstream.longest_name, job)] == (
        [] if found is None else [(found[0], f"Use a {found[0].partition('.')[2]} of at most {found[1]} characters.")]
    )


def test_a_runtimes_name_reaches_no_pod():
    assert list(upstream.longest_name(of_runtime(runtime(name="x" * 60)))) == []


def depends_first(base):
    replicated_job(base, NODE)["dependsOn"] = [{"name": "launcher", "status": "Ready"}]


def depends_on_nobody(base):
    replicated_job(base, LAUNCHER)["dependsOn"] = [{"name": "nodes", "status": "Ready"}]


def succeeds_with_nobody(base):
    base["spec"]["template"]["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["workers"]}


def bad_subdomain(base):
    base["spec"]["template"]["spec"]["network"] = {"subdomain": "9to5"}


def bad_name(base):
    replicated_job(base, NODE)["name"] = "my_node"


def restarts_always(base):
    pods(base, NODE)["restartPolicy"] = "Always"


JOB_SET = {
    depends_first: (
        "spec.template.spec.replicatedJobs[0].dependsOn",
        "the first of the replicatedJobs cannot depend on another",
        "Correct it in the runtime.",
    ),
    depends_on_nobody: (
        "spec.template.spec.replicatedJobs[1].dependsOn",
        '"nodes" is not among the replicatedJobs before it',
        "Correct it in the runtime.",
    ),
    succeeds_with_nobody: (
        "spec.template.spec.successPolicy.targetReplicatedJobs",
        '"workers" is none of the replicatedJobs',
        "Correct it in the runtime.",
    ),
    bad_subdomain: (
        "spec.template.spec.network.subdomain",
        '"9to5" is no name of a Service, which must start with a lower case letter and end with a lower case letter '
        "or a digit",
        "Correct it in the runtime.",
    ),
    restarts_always: (
        "spec.template.spec.replicatedJobs[0].template.spec.template.spec.restartPolicy",
        "is Always, which no Job takes",
        "Use OnFailure or Never.",
    ),
}


@pytest.mark.parametrize("broken", JOB_SET, ids=lambda each: each.__name__)
def test_what_jobset_refuses(broken):
    base = runtime()
    broken(base)

    assert told(upstream.job_set, train_job(), base) == [JOB_SET[broken]]
    assert [(each.path, each.message, each.fix) for each in upstream.job_set(of_runtime(base))] == [JOB_SET[broken]]


def test_a_name_that_makes_no_name_of_a_job():
    base = runtime()
    bad_name(base)
    replicated_job(base, LAUNCHER)["dependsOn"] = []

    ((path, message, _),) = told(upstream.job_set, train_job(), base)
    assert path == "spec.template.spec.replicatedJobs[0].name"
    assert message.startswith('"my_node" makes no name of a Job, which ')


@pytest.mark.parametrize(("number", "wrong"), [(0, True), (-1, True), (1, False)])
def test_no_nodes(number, wrong):
    found = told(upstream.job_set, train_job(numNodes=number), runtime(runLauncherAsNode=False))

    fault = (
        "spec.mpiReplicaSpecs[Worker].replicas",
        f"{number} pods of node, at least 1 required",
        "Set it to 1 or more.",
    )
    assert found == ([fault] if wrong else [])


def test_one_node_is_two_pods():
    assert told(upstream.nodes, train_job(numNodes=1)) == [
        (
            "spec.mpiReplicaSpecs[Worker].replicas",
            "1 node, and Trainer makes two pods with all resources: the launcher is a node too",
            "Set numNodes to 2, which is the same.",
        )
    ]
    assert not told(upstream.nodes, train_job(numNodes=1), runtime(runLauncherAsNode=False))
    assert not told(upstream.nodes, train_job())


def test_nodes_of_a_runtime_are_launchers():
    base = runtime()
    base["spec"]["mlPolicy"]["numNodes"] = 3

    assert told(upstream.nodes, train_job(), base) == [
        (
            "spec.mpiReplicaSpecs[Launcher]",
            "3 launchers, of which each starts all ranks",
            "Set numNodes of the runtime to 1; for more nodes, parallelism of node.",
        )
    ]


def test_an_image_that_does_not_reach_the_nodes():
    other = train_job(image="registry.example.com/own:1")

    assert told(upstream.other_image, other) == [
        (
            "spec.trainer.image",
            "is the launcher's alone, and the ranks of nodes run in registry.example.com/deepspeed:1.0",
            "Use a runtime with this image.",
        )
    ]
    assert not told(upstream.other_image, train_job(image="registry.example.com/deepspeed:1.0"))
    assert not told(upstream.other_image, train_job())


def test_an_image_reaches_nodes_that_are_the_trainer():
    label = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = train_job(image="registry.example.com/own:1", patches=[patch("node", {}, labels=label)])

    assert not told(upstream.other_image, job)


@pytest.mark.parametrize(
    ("user", "pod", "found"),
    [
        (1000, {"fsGroup": 1000}, None),
        (1000, {"supplementalGroups": [0]}, None),
        (1000, {"runAsGroup": 0}, None),
        (None, {}, None),
        (1000, {}, ("securityContext.fsGroup", "Set fsGroup to 1000.")),
        (0, {"fsGroup": 0}, ("securityContext", ANOTHER)),
    ],
)
def test_who_can_use_the_key(user, pod, found):
    base = runtime()
    spec = pods(base, LAUNCHER)
    spec["securityContext"], spec["containers"][0]["securityContext"] = pod, {"runAsUser": user}

    place = "spec.mpiReplicaSpecs[Launcher].template.spec"
    assert [(path, fix) for path, _, fix in told(upstream.key, train_job(), base)] == (
        [] if found is None else [(f"{place}.{found[0]}", found[1])]
    )
