"""Faults for which the API server would reject a JobSet or its Jobs."""

import pytest

from tests.support.jobs import changed
from tests.support.trainer import LAUNCHER, NODE, patch, record, runtime, train_job
from webhook.kit.context import Context
from webhook.parts.trainer import job_sets
from webhook.parts.trainer.shape import of_runtime, of_train_job

CORRECT = "Correct it in the runtime."
JOB_SET = "spec.template.spec"
LAST, FIRST = f"{JOB_SET}.replicatedJobs.{LAUNCHER}", f"{JOB_SET}.replicatedJobs.{NODE}"
NODE_JOB = f"{FIRST}.template.spec"
PODS = "template.spec.template.spec"
RULES = f"{JOB_SET}.failurePolicy.rules"
MOUNT = {f"{FIRST}.{PODS}.containers.0.volumeMounts": [{"name": "data", "mountPath": "/data"}]}
REASONS = "BackoffLimitExceeded, DeadlineExceeded, FailedIndexes, MaxFailedIndexesExceeded, PodFailurePolicy"
NO_SERVICE = (
    "is not a Service name, which must start with a lower case letter and end with a lower case letter or a digit"
)
NO_REPLICATED_JOB = '"workers" is not one of the replicatedJobs'
ONE_NAME = [{"name": "one"}, {"name": "two"}, {"name": "one", "targetReplicatedJobs": ["node"]}]


def faults(shape):
    violations = job_sets.faults(shape, Context())
    return [(violation.path, violation.message, violation.fix) for violation in violations]


def faults_of_job(base, job=None):
    return faults(of_train_job(job or train_job(), record(base)))


def faults_of_runtime(base):
    return faults(of_runtime(base))


def claims(*names):
    return {f"{JOB_SET}.volumeClaimPolicies": [{"templates": [{"metadata": {"name": name}} for name in names]}]}


# Each row: changes of a runtime, the path of the fault relative to the first changed path, and the message.
FAULTS_ONLY_OF_JOBS = [
    (claims("data"), "[0].templates[0].metadata.name", 'no container mounts "data"'),
    ({f"{JOB_SET}.coordinator": {"replicatedJob": "node", "podIndex": 1}}, ".podIndex", "is 1, and node has 1"),
]
FAULTS_OF_RUNTIMES = [
    (
        {f"{FIRST}.dependsOn": [{"name": "launcher", "status": "Ready"}]},
        "",
        "the first of the replicatedJobs cannot depend on another",
    ),
    (
        {f"{LAST}.dependsOn": [{"name": "nodes", "status": "Ready"}]},
        "",
        '"nodes" is not among the replicatedJobs before it',
    ),
    ({f"{JOB_SET}.successPolicy.targetReplicatedJobs": ["workers"]}, "", NO_REPLICATED_JOB),
    ({f"{JOB_SET}.network.subdomain": "9to5"}, "", f'"9to5" {NO_SERVICE}'),
    ({f"{FIRST}.groupName": "My_Group"}, "", '"My_Group" '),
    (
        {RULES: [{"name": "1st"}]},
        "[0].name",
        '"1st" is not a valid rule name: a letter first, then up to 127 letters, digits or "_,:"',
    ),
    ({RULES: ONE_NAME}, "[0].name", '"one" is the name of 2 rules'),
    ({RULES: [{"targetReplicatedJobs": ["workers"]}]}, "[0].targetReplicatedJobs", NO_REPLICATED_JOB),
    (
        {RULES: [{"onJobFailureReasons": ["FailedIndexes", "BadLuck"]}]},
        "[0].onJobFailureReasons",
        f'"BadLuck" is not one of {REASONS}',
    ),
    ({f"{JOB_SET}.coordinator.replicatedJob": "workers"}, "", NO_REPLICATED_JOB),
    (claims("my_data"), "[0].templates[0].metadata.name", '"my_data" is not a claim name, which '),
    (claims("data", "data") | MOUNT, "[0].templates[1].metadata.name", '"data" is the name of another claim'),
    (
        claims("data") | MOUNT | {f"{LAST}.{PODS}.volumes": [{"name": "data", "emptyDir": {}}]},
        "[0].templates[0].metadata.name",
        '"data" is the name of a volume too',
    ),
]
FAULTS_WITH_A_FIX = [
    ({f"{FIRST}.{PODS}.restartPolicy": "Always"}, "", "is Always, which Jobs do not allow", "Use OnFailure or Never."),
    ({"spec.template.metadata.labels": {"team": "a b"}}, "[team]", '"a b" ', "Write a-b."),
    ({f"{FIRST}.template.metadata.labels": {"team": "a b"}}, "[team]", '"a b" ', "Write a-b."),
    ({f"{NODE_JOB}.backoffLimit": -1}, "", "is -1", "Set it to 0 or more."),
    (
        {f"{NODE_JOB}.podFailurePolicy": {"rules": [{"action": "FailJob"}]}},
        "",
        "cannot be used with restartPolicy: OnFailure",
        "Set that to Never.",
    ),
    ({f"{NODE_JOB}.selector": {"matchLabels": {"a": "b"}}}, "", "is set by Kubernetes", "Remove it."),
]


@pytest.mark.parametrize(
    ("changes", "below", "message", "fix"),
    [*((*each, CORRECT) for each in (*FAULTS_OF_RUNTIMES, *FAULTS_ONLY_OF_JOBS)), *FAULTS_WITH_A_FIX],
)
def test_fault_of_a_job_set_is_found_at_its_path(changes, below, message, fix):
    base = changed(changes, runtime())
    path = next(iter(changes)).replace(".0.", "[0].").replace(".1.", "[1].") + below
    only_in_jobs = (changes, below, message) in FAULTS_ONLY_OF_JOBS
    for first, *_ in (faults_of_job(base), *([] if only_in_jobs else [faults_of_runtime(base)])):
        assert (first[0], first[2]) == (path, fix)
        assert first[1].startswith(message)


def test_missing_implementation_is_found_in_the_runtime_and_in_its_jobs():
    base = runtime(mpiImplementation="")
    expected = ("spec.mpiImplementation", "is empty, so Trainer creates no pods", "Set it to OpenMPI.")
    assert expected in faults_of_job(base)
    assert expected in faults_of_runtime(base)


@pytest.mark.parametrize("changes", [changes for changes, _, _ in FAULTS_ONLY_OF_JOBS])
def test_fault_that_a_patch_can_fix_is_found_only_in_jobs(changes):
    base = changed(changes, runtime(runLauncherAsNode=False))
    assert faults_of_runtime(base) == []
    assert len(faults_of_job(base)) == 1


def test_valid_job_set_has_no_fault():
    good = {
        RULES: [{"name": "one"}, {"onJobFailureReasons": ["FailedIndexes"], "targetReplicatedJobs": ["node"]}],
        f"{JOB_SET}.coordinator": {"replicatedJob": "node", "jobIndex": 0, "podIndex": 0},
        f"{JOB_SET}.network": {"subdomain": "net"},
        **claims("data"),
        f"{FIRST}.{PODS}.initContainers": [{"name": "fetch", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "spec.template.metadata": {"labels": {"team": "a"}, "annotations": {"Note": "anything at all"}},
        f"{FIRST}.groupName": "nodes",
        f"{NODE_JOB}.backoffLimit": 0,
        f"{NODE_JOB}.podFailurePolicy": {"rules": [{"action": "FailJob"}]},
        f"{FIRST}.{PODS}.restartPolicy": "Never",
    }
    assert faults_of_runtime(changed(good, runtime())) == []


def test_invalid_label_of_a_patch_is_found():
    bad = patch("node", {}, labels={"team": "a b"})
    bad["trainingRuntimeSpec"]["template"]["metadata"] = {"labels": {"a b": "team"}}

    assert [path for path, _, _ in faults_of_job(runtime(), train_job(patches=[bad]))] == [
        "spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.labels[a b]",
        "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.metadata.labels[team]",
    ]


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
