"""Mistakes that data scientists make: the first answer, what it says done to the letter, and the second answer.

One round is enough for each. Where the mender (`tests.support.mender`) reads a value in the fix, it writes it; where
the fix needs somebody who understands it, `done` is what it says. `pytest -s` prints the rounds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.mender import facts
from tests.support.mender.rounds import Cause, ask
from tests.support.mender.user import follow
from tests.support.mender.worlds import World
from webhook.api import crd_schema
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import load_policies

POD: Final = "Worker.template.spec"
FIRST: Final = f"{POD}.containers.0"
RUN: Final = "Launcher.template.spec.containers.0.command"
GPU: Final = "nvidia.com/gpu"
NO_FIELD: Final = "is no field of an MPIJob (mpi-operator v0.8.0): kubectl refuses it, other clients lose it."
EMPTY: Final = {"name": "d", "emptyDir": {}}
REF: Final = {"fieldRef": {"fieldPath": "metadata.name"}}
WORKER: Final = changed({})["spec"]["mpiReplicaSpecs"]["Worker"]
MOST: Final = 4


@dataclass(frozen=True)
class Mistake:
    made: Mapping[str, Any]
    """What is wrong in a job that is right otherwise."""
    said: str
    """The first answer, of it the part that matters."""
    done: Mapping[str, Any] = field(default_factory=dict)
    """What the user does; empty where the mender reads it in the fix."""


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
    ),
    "an option and its value as one word": Mistake(
        {RUN: ["mpirun", "-np 8", "train"]},
        'containers[0].command: "-np 8" is one word, and no option. Split it: "-np", "8".',
        {RUN: ["mpirun", "-np", "8", "train"]},
    ),
    "a number in env": Mistake(
        {f"{FIRST}.env": [{"name": "N", "value": 1}]},
        'env[0].value: must be text, not a whole number. Write "1".',
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
    "resnet_50": Mistake({"metadata.name": "resnet_50"}, 'that contains "_"; allowed are lower case letters, digits'),
    "a worker in lower case": Mistake(
        {"Worker": REMOVE, "spec.mpiReplicaSpecs.worker": WORKER},
        'spec.mpiReplicaSpecs[worker]: the operator does not know "worker" and ignores it. Rename it to Worker.',
    ),
    "no launcher": Mistake(
        {"Launcher": REMOVE},
        "spec.mpiReplicaSpecs[Launcher]: is missing. Add the Launcher: it runs mpirun.",
        {"Launcher": changed({})["spec"]["mpiReplicaSpecs"]["Launcher"]},
    ),
    "two launchers": Mistake(
        {"Launcher.replicas": 2}, "replicas: is 2, there is always one launcher. Set replicas to 1."
    ),
    "no workers": Mistake({"Worker.replicas": 0}, "replicas: is 0 (not set counts as 0)"),
    "a single worker": Mistake({"Worker.replicas": 1}, "1 worker, at least 2 required. Set replicas to 2 or more."),
    "-np 8 with one worker": Mistake(
        {RUN: ["mpirun", "-np", "8", "train"], "Worker.replicas": 1}, "1 worker, at least 2 required."
    ),
    "16 GPUs on nodes with 8": Mistake(
        {f"{FIRST}.resources": {"limits": {GPU: 16}}, "spec.slotsPerWorker": 16}, "at most 8 allowed"
    ),
    "half a GPU": Mistake(
        {f"{FIRST}.resources": {"limits": {GPU: "500m"}}}, "500m is not whole, and GPUs are not divided."
    ),
    "GPUs in the request alone": Mistake(
        {f"{FIRST}.resources": {"requests": {GPU: 2}}}, "is missing, but the request is 2. Set it to 2 too."
    ),
    "cleanPodPolicy: all": Mistake(
        {"spec.runPolicy.cleanPodPolicy": "all"}, '"all" is not supported. Use one of All, None'
    ),
    "mpiImplementation: openmpi": Mistake(
        {"spec.mpiImplementation": "openmpi"}, '"openmpi" is not supported. Use one of'
    ),
    "restartPolicy: Always": Mistake({"Worker.restartPolicy": "Always"}, '"Always" is not supported. Use one of Never'),
    "an old API version": Mistake(
        {"apiVersion": "kubeflow.org/v1"},
        "Run `mpijob-webhook convert FILE`",
        {"apiVersion": "kubeflow.org/v2beta1"},
    ),
    "a timeout in words": Mistake(
        {"metadata.annotations": {"training.openshift.io/timeout": "3 days"}}, '"3 days" is not a duration'
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
    "a name of 70 characters": Mistake({"metadata.name": "b" * 70}, "and that has 79 characters, at most 63"),
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


def test_they_are_all_there() -> None:
    assert len(MISTAKES) == 60


@pytest.mark.parametrize("name", MISTAKES)
def test_one_round_is_enough(name: str, world: World) -> None:
    mistake = MISTAKES[name]
    answers = list(_answers(mistake, world))
    print(f"{len(answers) - 1} round: {name}")  # noqa: T201
    assert answers[0], "the mistake is refused"
    assert any(mistake.said in str(cause) for cause in answers[0]), [*map(str, answers[0])]
    assert [[*map(str, answer)] for answer in answers[1:]] == [[]]


@pytest.fixture(scope="module")
def world() -> World:
    """The built-in policy, in a namespace of a cluster of which all is known."""
    return World("walk", "open", load_policies(None), Snapshot(facts.objects()), crd_schema.packaged())


def _answers(mistake: Mistake, world: World) -> Iterator[list[Cause]]:
    """What refuses the job, each time that it is submitted; the last is empty, or the user gives up."""
    job = changed(dict(mistake.made))
    for round_ in range(MOST):
        denied = [cause for cause in ask(job, world) if cause.denies]
        yield denied
        if not denied:
            return
        read = [edit for cause in denied for edit in cause.edits(job)]
        job = changed(dict(mistake.done), job) if mistake.done and not round_ else follow(job, read)
