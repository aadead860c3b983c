"""The rules for MPIJobs judge TrainJobs and runtimes. Findings name the fields of the TrainJob or runtime."""

import copy
import json
from contextlib import suppress

import msgspec
import pytest

from tests.support.strategies import paths
from tests.support.trainer import (
    LAUNCHER,
    NODE,
    TODAY,
    Runtimes,
    decide,
    patch,
    pods,
    refused,
    review,
    runtime,
    train_job,
)
from webhook import rules
from webhook.cluster.view import NothingKnown
from webhook.parts.trainer import kinds, pipeline, selection
from webhook.policy.in_force import load_policies


@pytest.mark.parametrize(
    "manifest",
    [
        train_job(numNodes=3, resourcesPerNode={"limits": {"nvidia.com/gpu": 4}}),
        runtime(kinds.RUNTIME),
        runtime(kinds.CLUSTER_RUNTIME),
    ],
    ids=lambda manifest: manifest["kind"],
)
def test_valid_job_or_runtime_is_admitted_without_warnings(manifest):
    decision = decide(manifest, runtime())

    assert (decision.denied, decision.warnings, decision.skipped) == ([], [], "")


@pytest.mark.parametrize(
    ("fields", "violation"),
    [
        (
            {"numNodes": 300},
            "spec.trainer.numNodes: 300 workers (the launcher is one of them), at most 100 allowed. "
            "Set numNodes to 100 or fewer. [worker-count]",
        ),
        (
            {"numProcPerNode": 9},
            "spec.trainer.numProcPerNode: 9 slots per worker, at most 8 allowed. "
            "Set numProcPerNode to 8 or fewer, with more workers or threads in each rank; "
            "an administrator can allow more in slots.maxCpu. [slots]",
        ),
        (
            {"image": "Bad Image"},
            'spec.trainer.image: "Bad Image" contains a blank or a character outside ASCII. '
            "Write it as <registry>/<name>:<tag>. [images]",
        ),
    ],
)
def test_violation_in_the_train_job_is_reported_with_its_path(fields, violation):
    decision = decide(train_job(**fields), runtime())

    ((path, message, fix, rule),) = refused(decision)
    assert f"{path}: {message}. {fix} [{rule}]" == violation
    assert decision.message.startswith('TrainJob "job" was rejected: 1 problem')
    details = decision.response("1").status.details
    assert (details.group, details.kind) == (kinds.GROUP, kinds.TRAIN_JOB)
    assert [cause.field for cause in details.causes] == [path]


def test_violation_in_the_runtime_is_reported_with_its_path():
    base = runtime()
    pods(base, NODE)["containers"][0]["image"] = "Bad Image"
    where = "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].image"

    of_job, of_runtime = decide(train_job(), base), decide(base)

    message = '"Bad Image" contains a blank or a character outside ASCII'
    fix = "Write it as <registry>/<name>:<tag>."
    assert refused(of_job) == [
        ("spec.runtimeRef", f"{message} (ClusterTrainingRuntime deepspeed, {where})", fix, "images")
    ]
    assert refused(of_runtime) == [(where, message, fix, "images")]


def test_violation_in_a_patch_is_reported_with_its_path():
    base = runtime()
    bad = {"volumes": [{"name": "no_name", "emptyDir": {}}]}

    (violation,) = refused(decide(train_job(patches=[patch("node", bad)]), base))

    assert violation[0] == (
        "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template"
        ".spec.volumes[0].name"
    )


def test_command_that_replaces_sshd_on_nodes_is_reported():
    labelled = runtime()
    template = labelled["spec"]["template"]["spec"]["replicatedJobs"][NODE]["template"]
    template.setdefault("metadata", {})["labels"] = {kinds.ANCESTOR: kinds.OF_TRAINER}
    decision = decide(train_job(numNodes=3, command=["mpirun", "-np", "2", "train"]), labelled)

    fix = "Remove it, or run /usr/sbin/sshd -De."
    assert f"spec.trainer.command: runs mpirun, no sshd. {fix} [idle-workers]" in decision.warnings


def test_environment_that_only_the_launcher_gets_is_reported():
    variables = [{"name": "HF_HOME", "value": "/models"}]
    decision = decide(train_job(command=["mpirun", "-np", "2", "train"], env=variables), runtime())

    fault = "spec.trainer.env[0]: HF_HOME does not reach the ranks on workers"
    assert decision.warnings == [f"{fault}. Add -x HF_HOME to mpirun. [rank-environment]"]


def test_violation_in_the_job_set_is_reported_with_its_path():
    base = runtime()
    base["spec"]["template"]["spec"]["successPolicy"] = {"targetReplicatedJobs": ["workers"]}

    ((path, message, _, rule),) = refused(decide(train_job(), base))

    assert (path, rule) == ("spec.runtimeRef", "upstream-contract")
    assert message.endswith("(ClusterTrainingRuntime deepspeed, spec.template.spec.successPolicy.targetReplicatedJobs)")


def test_image_and_volume_missing_in_a_runtime_are_violations_only_of_its_jobs():
    base = runtime()
    del pods(base, LAUNCHER)["containers"][0]["image"]
    pods(base, NODE)["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    volumes = patch("node", {"volumes": [{"name": "data", "emptyDir": {}}]})

    assert decide(base).allowed
    assert decide(train_job(image="registry.example.com/own:1", patches=[volumes]), base).allowed
    assert [rule for *_, rule in refused(decide(train_job(), base))] == ["images", "pod-template"]


@pytest.mark.parametrize("index", [NODE, LAUNCHER])
@pytest.mark.parametrize(("name", "allowed"), [("ssh-auth", False), ("mpi-job-config", False), ("mpi-ssh-auth", True)])
def test_volume_that_only_mpi_operator_adds_cannot_be_mounted(index, name, allowed):
    base = runtime()
    pods(base, index)["containers"][0]["volumeMounts"] = [{"name": name, "mountPath": "/mnt"}]

    assert decide(base).allowed, "a patch may add the volume"
    assert decide(train_job(), base).allowed is allowed
    patches = [patch(role, {"volumes": [{"name": name, "emptyDir": {}}]}) for role in ("node", "launcher")]
    assert decide(train_job(patches=patches), base).allowed


def test_claim_that_jobset_creates_can_be_mounted():
    base = runtime()
    base["spec"]["template"]["spec"]["volumeClaimPolicies"] = [{"templates": [{"metadata": {"name": "data"}}]}]
    pods(base, NODE)["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]

    assert decide(base).allowed
    assert decide(train_job(), base).allowed


def test_advice_about_a_runtime_is_not_repeated_for_its_jobs():
    base = runtime()
    for index in (NODE, LAUNCHER):
        pods(base, index)["containers"][0]["image"] = "registry.example.com/deepspeed"

    assert decide(train_job(), base).warnings == []
    assert len(decide(base).warnings) == 1


def test_minimum_numbers_do_not_apply_to_a_runtime():
    policy = "rules: {worker-count: {min: 4}, gpus: {min: 1}}"

    assert not decide(runtime(), policy=policy).denied
    rejected = refused(decide(train_job(), runtime(), policy=policy))
    assert [rule for *_, rule in rejected] == ["gpus", "gpus", "worker-count"]


@pytest.mark.parametrize(
    ("job", "view"),
    [
        (train_job(runtime="other"), Runtimes(runtime())),
        (train_job(numNodes=300), Runtimes(runtime(kinds.RUNTIME))),
        (train_job(numNodes=300), NothingKnown()),
        ({**train_job(), "spec": {}}, Runtimes(runtime())),
        ({**train_job(), "spec": {"runtimeRef": {"name": "deepspeed", "apiGroup": "x.io"}}}, Runtimes(runtime())),
    ],
)
def test_job_with_an_unknown_runtime_is_admitted(job, view):
    decision = decide(job, view=view)

    assert (decision.allowed, decision.skipped) == (True, pipeline.RUNTIME_UNKNOWN)


def test_runtimes_and_jobs_without_mpi_are_skipped():
    base = runtime()
    base["spec"]["mlPolicy"] = {"numNodes": 300, "torch": {}}

    assert decide(train_job(numNodes=300), base).skipped == pipeline.NOT_OF_MPI
    assert decide(base).skipped == pipeline.NOT_OF_MPI


@pytest.mark.parametrize(
    "changes",
    [{"kind": "OptimizationJob"}, {"version": "trainer.kubeflow.org/v1"}, {"version": "kubeflow.org/v1alpha1"}],
)
def test_other_kinds_and_versions_are_skipped(changes):
    assert decide(train_job(numNodes=300), runtime(), **changes).skipped == pipeline.NOT_OURS


def test_update_is_rejected_only_for_new_violations():
    base = runtime()
    old = train_job(numNodes=300)
    labelled = copy.deepcopy(old)
    labelled["metadata"]["labels"] = {"a": "b"}
    worse = copy.deepcopy(labelled)
    worse["spec"]["runtimePatches"] = [patch("node", {"volumes": [{"name": "no_name", "emptyDir": {}}]})]

    assert decide(labelled, base, old=old).allowed
    assert [rule for *_, rule in refused(decide(worse, base, old=old))] == ["pod-template"]


def test_update_is_rejected_only_for_new_faults_of_the_job_set():
    base = runtime(runLauncherAsNode=False)

    assert decide(train_job(numNodes=-1), base, old=train_job(numNodes=-1, image="x")).allowed
    rejected = refused(decide(train_job(numNodes=-1), base, old=train_job(numNodes=2)))
    assert [rule for *_, rule in rejected] == ["upstream-contract"]


def test_update_with_a_name_that_was_too_long_before_is_admitted():
    base = runtime()
    old = train_job()
    old["metadata"]["name"] = "x" * 50
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"a": "b"}

    assert [rule for *_, rule in refused(decide(old, base))] == ["name-length"]
    assert decide(new, base, old=old).allowed


def decide_document(document, base):
    """The verdict on a TrainJob with these bytes."""
    request = msgspec.structs.replace(review(train_job()), object=msgspec.Raw(document))
    return pipeline.decide(request, policies=load_policies(None), view=Runtimes(base), today=TODAY)


def test_object_that_cannot_be_decoded_is_skipped():
    decision = decide_document(b"{", runtime())

    assert (decision.allowed, decision.skipped) == (True, pipeline.UNREADABLE)


def complete():
    """A runtime and a job with values in many fields."""
    base = runtime()
    pod = pods(base, NODE)
    pod["volumes"] = [{"name": "data", "emptyDir": {}}]
    pod["containers"][0] |= {"env": [{"name": "A", "value": "b"}], "resources": {"limits": {"cpu": 1}}}
    job = train_job(
        numNodes=2,
        env=[{"name": "A"}],
        resourcesPerNode={"limits": {"cpu": 1}},
        patches=[patch("node", {"nodeSelector": {"a": "b"}, "volumes": [{"name": "more"}]})],
    )
    return {"runtime": base["spec"], "job": job["spec"], "metadata": job["metadata"]}


@pytest.mark.parametrize("broken", [None, 7, "x", [], {"a": 1}, [7]], ids=repr)
def test_value_of_any_type_in_any_field_gets_a_decision(broken):
    for *parents, last in paths(complete()):
        fields = complete()
        place = fields
        for key in parents:
            place = place[key]
        place[last] = broken
        base = {**runtime(), "spec": fields["runtime"]}
        job = {**train_job(), "spec": fields["job"], "metadata": fields["metadata"]}
        decide(base)
        with suppress(msgspec.DecodeError):  # the runtime cannot be cached
            decide_document(json.dumps(job).encode(), base)


def test_exemptions_by_the_policy_and_by_annotation_are_applied():
    policy = "exemptions: [{rules: [worker-count], users: [ann], reason: OPS-1}]"
    annotated = train_job(numNodes=300)
    annotated["metadata"]["annotations"] = {
        "training.openshift.io/exempt": "worker-count",
        "training.openshift.io/exempt-reason": "a test",
    }

    exempted = decide(train_job(numNodes=300), runtime(), policy=policy)
    assert exempted.allowed
    ((finding, reason),) = exempted.exempted
    assert (finding.violation.path, reason) == ("spec.trainer.numNodes", "OPS-1")
    assert decide(annotated, runtime()).requested == ["worker-count"]
    assert decide(annotated, runtime(), granted={"worker-count": True}).allowed


def test_custom_rules_and_required_injections_do_not_apply_to_train_jobs():
    policy = """
injections: {labels: {required: deny, job: {team: a}}}
rules: {custom: [{id: never, expression: "false", message: "no"}]}
"""
    assert decide(train_job(), runtime(), policy=policy).allowed


@pytest.mark.parametrize("mode", ["warn", "audit"])
def test_lenient_mode_of_the_policy_weakens_the_action(mode):
    decision = decide(train_job(numNodes=300), runtime(), policy=f"mode: {mode}")

    assert decision.allowed
    assert len(decision.warned if mode == "warn" else decision.audited) == 1


NOT_APPLIED = {
    "api-access": "the fix is an injection, and nothing is injected into TrainJobs",
    "clean-pod-policy": "JobSet decides which pods are deleted",
    "created-by": "nothing is injected into TrainJobs, so the annotation has no meaning",
    "gang": "the runtime has podGroupPolicy instead of schedulingPolicy",
    "host-network": "the runtime sets the port of sshd",
    "network-policy": "only MPIJobs get NetworkPolicies",
    "retention": "the runtime sets the time, and JobSet runs no job twice",
    "update-safety": "the API server rejects these changes",
    "volcano-queue": "the runtime sets the queue in its podGroupPolicy",
}


def test_every_rule_applies_or_is_left_out_with_a_reason():
    builtin = {rule_id for rule_id, rule in rules.REGISTRY.items() if not rule.plugin}

    missing = builtin - (selection.OF_JOBS | NOT_APPLIED.keys())
    assert not missing, f"add to OF_JOBS in parts/trainer/selection.py or to NOT_APPLIED here: {sorted(missing)}"
    assert not selection.OF_JOBS & NOT_APPLIED.keys()
    assert selection.INSTEAD.keys() | selection.BESIDES.keys() <= selection.OF_JOBS
