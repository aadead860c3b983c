"""Mistakes that data scientists make: the job is rejected, the user does what the message says, the job is admitted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from tests.support.corpus import CORPUS
from tests.support.jobs import REMOVE, changed
from tests.support.limit_ranges import limit_range
from webhook.admission.messages import Finding
from webhook.api import crd_schema
from webhook.cli import files, job_check
from webhook.cli.files import Manifest
from webhook.cli.job_world import JobWorld
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import load_policies
from webhook.rules import REGISTRY

POD: Final = "Worker.template.spec"
FIRST: Final = f"{POD}.containers.0"
RUN: Final = "Launcher.template.spec.containers.0.command"
GPU: Final = "nvidia.com/gpu"
QUEUE: Final = "metadata.labels.kueue\\.x-k8s\\.io/queue-name"
POSTURE: Final = "metadata.annotations.training\\.openshift\\.io/network-policy"
NO_FIELD: Final = "is no field of an MPIJob (mpi-operator v0.8.0): kubectl refuses it, other clients lose it."
EMPTY: Final = {"name": "d", "emptyDir": {}}
REF: Final = {"fieldRef": {"fieldPath": "metadata.name"}}
WORKER: Final = changed({})["spec"]["mpiReplicaSpecs"]["Worker"]
TIMEOUT: Final = "metadata.annotations.training\\.openshift\\.io/timeout"


@dataclass(frozen=True)
class Mistake:
    made: Mapping[str, Any]
    """What is wrong in a job that is right otherwise."""
    said: str
    """A part of the message."""
    done: Mapping[str, Any]
    """What the message says to do."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the rule that rejects the job."""
    namespace: str = "team-a"


def limits(**more: Any) -> dict[str, Any]:
    return {"limits": {GPU: 2, **more}}


MISTAKES: Final[Mapping[str, Mistake]] = {
    "backofLimit": Mistake(
        {"spec.runPolicy.backofLimit": 3},
        f"spec.runPolicy.backofLimit: {NO_FIELD} Write backoffLimit.",
        {"spec.runPolicy.backofLimit": REMOVE, "spec.runPolicy.backoffLimit": 3},
    ),
    "slotPerWorker": Mistake(
        {"spec.slotsPerWorker": REMOVE, "spec.slotPerWorker": 2},
        f"spec.slotPerWorker: {NO_FIELD} Write slotsPerWorker.",
        {"spec.slotPerWorker": REMOVE, "spec.slotsPerWorker": 2},
    ),
    "replica": Mistake(
        {"Worker.replicas": REMOVE, "Worker.replica": 4},
        f"spec.mpiReplicaSpecs[Worker].replica: {NO_FIELD} Write replicas.",
        {"Worker.replica": REMOVE, "Worker.replicas": 4},
    ),
    "a field where v1 had it": Mistake(
        {"spec.runPolicy": {}, "spec.cleanPodPolicy": "Running"},
        f"spec.cleanPodPolicy: {NO_FIELD} Move it to spec.runPolicy.cleanPodPolicy.",
        {"spec.cleanPodPolicy": REMOVE, "spec.runPolicy.cleanPodPolicy": "Running"},
    ),
    "a secret in envFrom as in env": Mistake(
        {f"{FIRST}.envFrom": [{"secretKeyRef": {"name": "s"}}]},
        f"envFrom[0].secretKeyRef: {NO_FIELD} Write secretRef.",
        {f"{FIRST}.envFrom": [{"secretRef": {"name": "s"}}]},
    ),
    "slots as text": Mistake(
        {"spec.slotsPerWorker": "2"},
        "spec.slotsPerWorker: must be a whole number, not text. Write 2.",
        {"spec.slotsPerWorker": 2},
    ),
    "a command as one text": Mistake(
        {f"{FIRST}.command": "python train.py"},
        "containers[0].command: must be a list, not text. Write a list",
        {f"{FIRST}.command": ["python", "train.py"]},
    ),
    "mpirun with fewer ranks than none": Mistake(
        {RUN: ["mpirun", "-np", "-1", "train"]},
        "containers[0].command: -np -1 is no number of ranks (mpirun refuses it). Set -np to 8.",
        {RUN: ["mpirun", "-np", "8", "train"]},
    ),
    "an option and its value as one word": Mistake(
        {RUN: ["mpirun", "-np 8", "train"]},
        'containers[0].command: "-np 8" is one word, and no option. Split it: "-np", "8".',
        {RUN: ["mpirun", "-np", "8", "train"]},
    ),
    "a number in env": Mistake(
        {f"{FIRST}.env": [{"name": "N", "value": 1}]},
        'env[0].value: must be text, not a whole number. Write "1".',
        {f"{FIRST}.env": [{"name": "N", "value": "1"}]},
    ),
    "the same mount twice": Mistake(
        {f"{POD}.volumes": [EMPTY], f"{FIRST}.volumeMounts": [{"name": "d", "mountPath": "/d"}] * 2},
        'volumeMounts[1].mountPath: there is another mount at "/d". Mount it elsewhere, or keep one of the two.',
        {f"{FIRST}.volumeMounts": [{"name": "d", "mountPath": "/d"}]},
    ),
    "two containers of one name": Mistake(
        {f"{POD}.containers": [{"name": "a", "image": "a:1", "resources": limits()}, {"name": "a", "image": "a:1"}]},
        'containers[1].name: there is another container "a". Rename one of the two.',
        {f"{POD}.containers.1.name": "b"},
    ),
    "limits: {gpu: 2}": Mistake(
        {f"{FIRST}.resources": {"limits": {"gpu": 2}}},
        'resources.limits[gpu]: there is no resource "gpu". Write nvidia.com/gpu',
        {f"{FIRST}.resources": limits()},
    ),
    "a request above its limit": Mistake(
        {f"{FIRST}.resources": {**limits(cpu=4), "requests": {"cpu": 8}}},
        "resources.requests[cpu]: 8 is above the limit of 4. Set it to 4 or less, or raise the limit.",
        {f"{FIRST}.resources": {**limits(cpu=4), "requests": {"cpu": 4}}},
    ),
    "a mount without its volume": Mistake(
        {f"{FIRST}.volumeMounts": [{"name": "data", "mountPath": "/data"}]},
        'volumeMounts[0].name: there is no volume "data". Add the volume under volumes, or correct the name.',
        {f"{POD}.volumes": [{"name": "data", "emptyDir": {}}]},
    ),
    "imagePullPolicy: always": Mistake(
        {f"{FIRST}.imagePullPolicy": "always"},
        'containers[0].imagePullPolicy: "always" is not supported. Write Always.',
        {f"{FIRST}.imagePullPolicy": "Always"},
    ),
    "container my_worker": Mistake(
        {f"{FIRST}.name": "my_worker"},
        'containers[0].name: "my_worker" contains "_"; allowed are lower case letters, digits and "-".',
        {f"{FIRST}.name": "my-worker"},
    ),
    "operator: exists": Mistake(
        {f"{POD}.tolerations": [{"key": "a", "operator": "exists"}]},
        'tolerations[0].operator: "exists" is not supported. Write Exists.',
        {f"{POD}.tolerations": [{"key": "a", "operator": "Exists"}]},
    ),
    "env with value and valueFrom": Mistake(
        {f"{FIRST}.env": [{"name": "N", "value": "1", "valueFrom": REF}]},
        "env[0].valueFrom: does not go with value. Remove one of the two.",
        {f"{FIRST}.env": [{"name": "N", "value": "1"}]},
    ),
    "a variable with a space": Mistake(
        {f"{FIRST}.env": [{"name": "A=B", "value": "1"}]},
        'env[0].name: "A=B" may have printable ASCII characters only, and no "=". Rename the variable.',
        {f"{FIRST}.env": [{"name": "A", "value": "1"}]},
    ),
    "a volume of two kinds": Mistake(
        {f"{POD}.volumes": [{**EMPTY, "hostPath": {"path": "/d"}}]},
        "volumes[0]: has both emptyDir and hostPath, and a volume has one source.",
        {f"{POD}.volumes": [EMPTY]},
    ),
    "a probe that asks nothing": Mistake(
        {f"{FIRST}.livenessProbe": {"periodSeconds": 5}},
        "livenessProbe: does nothing. Set one of exec, httpGet, tcpSocket or grpc.",
        {f"{FIRST}.livenessProbe": {"tcpSocket": {"port": 22}}},
    ),
    "a port of 70000": Mistake(
        {f"{FIRST}.ports": [{"containerPort": 70000}]},
        "ports[0].containerPort: is 70000, at most 65535 is taken.",
        {f"{FIRST}.ports": [{"containerPort": 7000}]},
    ),
    "16GB": Mistake(
        {f"{FIRST}.resources": limits(memory="16GB")},
        'resources.limits[memory]: "16GB" is not a quantity: there is no unit "GB", write "Gi"',
        {f"{FIRST}.resources": limits(memory="16Gi")},
    ),
    "resnet_50": Mistake(
        {"metadata.name": "resnet_50"},
        'that contains "_"; allowed are lower case letters, digits',
        {"metadata.name": "resnet-50"},
    ),
    "a worker in lower case": Mistake(
        {"Worker": REMOVE, "spec.mpiReplicaSpecs.worker": WORKER},
        'spec.mpiReplicaSpecs[worker]: the operator does not know "worker" and ignores it. Rename it to Worker.',
        {"spec.mpiReplicaSpecs.worker": REMOVE, "Worker": WORKER},
    ),
    "no launcher": Mistake(
        {"Launcher": REMOVE},
        "spec.mpiReplicaSpecs[Launcher]: is missing. Add the Launcher: it runs mpirun.",
        {"Launcher": changed({})["spec"]["mpiReplicaSpecs"]["Launcher"]},
    ),
    "two launchers": Mistake(
        {"Launcher.replicas": 2},
        "replicas: is 2, there is always one launcher. Set replicas to 1.",
        {"Launcher.replicas": 1},
    ),
    "no workers": Mistake({"Worker.replicas": 0}, "replicas: is 0 (not set counts as 0)", {"Worker.replicas": 2}),
    "a single worker": Mistake(
        {"Worker.replicas": 1}, "1 worker, at least 2 required. Set replicas to 2 or more.", {"Worker.replicas": 2}
    ),
    "-np 8 with one worker": Mistake(
        {RUN: ["mpirun", "-np", "8", "train"], "Worker.replicas": 1},
        "1 worker, at least 2 required.",
        {"Worker.replicas": 4},
    ),
    "16 GPUs on nodes with 8": Mistake(
        {f"{FIRST}.resources": {"limits": {GPU: 16}}, "spec.slotsPerWorker": 16},
        "at most 8 allowed",
        {f"{FIRST}.resources": {"limits": {GPU: 8}}, "spec.slotsPerWorker": 8},
    ),
    "half a GPU": Mistake(
        {f"{FIRST}.resources": {"limits": {GPU: "500m"}}},
        "500m is not whole, and GPUs are not divided.",
        {f"{FIRST}.resources": {"limits": {GPU: 1}}},
    ),
    "GPUs in the request alone": Mistake(
        {f"{FIRST}.resources": {"requests": {GPU: 2}}},
        "is missing, but the request is 2. Set it to 2 too.",
        {f"{FIRST}.resources": {"requests": {GPU: 2}, "limits": {GPU: 2}}},
    ),
    "cleanPodPolicy: all": Mistake(
        {"spec.runPolicy.cleanPodPolicy": "all"},
        '"all" is not supported. Use one of All, None',
        {"spec.runPolicy.cleanPodPolicy": "All"},
    ),
    "mpiImplementation: openmpi": Mistake(
        {"spec.mpiImplementation": "openmpi"},
        '"openmpi" is not supported. Use one of',
        {"spec.mpiImplementation": "OpenMPI"},
    ),
    "restartPolicy: Always": Mistake(
        {"Worker.restartPolicy": "Always"},
        '"Always" is not supported. Use one of Never',
        {"Worker.restartPolicy": "Never"},
    ),
    "an old API version": Mistake(
        {"apiVersion": "kubeflow.org/v1"},
        "Run `mpijob-webhook convert FILE`",
        {"apiVersion": "kubeflow.org/v2beta1"},
    ),
    "a timeout in words": Mistake(
        {"metadata.annotations": {"training.openshift.io/timeout": "3 days"}},
        '"3 days" is not a duration',
        {TIMEOUT: "3d"},
    ),
    "a priority class that is not there": Mistake(
        {f"{POD}.priorityClassName": "hihg"},
        'PriorityClass "hihg" does not exist',
        {f"{POD}.priorityClassName": REMOVE},
    ),
    "a service account with a space": Mistake(
        {f"{POD}.serviceAccountName": "My SA"},
        'spec.serviceAccountName: "My SA" contains "M"; allowed are lower case letters, digits, "-" and "."',
        {f"{POD}.serviceAccountName": "default"},
    ),
    "a priority as a number": Mistake(
        {f"{POD}.priority": 1000},
        "spec.priority: is 1000, but only 0 is taken (no PriorityClass: the pods are refused).",
        {f"{POD}.priority": REMOVE},
    ),
    "a label with a space": Mistake(
        {"metadata.labels": {"project": "llm training"}},
        'metadata.labels[project]: "llm training" contains " "; allowed are letters, digits, "-", "_" and ".".',
        {"metadata.labels": {"project": "llm-training"}},
    ),
    "the key of an annotation with a space": Mistake(
        {"metadata.annotations": {"my note": "x"}},
        'metadata.annotations[my note]: its key contains " "',
        {"metadata.annotations": {"my-note": "x"}},
    ),
    "an owner without its uid": Mistake(
        {"metadata.ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
        "metadata.ownerReferences[0].uid: is missing. Add it.",
        {"metadata.ownerReferences": REMOVE},
    ),
    "a finalizer with a space": Mistake(
        {"metadata.finalizers": ["my wait"]},
        'metadata.finalizers[0]: "my wait" contains " "',
        {"metadata.finalizers": ["example.com/my-wait"]},
    ),
    "a namespace in capitals": Mistake(
        {"metadata.namespace": "Team_A"},
        'metadata.namespace: "Team_A" contains "T"',
        {"metadata.namespace": "team-a"},
    ),
    "a name that ends in a dash": Mistake(
        {"metadata.name": "bert-"},
        'metadata.name: "bert-" must start and end with a lower case letter or a digit',
        {"metadata.name": "bert"},
    ),
    "a name of 70 characters": Mistake(
        {"metadata.name": "b" * 70}, "and that has 79 characters, at most 63", {"metadata.name": "b" * 50}
    ),
    "no name": Mistake(
        {"metadata.name": REMOVE}, "metadata.name: is missing. Name the job.", {"metadata.name": "bert"}
    ),
    "a mount of one letter without its volume": Mistake(
        {f"{FIRST}.volumeMounts": [{"name": "d", "mountPath": "/d"}]},
        'there is no volume "d". Add the volume under volumes, or correct the name.',
        {f"{POD}.volumes": [EMPTY]},
    ),
    "volumes in the container": Mistake(
        {f"{FIRST}.volumes": [EMPTY], f"{FIRST}.volumeMounts": [{"name": "d", "mountPath": "/d"}]},
        f"containers[0].volumes: {NO_FIELD} Move it to spec.mpiReplicaSpecs[Worker].template.spec.volumes.",
        {f"{FIRST}.volumes": REMOVE, f"{POD}.volumes": [EMPTY]},
    ),
    "GPUs beside limits": Mistake(
        {f"{FIRST}.resources": {GPU: 2}},
        f"containers[0].resources.{GPU}: {NO_FIELD} Write it below limits.",
        {f"{FIRST}.resources": limits()},
    ),
    "containers beside spec": Mistake(
        {"Worker.template": {"containers": WORKER["template"]["spec"]["containers"]}},
        f"template.containers: {NO_FIELD} Write it below spec.",
        {"Worker.template": WORKER["template"]},
    ),
    "the name of a secret in a volume": Mistake(
        {f"{POD}.volumes": [{"name": "d", "secret": {"name": "s"}}]},
        f"volumes[0].secret.name: {NO_FIELD} Write secretName.",
        {f"{POD}.volumes": [{"name": "d", "secret": {"secretName": "s"}}]},
    ),
    "pvc": Mistake(
        {f"{POD}.volumes": [{"name": "d", "pvc": {"claimName": "c"}}]},
        f"volumes[0].pvc: {NO_FIELD} Write persistentVolumeClaim.",
        {f"{POD}.volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]},
    ),
    "the name of a claim": Mistake(
        {f"{POD}.volumes": [{"name": "d", "persistentVolumeClaim": {"name": "c"}}]},
        f"volumes[0].persistentVolumeClaim.name: {NO_FIELD} Write claimName.",
        {f"{POD}.volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]},
    ),
    "a pull secret as text": Mistake(
        {f"{POD}.imagePullSecrets": ["regcred"]},
        'imagePullSecrets[0]: must be a mapping, not text. Write {"name": "regcred"}.',
        {f"{POD}.imagePullSecrets": [{"name": "regcred"}]},
    ),
    "env as a mapping": Mistake(
        {f"{FIRST}.env": {"A": "x"}},
        'containers[0].env: must be a list, not a mapping. Write [{"name": "A", "value": "x"}].',
        {f"{FIRST}.env": [{"name": "A", "value": "x"}]},
    ),
    "a toleration that is no list": Mistake(
        {f"{POD}.tolerations": {"key": "a", "operator": "Exists"}},
        'tolerations: must be a list, not a mapping. Write [{"key": "a", "operator": "Exists"}].',
        {f"{POD}.tolerations": [{"key": "a", "operator": "Exists"}]},
    ),
}


RULES: Final[Mapping[str, Mistake]] = {
    "accelerator-available": Mistake(
        {f"{POD}.nodeSelector": {"team": "reserch"}}, "Use research", {f"{POD}.nodeSelector.team": "research"}
    ),
    "api-access": Mistake(
        {f"{POD}.automountServiceAccountToken": True},
        "gets an API token. Set automountServiceAccountToken: false.",
        {f"{POD}.automountServiceAccountToken": False},
    ),
    "clean-pod-policy": Mistake(
        {"spec.runPolicy.cleanPodPolicy": "None"},
        "Use one of Running, All.",
        {"spec.runPolicy.cleanPodPolicy": "Running"},
        settings={"allowed": ["Running", "All"]},
    ),
    "command-line": Mistake({RUN: ["mpirun", "-np", "-1", "a"]}, "Set -np to 8.", {RUN: ["mpirun", "-np", "8", "a"]}),
    "compliance": Mistake(
        {},
        'metadata.annotations[audit]: is missing, and regulated data needs it. Set it to "research".',
        {"metadata.annotations.audit": "research"},
        settings={"markers": {}, "jobAnnotations": {"audit": "research"}},
    ),
    "ever-fits": Mistake(
        {"Worker.replicas": 60, QUEUE: "training"}, "Use 16 workers.", {"Worker.replicas": 16}, namespace="queued"
    ),
    "gang": Mistake(
        {"spec.runPolicy.schedulingPolicy": {"minAvailable": 500}},
        "500 pods, but the job has 5. Set it to 5 or fewer.",
        {"spec.runPolicy.schedulingPolicy.minAvailable": 5},
    ),
    "gpus": Mistake(
        {f"{FIRST}.resources": {"limits": {GPU: 8}}},
        "Ask for 4 or fewer for each",
        {f"{FIRST}.resources": {"limits": {GPU: 4}}},
        settings={"max": 4},
    ),
    "images": Mistake(
        {f"{FIRST}.image": REMOVE},
        "is missing. Name the image, such as registry.example.com/team/app:1.0.",
        {f"{FIRST}.image": "registry.example.com/team/app:1.0"},
    ),
    "job-timeout": Mistake(
        {"spec.runPolicy.activeDeadlineSeconds": 10**7},
        "Set it to 604800 or less",
        {"spec.runPolicy.activeDeadlineSeconds": 604800},
    ),
    "limit-range": Mistake(
        {f"{FIRST}.resources.limits.cpu": "80"},
        "Set limits[cpu] to 64.",
        {f"{FIRST}.resources.limits.cpu": "64"},
        namespace="limits",
    ),
    "local-queue": Mistake({QUEUE: "trainnig"}, "Use training", {QUEUE: "training"}, namespace="queued"),
    "mpi-implementation": Mistake(
        {"spec.mpiImplementation": "Intel"},
        "Use one of OpenMPI, MPICH.",
        {"spec.mpiImplementation": "OpenMPI"},
        settings={"allowed": ["OpenMPI", "MPICH"]},
    ),
    "name-length": Mistake(
        {"metadata.name": "x" * 54}, "Use a name of at most 53 characters.", {"metadata.name": "x" * 53}
    ),
    "network-policy": Mistake({POSTURE: "isolated"}, "may not be chosen: it is none. Remove it.", {POSTURE: REMOVE}),
    "pod-security": Mistake(
        {f"{POD}.hostNetwork": True}, "hostNetwork", {f"{POD}.hostNetwork": False}, namespace="restricted"
    ),
    "pod-template": Mistake(
        {f"{FIRST}.securityContext": {"procMount": "Unmasked"}},
        "Unmasked needs hostUsers: false in the pod. Remove it.",
        {f"{FIRST}.securityContext": REMOVE},
    ),
    "priority": Mistake(
        {f"{POD}.priorityClassName": "hihg"},
        'PriorityClass "hihg" does not exist',
        {f"{POD}.priorityClassName": REMOVE},
    ),
    "rank-environment": Mistake(
        {f"{FIRST}.env": [{"name": "NCCL_IB_HCA", "value": "mlx5"}]},
        "Set it on the launcher, with -x for mpirun.",
        {f"{FIRST}.env": REMOVE},
    ),
    "references": Mistake({f"{POD}.serviceAccountName": "reportr"}, "reportr", {f"{POD}.serviceAccountName": REMOVE}),
    "resource-quota": Mistake(
        {"Worker.replicas": 60}, "Reduce worker count to 8 (16 GPUs total)", {"Worker.replicas": 8}, namespace="quota"
    ),
    "retention": Mistake(
        {"spec.runPolicy.ttlSecondsAfterFinished": 5},
        "Set it to 30 or more.",
        {"spec.runPolicy.ttlSecondsAfterFinished": 30},
    ),
    "slots": Mistake({"spec.slotsPerWorker": 0}, "Set slotsPerWorker to 1 or more.", {"spec.slotsPerWorker": 1}),
    "host-network": Mistake(
        {f"{POD}.hostNetwork": True},
        'Set another port: sshd -p 2222, and plm_rsh_args "-p 2222".',
        {f"{FIRST}.command": ["/usr/sbin/sshd", "-De", "-p", "2222"]},
        {"action": "deny"},
    ),
    "ssh-paths": Mistake(
        {f"{role}.template.spec.securityContext": {"runAsUser": 1000} for role in ("Launcher", "Worker")},
        "Set it to .ssh in the home of the user, as /home/mpiuser/.ssh.",
        {"spec.sshAuthMountPath": "/home/mpiuser/.ssh"},
    ),
    "tier": Mistake(
        {"Worker.replicas": 5},
        "Set replicas to 4 or fewer",
        {"Worker.replicas": 4},
        settings={"name": "basic", "maxWorkers": 4},
    ),
    "upstream-contract": Mistake({"spec.slotsPerWorker": -1}, "Use 1 or more.", {"spec.slotsPerWorker": 1}),
    "volcano-queue": Mistake(
        {"spec.runPolicy.schedulingPolicy": {"queue": "reserch"}},
        'queue "reserch" does not exist. Use research.',
        {"spec.runPolicy.schedulingPolicy.queue": "research"},
        settings={"gangScheduling": True, "hierarchy": True},
    ),
    "worker-count": Mistake(
        {"Worker.replicas": 150},
        "150 workers, at most 100 allowed. Set replicas to 100 or fewer.",
        {"Worker.replicas": 100},
    ),
}
"""One for each rule, in a policy in which that rule alone counts."""
NO_SINGLE_FIX: Final = {
    "child-names": "the user chooses another name",
    "job-size": "the user decides what to leave out",
    "update-safety": "it takes two updates: one suspends the job, the other changes it",
}


def test_each_rule_has_a_mistake_that_its_message_fixes() -> None:
    assert RULES.keys() == REGISTRY.keys() - NO_SINGLE_FIX.keys()


@pytest.mark.parametrize("name", MISTAKES)
def test_one_round_is_enough(name: str, cluster: Snapshot) -> None:
    check(MISTAKES[name], JobWorld(cluster, schema=crd_schema.packaged(), instead=load_policies(None)))


@pytest.mark.parametrize("rule", RULES)
def test_one_round_is_enough_for_each_rule(rule: str, cluster: Snapshot) -> None:
    actions: dict[str, dict[str, Any]] = {each: {"action": "off"} for each in REGISTRY}
    actions[rule] = {"action": "deny", **RULES[rule].settings}
    policy = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy", "rules": actions}
    check(RULES[rule], JobWorld(cluster, schema=None, instead=load_policies(json.dumps(policy))))


@pytest.fixture(scope="module")
def cluster() -> Snapshot:
    """The cluster of the corpus, and a namespace with a LimitRange."""
    found, errors = files.load([str(CORPUS / "cluster.yaml")])
    assert not errors
    limits = limit_range("limits", {"type": "Container", "max": {"cpu": "64"}})
    limits["metadata"]["namespace"] = "limits"
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
