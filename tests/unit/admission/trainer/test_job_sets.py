"""What JobSet, or the Jobs that it makes, would be refused for."""

import pytest

from tests.support.trainer import LAUNCHER, NODE, patch, pods, record, replicated_job, runtime, train_job
from webhook.admission.trainer import job_sets
from webhook.kit.context import Context
from webhook.predict.trainer.shape import of_runtime, of_train_job

CORRECT = "Correct it in the runtime."
NODE_JOB = "spec.template.spec.replicatedJobs[0].template.spec"
REASONS = "BackoffLimitExceeded, DeadlineExceeded, FailedIndexes, MaxFailedIndexesExceeded, PodFailurePolicy"


def told(find, job, base=None):
    return [(each.path, each.message, each.fix) for each in find(of_train_job(job, record(base or runtime())))]


def faults(shape):
    return job_sets.faults(shape, Context())


def job_set(base):
    return base["spec"]["template"]["spec"]


def job_of_node(base):
    return replicated_job(base, NODE)["template"]["spec"]


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


def bad_group(base):
    replicated_job(base, NODE)["groupName"] = "My_Group"


def fails_by_rules(base, *rules):
    job_set(base)["failurePolicy"] = {"rules": [{"action": "FailJobSet", **each} for each in rules]}


def bad_rule(base):
    fails_by_rules(base, {"name": "1st"})


def same_rules(base):
    fails_by_rules(base, {"name": "one"}, {"name": "two"}, {"name": "one", "targetReplicatedJobs": ["node"]})


def fails_of_nobody(base):
    fails_by_rules(base, {"targetReplicatedJobs": ["workers"]})


def fails_for_no_reason(base):
    fails_by_rules(base, {"onJobFailureReasons": ["FailedIndexes", "BadLuck"]})


def coordinated_by_nobody(base):
    job_set(base)["coordinator"] = {"replicatedJob": "workers"}


def coordinated_by_no_pod(base):
    job_set(base)["coordinator"] = {"replicatedJob": "node", "podIndex": 1}


def claims(base, *names):
    templates = [{"metadata": {"name": name}} for name in names]
    job_set(base)["volumeClaimPolicies"] = [{"templates": templates}]


def claim_for_nobody(base):
    claims(base, "data")


def bad_claim(base):
    claims(base, "my_data")


def same_claims(base):
    claims(base, "data", "data")
    pods(base, NODE)["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]


def claim_and_volume(base):
    claims(base, "data")
    pods(base, NODE)["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    pods(base, LAUNCHER)["volumes"] = [{"name": "data", "emptyDir": {}}]


def bad_label(base):
    base["spec"]["template"]["metadata"] = {"labels": {"team": "a b"}}


def bad_label_of_jobs(base):
    replicated_job(base, NODE)["template"]["metadata"] = {"labels": {"team": "a b"}}


def negative(base):
    job_of_node(base)["backoffLimit"] = -1


def fails_by_pods(base):
    job_of_node(base)["podFailurePolicy"] = {"rules": [{"action": "FailJob"}]}


def selects(base):
    job_of_node(base)["selector"] = {"matchLabels": {"a": "b"}}


def no_implementation(base):
    base["spec"]["mlPolicy"]["mpi"]["mpiImplementation"] = ""


LEFT_TO_JOBS = (claim_for_nobody, coordinated_by_no_pod)
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
    bad_group: ("spec.template.spec.replicatedJobs[0].groupName", '"My_Group" ', CORRECT),
    bad_rule: (
        "spec.template.spec.failurePolicy.rules[0].name",
        '"1st" is no name of a rule: a letter first, then up to 127 letters, digits or "_,:"',
        CORRECT,
    ),
    same_rules: ("spec.template.spec.failurePolicy.rules[0].name", '"one" is the name of 2 rules', CORRECT),
    fails_of_nobody: (
        "spec.template.spec.failurePolicy.rules[0].targetReplicatedJobs",
        '"workers" is none of the replicatedJobs',
        CORRECT,
    ),
    fails_for_no_reason: (
        "spec.template.spec.failurePolicy.rules[0].onJobFailureReasons",
        f'"BadLuck" is none of {REASONS}',
        CORRECT,
    ),
    coordinated_by_nobody: (
        "spec.template.spec.coordinator.replicatedJob",
        '"workers" is none of the replicatedJobs',
        CORRECT,
    ),
    coordinated_by_no_pod: ("spec.template.spec.coordinator.podIndex", "is 1, and node has 1", CORRECT),
    claim_for_nobody: (
        "spec.template.spec.volumeClaimPolicies[0].templates[0].metadata.name",
        'no container mounts "data"',
        CORRECT,
    ),
    bad_claim: (
        "spec.template.spec.volumeClaimPolicies[0].templates[0].metadata.name",
        '"my_data" is no name of a claim, which ',
        CORRECT,
    ),
    same_claims: (
        "spec.template.spec.volumeClaimPolicies[0].templates[1].metadata.name",
        '"data" is the name of another claim',
        CORRECT,
    ),
    claim_and_volume: (
        "spec.template.spec.volumeClaimPolicies[0].templates[0].metadata.name",
        '"data" is the name of a volume too',
        CORRECT,
    ),
    bad_label: ("spec.template.metadata.labels[team]", '"a b" ', "Correct the value."),
    bad_label_of_jobs: (
        "spec.template.spec.replicatedJobs[0].template.metadata.labels[team]",
        '"a b" ',
        "Correct the value.",
    ),
    negative: (f"{NODE_JOB}.backoffLimit", "is -1", "Set it to 0 or more."),
    fails_by_pods: (
        f"{NODE_JOB}.podFailurePolicy",
        "does not go with restartPolicy: OnFailure",
        "Set that to Never.",
    ),
    selects: (f"{NODE_JOB}.selector", "is made by Kubernetes itself", "Remove it."),
    no_implementation: ("spec.mpiImplementation", "is empty, and Trainer makes no pods of it", "Set it to OpenMPI."),
}


@pytest.mark.parametrize("broken", JOB_SET, ids=lambda each: each.__name__)
def test_what_jobset_refuses(broken):
    base = runtime()
    broken(base)

    path, message, fix = JOB_SET[broken]
    of_runtime = [] if broken in LEFT_TO_JOBS else [list(faults_of(base))]
    for found in (told(faults, train_job(), base), *of_runtime):
        assert (found[0][0], found[0][2]) == (path, fix)
        assert found[0][1].startswith(message)


def faults_of(base):
    return ((each.path, each.message, each.fix) for each in faults(of_runtime(base)))


@pytest.mark.parametrize("broken", LEFT_TO_JOBS, ids=lambda each: each.__name__)
def test_what_a_runtime_leaves_to_its_jobs(broken):
    base = runtime(runLauncherAsNode=False)
    broken(base)

    assert list(faults_of(base)) == []
    assert len(told(faults, train_job(), base)) == 1


def all_that_is_good(base):
    fails_by_rules(base, {"name": "one"}, {"onJobFailureReasons": ["FailedIndexes"], "targetReplicatedJobs": ["node"]})
    job_set(base)["coordinator"] = {"replicatedJob": "node", "jobIndex": 0, "podIndex": 0}
    job_set(base)["network"] = {"subdomain": "net"}
    claims(base, "data")
    pods(base, NODE)["initContainers"] = [{"name": "fetch", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]
    base["spec"]["template"]["metadata"] = {"labels": {"team": "a"}, "annotations": {"Note": "anything at all"}}
    replicated_job(base, NODE)["groupName"] = "nodes"
    job_of_node(base).update(backoffLimit=0, podFailurePolicy={"rules": [{"action": "FailJob"}]})
    pods(base, NODE)["restartPolicy"] = "Never"


def test_what_jobset_takes():
    base = runtime()
    all_that_is_good(base)

    assert list(faults_of(base)) == []


def test_labels_of_a_patch():
    bad = patch("node", {}, labels={"team": "a b"})
    bad["trainingRuntimeSpec"]["template"]["metadata"] = {"labels": {"a b": "team"}}

    assert [path for path, _, _ in told(faults, train_job(patches=[bad]))] == [
        "spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.labels[a b]",
        "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.metadata.labels[team]",
    ]


def test_a_name_that_makes_no_name_of_a_job():
    base = runtime()
    bad_name(base)
    replicated_job(base, LAUNCHER)["dependsOn"] = []

    ((path, message, _),) = told(faults, train_job(), base)
    assert path == "spec.template.spec.replicatedJobs[0].name"
    assert message.startswith('"my_node" makes no name of a Job, which ')


@pytest.mark.parametrize(("number", "said"), [(-1, "-1 pods of node, at least 1 required"), (0, "0 pods of node")])
def test_no_nodes(number, said):
    shape = of_train_job(train_job(numNodes=number), record(runtime(runLauncherAsNode=False)))

    (found,) = faults(shape)
    assert (found.path, found.message) == ("spec.mpiReplicaSpecs[Worker].replicas", said)
    assert found.fix == "Set it to 1 or more."
    assert found.advisory is (number == 0), "Kubernetes takes a Job of no pods for done, and a launcher may go on"


@pytest.mark.parametrize("number", [0, -1])
def test_of_what_a_runtime_says_trainer_makes_one_pod_at_least(number):
    base = runtime()
    job_of_node(base)["parallelism"] = base["spec"]["mlPolicy"]["numNodes"] = number

    for shape in (of_train_job(train_job(), record(base)), of_runtime(base)):
        assert [each.pods for each in shape.jobs] == [1, 1]
        assert list(faults(shape)) == []


def test_the_last_of_many_jobs_may_decide_for_all():
    base = runtime()
    job_set(base)["replicatedJobs"] += [{"name": f"step-{index}"} for index in range(98)]
    job_set(base)["successPolicy"] = {"targetReplicatedJobs": ["step-97"]}

    assert list(faults_of(base)) == []
