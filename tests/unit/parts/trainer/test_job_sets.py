"""Faults for which the API server would reject a JobSet or its Jobs."""

import pytest

from tests.support.jobs import changed
from tests.support.trainer import LAUNCHER, NODE, record, runtime, train_job
from webhook.kit.context import Context
from webhook.parts.trainer import job_sets
from webhook.parts.trainer.shape import of_runtime, of_train_job

CORRECT = "Correct it in the runtime."
JOB_SET = "spec.template.spec"
LAST, FIRST = f"{JOB_SET}.replicatedJobs.{LAUNCHER}", f"{JOB_SET}.replicatedJobs.{NODE}"
NODE_JOB = f"{FIRST}.template.spec"
PODS = "template.spec.template.spec"


def faults(shape):
    violations = job_sets.faults(shape, Context())
    return [(violation.path, violation.message, violation.fix) for violation in violations]


def faults_of_job(base, job=None):
    return faults(of_train_job(job or train_job(), record(base)))


def faults_of_runtime(base):
    return faults(of_runtime(base))


# Each row: changes of a runtime, the message and the fix. The fault has the first changed path.
FAULTS = [
    (
        {f"{FIRST}.dependsOn": [{"name": "launcher", "status": "Ready"}]},
        "the first of the replicatedJobs cannot depend on another",
        CORRECT,
    ),
    (
        {f"{LAST}.dependsOn": [{"name": "nodes", "status": "Ready"}]},
        '"nodes" is not among the replicatedJobs before it',
        CORRECT,
    ),
    (
        {f"{JOB_SET}.successPolicy.targetReplicatedJobs": ["workers"]},
        '"workers" is not one of the replicatedJobs',
        CORRECT,
    ),
    ({f"{FIRST}.{PODS}.restartPolicy": "Always"}, "is Always, which Jobs do not allow", "Use OnFailure or Never."),
]


@pytest.mark.parametrize(("changes", "message", "fix"), FAULTS)
def test_fault_of_a_job_set_is_found_at_its_path(changes, message, fix):
    base = changed(changes, runtime())
    path = next(iter(changes)).replace(".0.", "[0].").replace(".1.", "[1].")
    for first, *_ in (faults_of_job(base), faults_of_runtime(base)):
        assert first == (path, message, fix)


def test_missing_implementation_is_found_in_the_runtime_and_in_its_jobs():
    base = runtime(mpiImplementation="")
    expected = ("spec.mpiImplementation", "is empty, so Trainer creates no pods", "Set it to OpenMPI.")
    assert expected in faults_of_job(base)
    assert expected in faults_of_runtime(base)


def test_replicated_job_whose_name_gives_its_jobs_invalid_names_is_found():
    base = changed({f"{LAST}.name": "my_launcher"}, runtime())

    [(path, message)] = [(path, message) for path, message, _ in faults_of_job(base) if path.endswith(".name")]
    assert path == "spec.template.spec.replicatedJobs[1].name"
    assert message.startswith('"my_launcher" gives an invalid name of a Job, which ')


@pytest.mark.parametrize(("number", "message"), [(-1, "-1 pods of node, at least 1 required"), (0, "0 pods of node")])
def test_number_of_nodes_below_one_is_found(number, message):
    shape = of_train_job(train_job(numNodes=number), record(runtime(runLauncherAsNode=False)))

    (fault,) = job_sets.faults(shape, Context())
    assert (fault.path, fault.message) == ("spec.mpiReplicaSpecs[Worker].replicas", message)
    assert fault.fix == "Set it to 1 or more."
    assert fault.advisory is (number == 0), "a Job without pods completes at once"


@pytest.mark.parametrize("number", [0, -1])
def test_number_of_pods_is_one_if_the_runtimes_numbers_are_below_one(number):
    base = changed({f"{NODE_JOB}.parallelism": number, "spec.mlPolicy.numNodes": number}, runtime())

    for shape in (of_train_job(train_job(), record(base)), of_runtime(base)):
        assert [job.pods for job in shape.jobs] == [1, 1]
        assert faults(shape) == []


def test_success_policy_may_name_any_of_many_replicated_jobs():
    base = changed({f"{JOB_SET}.successPolicy": {"targetReplicatedJobs": ["step-97"]}}, runtime())
    base["spec"]["template"]["spec"]["replicatedJobs"] += [{"name": f"step-{index}"} for index in range(98)]
    assert faults_of_runtime(base) == []
