"""The operator: it is missing, ignores the job, rejects it, or cannot create the job's objects."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import msgspec

from webhook import PROGRAM
from webhook.api import mpijob, operator_checks
from webhook.api.shape import ShapeError
from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut
from webhook.parts.why.sight import Sight

OPERATOR: Final = "kubeflow.org/mpi-operator"
MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"
OPERATOR_LABEL: Final = "training.kubeflow.org/operator-name"
SOURCE: Final = "mpi-job-controller"
PATIENCE: Final = timedelta(seconds=20)
"""Seconds until the operator must have handled a job, even after it was busy or elected a new leader."""

CONTRACT: Final = frozenset({"upstream-contract", "name-length"})
SHAPE: Final = frozenset({"schema"})
CHILDREN: Final = frozenset({"child-names"})


def causes(sight: Sight) -> Iterator[Cause]:
    """Problems that keep the operator from creating the pods."""
    managed_by = loose.at(sight.job, "spec", "runPolicy", "managedBy")
    if managed_by is not None and managed_by != OPERATOR:
        yield _left_to_others(str(managed_by))
        return
    others = {loose.text(pod, "metadata", "labels", OPERATOR_LABEL) for pod in sight.pods} - {"", "mpi-operator"}
    if others:
        text = f"a second controller creates pods for it: {', '.join(sorted(others))[:100]}"
        fix = f"Have an administrator keep one controller of MPIJobs: `{PROGRAM} doctor` names them."
        yield Cause("two-operators", Stage.OPERATOR, text, f"label {OPERATOR_LABEL} of its pods", fix)
    if sight.finished:
        return
    conditions = loose.items(sight.job, "status", "conditions")
    event = next(sight.said(sight.name, "ValidationError"), None)
    if _refused(sight) or (event and not conditions):
        yield _invalid(sight, loose.text(event, "message"))
        return
    event = next(sight.said(sight.name, "ErrResourceExists", "MPIJobFailed"), None)
    if loose.text(event, "reason") == "ErrResourceExists" and _incomplete(sight):
        fix = "Delete the other object if it is not needed, or give the job another name."
        found = sight.finding(CHILDREN)  # it knows the kind, which the operator leaves out
        said = found.message if found else cut(loose.text(event, "message"))
        text = f"a name that the operator needs is taken: {said}"
        yield Cause("name-taken", Stage.OPERATOR, text, "Event ErrResourceExists", fix, CHILDREN)
    elif not (conditions or sight.launcher or sight.pods or _heard(sight)):
        yield from _absent(sight)


def _left_to_others(managed_by: str) -> Cause:
    where = "spec.runPolicy.managedBy"
    if managed_by == MULTIKUEUE:
        text = "MultiKueue runs it in another cluster, so there is nothing of it here"
        return Cause("elsewhere", Stage.OPERATOR, text, where, "Look at its Workload, which names the cluster.")
    text = f'the operator leaves it alone: managedBy is "{managed_by[:100]}"'
    return Cause("managed-by", Stage.OPERATOR, text, where, f"Remove managedBy, or set it to {OPERATOR}.", CONTRACT)


def _refused(sight: Sight) -> bool:
    """Whether the operator would reject the job now: a running job then gets no changes."""
    try:
        job = mpijob.decode(msgspec.json.encode(sight.job))
    except ValueError:  # as is ShapeError
        return False
    mpijob.apply_operator_defaults(job)
    return operator_checks.refused(job)


def _invalid(sight: Sight, told: str) -> Cause:
    said = told.removeprefix("Found validation errors: ")
    finding = sight.finding(CONTRACT)
    if not said and finding is not None:
        said = f"{finding.path}: {finding.message}"
    text = f"the operator rejects it{said and ': '}{cut(said)}"
    fix = "Change the field that it names: until then the operator ignores this job."
    return Cause("invalid", Stage.OPERATOR, text, "Event ValidationError" if told else "spec", fix, CONTRACT)


def _incomplete(sight: Sight) -> bool:
    """Whether something is missing that the operator makes."""
    return sight.launcher is None or (not sight.suspended and len(sight.workers) < sight.wanted)


def _heard(sight: Sight) -> bool:
    """Whether the operator has reported anything about the job."""
    return any(loose.text(event, "source", "component") == SOURCE for event in sight.said(sight.name))


def _absent(sight: Sight) -> Iterator[Cause]:
    try:
        mpijob.decode(msgspec.json.encode(sight.job))
    except ShapeError as error:  # its schema leaves templates open
        fix = "Correct the field: before that the operator sees nothing of the job."
        text = f"the operator cannot read it: {error}"
        yield Cause("unreadable", Stage.OPERATOR, text, error.path or "spec", fix, SHAPE)
        return
    created = loose.moment(sight.job, "metadata", "creationTimestamp")
    if created is None or sight.now - created < PATIENCE:
        return
    text = f"no operator has processed it since it was created {sight.since(created)} ago"
    fix = "Ask your administrator whether mpi-operator runs and watches this namespace: kubectl get pods -A | grep mpi"
    yield Cause("operator-absent", Stage.OPERATOR, text, "MPIJob, which has no status and no Event", fix)
