"""Evaluates custom rules in the thread of the review."""

import re
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, Final

import msgspec

from webhook.api import untyped
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.cel import limits
from webhook.kit.custom_rules import Expression, Outcome, Variables
from webhook.work_limit import uncounted

NOT_INSTALLED: Final = "custom rules need the package cel-expr-python, which is not installed here"
TOO_SLOW: Final = f"it took more than {limits.MAX_REVIEW_SECONDS * 1000:.0f} ms of processor time"
_LARGE_NUMBER: Final = re.compile(rb"[0-9]{19}")
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError)
_objects: Final = msgspec.json.Decoder(dict[str, Any] | None, float_hook=untyped.number)


@cache
def installed() -> bool:
    """The result is cached, because a search for the packages takes too long for a review."""
    return find_spec("cel_expr_python") is not None and find_spec("google.protobuf") is not None


def evaluate(expressions: Sequence[Expression], variables: Variables) -> tuple[Outcome, ...]:
    """The outcomes in the order of `expressions`. Never raises."""
    if not installed():
        return (Outcome(fault=NOT_INSTALLED, written_wrong=True),) * len(expressions)
    try:
        job, stored = read(variables.object), read(variables.old_object)
    except _UNREADABLE as error:
        return (Outcome(fault=f"the job cannot be read: {error}"),) * len(expressions)
    if problem := _too_large(variables.object, job):
        standing = stored is not None and bool(_too_large(variables.old_object, stored))
        return (Outcome(too_large=problem, standing=standing),) * len(expressions)
    return tuple(_outcomes(expressions, variables, job, stored))


def _outcomes(
    expressions: Sequence[Expression], variables: Variables, job: dict[str, Any] | None, stored: dict[str, Any] | None
) -> Iterator[Outcome]:
    from webhook.cel.environment import activation  # noqa: PLC0415 - an optional dependency

    new = activation({"object": job, "oldObject": stored, **variables.without_objects()})
    old = None
    for expression in expressions:
        outcome = _timed(expression, new)
        if stored is not None and not expression.of_change and (outcome.fault or not outcome.holds):
            old = old or activation({"object": stored, "oldObject": stored, **variables.without_objects(stored=True)})
            before = _timed(expression, old)
            standing = (before.holds, bool(before.fault)) == (outcome.holds, bool(outcome.fault))
            outcome = msgspec.structs.replace(outcome, standing=standing)
        yield outcome


def _timed(expression: Expression, variables: Any) -> Outcome:
    began = time.thread_time()  # Pyodide may lack thread_time, but never runs this code
    outcome = _evaluated(expression, variables)
    return Outcome(fault=TOO_SLOW) if time.thread_time() - began > limits.MAX_REVIEW_SECONDS else outcome


def _evaluated(expression: Expression, variables: Any) -> Outcome:
    from webhook.cel.environment import ExpressionError, compiled  # noqa: PLC0415 - an optional dependency

    for source in (expression.match, expression.source):
        if not source:
            continue
        program = uncounted(partial(compiled, source))  # the result is cached for all jobs
        if isinstance(program, ExpressionError):
            return Outcome(fault=str(program), written_wrong=True)
        try:
            holds = program.holds(variables)
        except ExpressionError as error:
            return Outcome(fault=str(error))
        if not holds:
            return Outcome(holds=source is expression.match)
    return Outcome()


def read(document: msgspec.Raw) -> dict[str, Any] | None:
    """The object as the API server decodes it, with the operator's defaults and without `managedFields`.

    A whole number beyond 64 bits becomes a double, as in the API server.
    """
    job = _objects.decode(document)
    if job is None:
        return None
    if isinstance(metadata := job.get("metadata"), dict):
        metadata.pop("managedFields", None)
    if _LARGE_NUMBER.search(memoryview(document)):
        _make_doubles(job)
    return with_defaults(job)


def _make_doubles(job: dict[str, Any]) -> None:
    for container in _containers(job):
        for key, item in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(item, int) and not -(2**63) <= item < 2**63:
                container[key] = float(item)


def _too_large(document: msgspec.Raw, job: Any) -> str:
    if (size := len(memoryview(document))) > limits.MAX_JOB_BYTES:
        return f"too large for custom rules: {size:,} bytes, the maximum is {limits.MAX_JOB_BYTES:,}"
    values = sum(map(len, _containers(job)))
    if values > limits.MAX_JOB_VALUES:
        return f"too large for custom rules: {values:,} values, the maximum is {limits.MAX_JOB_VALUES:,}"
    return ""


def _containers(value: Any) -> Iterator[Any]:
    """All lists and mappings in the value, including the value itself."""
    waiting = [value]
    while waiting:
        if isinstance(container := waiting.pop(), dict | list):
            yield container
            waiting += container.values() if isinstance(container, dict) else container


def with_defaults(job: dict[str, Any]) -> dict[str, Any]:
    """Sets the operator's defaults in `job` and returns `job`. Fields must have the right types."""
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return job
    run_policy = spec.get("runPolicy")
    spec["runPolicy"] = run_policy = {} if run_policy is None else run_policy
    _fill(run_policy, "cleanPodPolicy", "None")
    _fill(spec, "slotsPerWorker", 1)
    for name, value in (
        ("sshAuthMountPath", "/root/.ssh"),
        ("mpiImplementation", "OpenMPI"),
        ("launcherCreationPolicy", "AtStartup"),
    ):
        spec[name] = spec.get(name) or value
    for role, replicas, restart_policy in ((LAUNCHER, 1, "OnFailure"), (WORKER, 0, "Never")):
        replica = (spec.get("mpiReplicaSpecs") or {}).get(role)
        if replica is not None:
            _fill(replica, "replicas", replicas)
            replica["restartPolicy"] = replica.get("restartPolicy") or restart_policy
    return job


def _fill(values: dict[str, Any], name: str, value: Any) -> None:
    if values.get(name) is None:
        values[name] = value
