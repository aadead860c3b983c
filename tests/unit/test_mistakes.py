"""Frequent mistakes of data scientists: the job is rejected, and admitted after the user applies the message's fix."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from tests.support.bad_jobs.written import change
from tests.support.corpus import CORPUS
from tests.support.jobs import REMOVE, changed
from tests.support.limit_ranges import limit_range
from webhook.admission.messages import Finding
from webhook.api import crd_schema
from webhook.api.review import UserInfo
from webhook.cli import files, job_check
from webhook.cli.files import Manifest
from webhook.cli.job_world import JobWorld
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import load_policies
from webhook.rules import REGISTRY

POD: Final = "Worker.template.spec"
QUEUE: Final = "metadata.labels.kueue\\.x-k8s\\.io/queue-name"
NO_FIELD: Final = "is not a field of an MPIJob (mpi-operator v0.8.0): kubectl rejects it, other clients drop it."
ALICE: Final = UserInfo("alice")
CREATED_BY: Final = "metadata.annotations.training\\.openshift\\.io/created-by"
TIMEOUT: Final = "metadata.annotations.training\\.openshift\\.io/timeout"


@dataclass(frozen=True)
class Mistake:
    made: Mapping[str, Any]
    """The change that makes a valid job wrong."""
    said: str
    """A part of the expected message."""
    done: Mapping[str, Any]
    """The change that the message suggests."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the rule that reports the mistake."""
    namespace: str = "team-a"


WRONG_RIGHT: Final = re.compile("«(.*?)→(.*?)»")


def mistake(text: str, said: str, **about: Any) -> Mistake:
    """A mistake in one field. `text` sets the field. «wrong→right» in `text` marks the mistake and its fix."""
    (path, wrong), (_, right) = (change(WRONG_RIGHT.sub(group, text)) for group in (r"\1", r"\2"))
    return Mistake({path: wrong}, said, {path: right}, **about)


MISTAKES: Final[Mapping[str, Mistake]] = {
    "backofLimit": Mistake(
        {"spec.runPolicy.backofLimit": 3},
        f"spec.runPolicy.backofLimit: {NO_FIELD} Rename it to backoffLimit.",
        {"spec.runPolicy.backofLimit": REMOVE, "spec.runPolicy.backoffLimit": 3},
    ),
    "a secret in envFrom with the key of env": mistake(
        "first.envFrom: [{«secretKeyRef→secretRef»: {name: s}}]",
        f"envFrom[0].secretKeyRef: {NO_FIELD} Rename it to secretRef.",
    ),
    "an option and its value as one word": mistake(
        "run: [mpirun, «-np 8→-np, '8'», train]",
        'containers[0].command: "-np 8" is one word, not an option. Split it: "-np", "8".',
    ),
    "a number in env": Mistake(
        {"Worker.template.spec.containers.0.env": [{"name": "N", "value": 1}]},
        'env[0].value: must be text, not 1. Write "1".',
        {"Worker.template.spec.containers.0.env": [{"name": "N", "value": "1"}]},
    ),
    "no launcher": Mistake(
        {"Launcher": REMOVE},
        "spec.mpiReplicaSpecs[Launcher]: is missing. Add it: it runs mpirun.",
        {"Launcher": changed({})["spec"]["mpiReplicaSpecs"]["Launcher"]},
    ),
    "half a GPU": mistake(
        "first.resources: {limits: {nvidia.com/gpu: «500m→1»}}", "500m is not whole, and GPUs are not divided."
    ),
    "a timeout in words": Mistake(
        {"metadata.annotations": {"training.openshift.io/timeout": "3 days"}},
        '"3 days" is not a duration',
        {TIMEOUT: "3d"},
    ),
    "a service account with a space": mistake(
        "pod.serviceAccountName: «My SA→default»",
        'spec.serviceAccountName: "My SA" contains "M"; allowed are lower case letters, digits, "-" and "."',
    ),
    "a priority as a number": mistake(
        "pod.priority: «1000→»",
        "spec.priority: is 1000, but only 0 is valid (no PriorityClass: the pods are rejected).",
    ),
    "an owner without its uid": mistake(
        "metadata.ownerReferences: «[{apiVersion: v1, kind: Pod, name: x}]→»",
        "metadata.ownerReferences[0].uid: is missing. Add it.",
    ),
    "a finalizer with a space": mistake(
        "metadata.finalizers: [«my wait→example.com/my-wait»]", 'metadata.finalizers[0]: "my wait" contains " "'
    ),
    "no name": mistake("metadata.name: «→bert»", "metadata.name: is missing. Add it, such as name: main."),
    "pvc": mistake(
        "pod.volumes: [{name: d, «pvc→persistentVolumeClaim»: {claimName: c}}]",
        f"volumes[0].pvc: {NO_FIELD} Rename it to persistentVolumeClaim.",
    ),
}


RULES: Final[Mapping[str, Mistake]] = {
    "accelerator-available": Mistake(
        {f"{POD}.nodeSelector": {"team": "reserch"}}, "Use research", {f"{POD}.nodeSelector.team": "research"}
    ),
    "api-access": mistake(
        "pod.automountServiceAccountToken: «true→false»", "gets an API token. Set automountServiceAccountToken: false."
    ),
    "clean-pod-policy": mistake(
        "spec.runPolicy.cleanPodPolicy: «None→Running»",
        "Use one of Running, All.",
        settings={"allowed": ["Running", "All"]},
    ),
    "command-line": mistake("run: [mpirun, -np, «'-1'→'8'», a]", "Set -np to 8."),
    "compliance": Mistake(
        {},
        'metadata.annotations[audit]: is missing, and regulated data needs it. Set it to "research".',
        {"metadata.annotations.audit": "research"},
        settings={"markers": {}, "jobAnnotations": {"audit": "research"}},
    ),
    "created-by": Mistake(
        {CREATED_BY: "bob"}, 'is "bob", but "alice" creates the job. Remove it', {CREATED_BY: REMOVE}
    ),
    "ever-fits": Mistake(
        {"Worker.replicas": 60, QUEUE: "training"}, "Use 16 workers.", {"Worker.replicas": 16}, namespace="queued"
    ),
    "gang": Mistake(
        {"spec.runPolicy.schedulingPolicy": {"minAvailable": 500}},
        "500 pods, but the job has 5. Set it to 5 or fewer.",
        {"spec.runPolicy.schedulingPolicy.minAvailable": 5},
    ),
    "gpus": mistake(
        "first.resources: {limits: {nvidia.com/gpu: «8→4»}}", "Request 4 or fewer for each", settings={"max": 4}
    ),
    "images": mistake(
        "first.image: «→'registry.example.com/team/app:1.0'»",
        "is missing. Write its name, as <registry>/<name>:<tag>.",
    ),
    "job-timeout": mistake("spec.runPolicy.activeDeadlineSeconds: «10000000→604800»", "Set it to 604800 or less"),
    "limit-range": mistake("first.resources.limits.cpu: «'80'→'64'»", "Set limits[cpu] to 64.", namespace="limits"),
    "local-queue": mistake("queue: «trainnig→training»", "Use training", namespace="queued"),
    "mpi-implementation": mistake(
        "spec.mpiImplementation: «Intel→OpenMPI»",
        "Use one of OpenMPI, MPICH.",
        settings={"allowed": ["OpenMPI", "MPICH"]},
    ),
    "name-length": mistake(f"metadata.name: {'x' * 53}«x→»", "Use a name of at most 53 characters."),
    "network-policy": mistake("posture: «isolated→»", "may not be chosen: it is none. Remove it."),
    "pod-security": mistake("pod.hostNetwork: «true→false»", "hostNetwork", namespace="restricted"),
    "pod-template": mistake(
        "first.securityContext: «{procMount: Unmasked}→»", "Unmasked needs hostUsers: false in the pod. Remove it."
    ),
    "priority": mistake("pod.priorityClassName: «hihg→»", 'PriorityClass "hihg" does not exist'),
    "rank-environment": mistake(
        "first.env: «[{name: NCCL_IB_HCA, value: mlx5}]→»", "Set it on the launcher, with -x for mpirun."
    ),
    "references": mistake("pod.serviceAccountName: «reportr→»", "reportr"),
    "resource-quota": mistake("Worker.replicas: «60→8»", "Reduce worker count to 8 (16 GPUs total)", namespace="quota"),
    "retention": mistake("spec.runPolicy.ttlSecondsAfterFinished: «5→30»", "Set it to 30 or more."),
    "scc": mistake("first.securityContext.runAsUser: «0→»", "Use an image with its own user:", namespace="openshift"),
    "slots": mistake("spec.slotsPerWorker: «0→1»", "Set slotsPerWorker to 1 or more."),
    "host-network": Mistake(
        {"Worker.template.spec.hostNetwork": True},
        "Set another Port in the image's sshd_config and ssh_config, or remove hostNetwork.",
        {"Worker.template.spec.containers.0.command": ["/usr/sbin/sshd", "-De", "-p", "2222"]},
        {"action": "deny"},
    ),
    "idle-workers": Mistake(
        {"Worker.template.spec.containers.0.command": ["sleep", "infinity"]},
        "Remove it, or run /usr/sbin/sshd -De.",
        {"Worker.template.spec.containers.0.command": ["/usr/sbin/sshd", "-De"]},
        {"action": "deny"},
    ),
    "ssh-paths": Mistake(
        {f"{role}.template.spec.securityContext": {"runAsUser": 1000} for role in ("Launcher", "Worker")},
        "Set it to /home/mpiuser/.ssh, or to .ssh in the home of the user.",
        {"spec.sshAuthMountPath": "/home/mpiuser/.ssh"},
    ),
    "tier": mistake(
        "Worker.replicas: «5→4»", "Set replicas to 4 or fewer", settings={"name": "basic", "maxWorkers": 4}
    ),
    "upstream-contract": mistake("spec.slotsPerWorker: «-1→1»", "Use 1 or more."),
    "volcano-queue": Mistake(
        {"spec.runPolicy.schedulingPolicy": {"queue": "reserch"}},
        'queue "reserch" does not exist. Use research.',
        {"spec.runPolicy.schedulingPolicy.queue": "research"},
        settings={"gangScheduling": True, "hierarchy": True},
    ),
    "worker-count": mistake(
        "Worker.replicas: «150→100»", "150 workers, at most 100 allowed. Set replicas to 100 or fewer."
    ),
}
"""A mistake for each rule. The policy of the test switches all other rules off."""
NO_SINGLE_FIX: Final = {
    "child-names": "the user chooses another name",
    "job-size": "the user decides what to leave out",
    "update-safety": "the user needs two updates: suspend the job, then change it",
}


def test_each_rule_has_a_mistake_that_its_message_fixes() -> None:
    wanted = REGISTRY.keys() - NO_SINGLE_FIX.keys()
    assert RULES.keys() == wanted, f"RULES of tests/unit/test_mistakes.py: {sorted(RULES.keys() ^ wanted)}"


@pytest.mark.parametrize("name", MISTAKES)
def test_job_is_admitted_after_one_fix(name: str, cluster: Snapshot) -> None:
    check(MISTAKES[name], JobWorld(cluster, schema=crd_schema.packaged(), instead=load_policies(None)))


@pytest.mark.parametrize("rule", RULES)
def test_job_is_admitted_after_one_fix_for_each_rule(rule: str, cluster: Snapshot) -> None:
    actions: dict[str, dict[str, Any]] = {each: {"action": "off"} for each in REGISTRY}
    actions[rule] = {"action": "deny", **RULES[rule].settings}
    policy = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy", "rules": actions}
    check(RULES[rule], JobWorld(cluster, schema=None, instead=load_policies(json.dumps(policy)), user=ALICE))


@pytest.fixture(scope="module")
def cluster() -> Snapshot:
    """The cluster of the corpus, and a namespace with a LimitRange."""
    found, errors = files.load([str(CORPUS / "cluster.yaml")])
    assert not errors
    limits = limit_range("limits", {"type": "Container", "max": {"cpu": "64"}}, namespace="limits")
    return Snapshot([*(each.document for each in found), limits])


def check(mistake: Mistake, world: JobWorld) -> None:
    job = changed({"metadata.namespace": mistake.namespace, **mistake.made})
    denied, warned = findings(job, world)
    assert any(mistake.said in each for each in (*denied, *warned)), (denied, warned)
    denied, warned = findings(changed(dict(mistake.done), job), world)
    assert denied == []
    assert not any(mistake.said in each for each in warned)


def findings(job: dict[str, Any], world: JobWorld) -> tuple[list[str], list[str]]:
    validation = job_check.check(Manifest("job.yaml", job), world, namespace="default").validation
    return texts(validation.denied), texts(validation.warned)


def texts(found: Sequence[Finding]) -> list[str]:
    violations = [(each.rule, each.violation) for each in found]
    return [f"[{rule}] {each.path}: {each.message}. {each.fix}" for rule, each in violations]
