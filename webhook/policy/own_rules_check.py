"""Whether the own rules of a document can be evaluated: each is tried on a job as most are, before it is in force."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from webhook.kit.own_rules import PREFIX, Evaluate, Expression, Outcome, Question, encode
from webhook.kit.settings import Action
from webhook.policy.document import PolicyDocument, PolicyFault, faults_at
from webhook.policy.faults import Location

# What no other job would mend.
_ALWAYS: Final = ("no matching overload", "is of the type", "it takes more than")


class Checked(NamedTuple):
    """What was found."""

    faults: tuple[PolicyFault, ...] = ()
    """For which the document is refused."""
    notes: tuple[str, ...] = ()
    """What may be meant, and may be not."""


def check(document: PolicyDocument, text: str, evaluate: Evaluate) -> Checked:
    """What is wrong with the own rules of the document in YAML `text`."""
    found: list[tuple[Location, str]] = []
    notes: list[str] = []
    for ((index, name), _), outcome in _tried(document, evaluate):
        if outcome.written_wrong or any(sign in outcome.fault.lower() for sign in _ALWAYS):
            found.append((("rules", PREFIX, index, name), outcome.fault))
        elif outcome.fault:
            rule = document.own_rules[index]
            leads_to = "such a job is refused" if rule.on_error == "deny" else "such a job is let through"
            notes.append(f"rules.{PREFIX}[{index}].{name}: a usual job gives it no value, {leads_to}: {outcome.fault}")
    return Checked(tuple(faults_at(found, text)), tuple(notes))


def check_each(document: PolicyDocument, evaluate: Evaluate) -> dict[str, str]:
    """Why own rules of a document that is in force cannot be evaluated, by their ids."""
    return {
        document.own_rules[index].id: outcome.fault
        for ((index, _), _), outcome in _tried(document, evaluate)
        if outcome.written_wrong
    }


def _tried(document: PolicyDocument, evaluate: Evaluate) -> Iterator[tuple[tuple[tuple[int, str], str], Outcome]]:
    places = list(_places(document))
    if places:
        question = sample([Expression(source) for _, source in places], document.params)
        yield from zip(places, evaluate(encode(question)), strict=True)


def _places(document: PolicyDocument) -> Iterator[tuple[tuple[int, str], str]]:
    """((position, setting), source) of all that is evaluated."""
    for index, rule in enumerate(document.own_rules):
        if rule.action is not Action.OFF:
            for name, source in (("match", rule.match), ("expression", rule.expression)):
                if source is not None:
                    yield (index, name), source


def sample(expressions: list[Expression], params: dict[str, Any]) -> Question:
    """A question about a job with all that most jobs have."""
    metadata = {"name": "sample", "namespace": "sample", "labels": {}, "annotations": {}}
    kind = {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"}
    resource = {"group": "kubeflow.org", "version": "v2beta1", "resource": "mpijobs"}
    return Question(
        expressions=tuple(expressions),
        object=msgspec.Raw(msgspec.json.encode({**_JOB, "metadata": metadata})),
        request={
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": "sample",
            "namespace": "sample",
            "operation": "CREATE",
            "userInfo": {"username": "sample", "groups": ["system:authenticated"]},
            "dryRun": False,
        },
        namespace_object={
            "metadata": {"name": "sample", "labels": {"kubernetes.io/metadata.name": "sample"}, "annotations": {}}
        },
        params=params,
        job={
            "workers": 2,
            "gpusPerWorker": 1,
            "totalGpus": 2,
            "slots": 1,
            "images": ["registry.example.com/train:1"],
            "accelerator": "nvidia.com/gpu",
            "queue": "",
        },
    )


def _replica(role: str, replicas: int, limits: dict[str, Any]) -> dict[str, Any]:
    container = {
        "name": role,
        "image": "registry.example.com/train:1",
        "command": ["mpirun", "train"],
        "args": [],
        "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": limits, "requests": limits},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "securityContext": {},
    }
    spec = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}], "securityContext": {}}
    metadata: dict[str, Any] = {"labels": {}, "annotations": {}}
    return {"replicas": replicas, "restartPolicy": "Never", "template": {"metadata": metadata, "spec": spec}}


_JOB: Final[dict[str, Any]] = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "spec": {
        "slotsPerWorker": 1,
        "runPolicy": {"cleanPodPolicy": "Running", "suspend": False},
        "mpiReplicaSpecs": {
            "Launcher": _replica("launcher", 1, {"cpu": "1", "memory": "1Gi"}),
            "Worker": _replica("worker", 2, {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}),
        },
    },
}
