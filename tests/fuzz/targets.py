"""The fuzz targets: for each parser of foreign input, a function of bytes that raises if a guarantee is broken.

The bytes are plain text, so that developers can read the files of the corpus and add reported inputs.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from typing import Any, NamedTuple

import msgspec

from tests.bench.replies.cases import clusters
from tests.support import promises
from tests.support.custom_rules import outcomes
from tests.support.jobs import body, request
from tests.support.trainer import Runtimes
from webhook.admission import pipelines
from webhook.admission.decision import Decision
from webhook.api import images, mpirun, networks, quantity, review
from webhook.api.bounds import ANY, Bounds
from webhook.api.images import ImageError
from webhook.api.networks import Network, NetworksError
from webhook.api.quantity import Quantity, QuantityError
from webhook.api.review import AdmissionRequest, GroupVersionKind, ReviewError
from webhook.api.untyped import mapping
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.snapshot import Snapshot
from webhook.kit.custom_rules import Outcome
from webhook.parts.trainer import kinds, pipeline
from webhook.policy import document
from webhook.policy.document import PolicyError
from webhook.policy.in_force import Policy, PolicySet, load_policy, policy_model
from webhook.policy.layers import Layer
from webhook.work_limit import TooExpensive, limited

TODAY = date(2026, 3, 2)
NAMESPACE = "team-0000"


class Target(NamedTuple):
    run: Callable[[bytes], object]
    words: str
    """Typical parts of the parser's input, separated by blanks."""


@cache
def _views() -> tuple[Snapshot, ...]:
    """A view in which everything is unknown, and a cluster with objects of every kind."""
    return tuple(Snapshot(objects) for objects in clusters())


@cache
def _everything_on() -> PolicySet:
    """A policy that enables every injection that needs no setting. Rules have their default settings."""
    injections = {name: {"enabled": True} for name in ("shared-memory", "gpu-nodes", "worker-readiness")}
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}
    return PolicySet([Layer("fuzz", document.load(json.dumps(head | {"injections": injections}), policy_model()))])


def decode(data: bytes) -> None:
    """Every request body gets a reply or is rejected as invalid, without an internal error."""
    with suppress(ReviewError):
        _answers(review.decode(data))


def jobs(data: bytes) -> None:
    """Any JSON gets a reply as a new job, and as an update that changes nothing."""
    job = _json(data)
    if isinstance(job, dict) and isinstance(job.setdefault("metadata", {}), dict):
        job["metadata"]["namespace"] = NAMESPACE
    for old in (None, job):
        _answers(review.decode(body(job, old=old, namespace=NAMESPACE)))


def train_jobs(data: bytes) -> None:
    """A runtime and a TrainJob get replies, with any JSON `{"runtime": ..., "job": ...}` as their specs."""
    given = mapping(_json(data))
    runtime = {"metadata": {"name": "fuzz"}, "spec": given.get("runtime")}
    job = {"metadata": {"name": "job"}, "spec": given.get("job")}
    with suppress(msgspec.DecodeError):  # an invalid runtime is not cached
        view = Runtimes({**runtime, "kind": kinds.CLUSTER_RUNTIME})
        for kind, new, old in ((kinds.CLUSTER_RUNTIME, runtime, None), (kinds.TRAIN_JOB, job, {**job, "spec": {}})):
            request = AdmissionRequest(
                uid="1",
                operation="CREATE" if old is None else "UPDATE",
                kind=GroupVersionKind(kinds.GROUP, "v1alpha1", kind),
                object=msgspec.Raw(json.dumps(new).encode()),
                old_object=msgspec.Raw(json.dumps(old).encode()),
            )
            decision = pipeline.decide(request, policies=_everything_on(), view=view, today=TODAY)
            json.loads(review.encode(decision.response(request.uid)))


def patches(data: bytes) -> None:
    """Injections keep their guarantees for any job."""
    job = _json(data)
    for view in _views():
        policy = _everything_on().for_namespace(view.get(NAMESPACES, NAMESPACE))

        def mutate(job: object, policy: Policy = policy, view: Snapshot = view) -> Decision:
            return pipelines.mutate(request(job, namespace=NAMESPACE), policy=policy, view=view)

        promises.keep(job, mutate(job), mutate)


def quantities(data: bytes) -> None:
    """A parsed quantity is the same after it is formatted and parsed again."""
    with suppress(QuantityError):
        amount = quantity.parse(_text(data))
        assert quantity.parse(quantity.format(amount)) == amount


def policies(data: bytes) -> None:
    """A policy is valid, or its errors are reported."""
    with suppress(PolicyError):
        load_policy(data)


def expressions(data: bytes) -> None:
    """Any text as the expression of a custom rule gives a value or an error, and does not affect a second rule."""
    with suppress(TooExpensive):
        outcome, other = limited(lambda: outcomes(_text(data), "object.spec.slotsPerWorker == 2"))
        assert other == Outcome()
        assert outcome.holds or not outcome.fault


def network_annotations(data: bytes) -> None:
    """A valid annotation to which networks are added lists the existing networks first, then the added networks."""
    text = _text(data)
    with suppress(NetworksError):
        existing = networks.parse(text)
        more = [Network("a", "b", "net1"), Network("", "c")]
        longer = networks.extended(text, more)
        assert networks.parse(longer) == [*existing, *more]
        assert networks.extends(longer, text)


def image_references(data: bytes) -> None:
    """A formatted image reference is parsed as the same reference."""
    with suppress(ImageError):
        reference = images.parse(_text(data))
        assert images.parse(str(reference)) == reference


def mpirun_lines(data: bytes) -> None:
    """Any command line of mpirun or a shell is parsed, or ignored, without an error."""
    text = _text(data)
    for implementation in (None, "OpenMPI", "Intel", "MPICH"):
        for argv in (["bash", "-c", text], text.split(), ["mpirun", *text.split()]):
            for call in mpirun.find(argv, [text], implementation):
                mpirun.per_node(call)
                mpirun.starter(call)
                assert call.ranks is None or call.ranks >= 0


def limit_ranges(data: bytes) -> None:
    """The suggested values for `MIN MAX RATIO REQUEST LIMIT` (`-` for none) satisfy all limits."""
    words = _text(data).split()
    if len(words) != 5:
        return
    with suppress(QuantityError):
        least, most, ratio, request, limit = (None if word == "-" else _positive(word) for word in words)
        if ratio is not None and ratio < quantity.NANO:
            return  # the API server rejects such a LimitRange
        bounds = Bounds(least, most, ratio)
        list(bounds.broken(request, limit))
        for equal in (True, False):
            fit = bounds.fitting(request, limit, equal=equal)
            if fit is not None and fit != ANY:
                assert list(bounds.broken(*fit)) == [], fit
                assert fit.request <= fit.limit


def _positive(word: str) -> Quantity:
    return Quantity(abs(quantity.parse(word)))


def _answers(admission_request: AdmissionRequest) -> None:
    for hook in ("mutate", "validate"):
        for view in _views():
            decision = pipelines.decide(
                hook,  # type: ignore[arg-type]
                admission_request,
                policies=_everything_on(),
                view=view,
                today=TODAY,
            )
            json.loads(review.encode(decision.response(admission_request.uid)))


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _json(data: bytes) -> Any:
    """The value; None if an API server cannot send this JSON."""
    try:
        return json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


_JOB = """mpiReplicaSpecs Worker Launcher template containers resources limits requests cpu memory nvidia.com/gpu
replicas slotsPerWorker tolerations nodeSelector affinity volumes emptyDir env valueFrom annotations runPolicy
training.openshift.io/exempt training.openshift.io/timeout"""
TARGETS: Mapping[str, Target] = {
    "decode": Target(decode, f"request uid object oldObject operation CREATE UPDATE {_JOB}"),
    "jobs": Target(jobs, _JOB),
    "patches": Target(patches, _JOB),
    "train-jobs": Target(train_jobs, f"runtime job trainer mlPolicy mpi replicatedJobs name node launcher {_JOB}"),
    "quantities": Target(quantities, "Ki Mi Ei m n e9 E-3 . + -"),
    "policies": Target(policies, "rules: injections: action: deny namespaces: &a *a"),
    "expressions": Target(
        expressions,
        "object.spec. has( ) && || ! == < + [ ] { } 'a' 1 .map(x, .all(x, .sum( quantity( sets.contains( .?",
    ),
    "networks": Target(network_annotations, "[ ] { } name namespace interface @ , /"),
    "images": Target(image_references, "docker.io localhost:5000 @sha256: : / library"),
    "mpirun": Target(mpirun_lines, "mpirun -np -x --map-by ppr:2:node && $( ' \" horovodrun mpiexec.hydra"),
    "limit-ranges": Target(limit_ranges, "- 1e30 10 500m 16Gi 9223372036854775807"),
}
