"""Causes at the operator: it is missing, ignores the job, rejects the job, or cannot create the job's objects."""

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
"""Time for a busy operator, or for the election of a leader."""

CONTRACT: Final = frozenset({"upstream-contract", "name-length"})
SHAPE: Final = frozenset({"schema"})
CHILDREN: Final = frozenset({"child-names"})


def causes(sight: Sight) -> Iterator[Cause]:
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
    event = next(sight.events_about(sight.name, "ValidationError"), None)
    if _is_rejected(sight) or (event and not conditions):
        yield _invalid(sight, loose.text(event, "message"))
        return
    event = next(sight.events_about(sight.name, "ErrResourceExists", "MPIJobFailed"), None)
    if loose.text(event, "reason") == "ErrResourceExists" and _incomplete(sight):
        fix = "Delete the other object if it is not needed, or give the job another name."
        finding = sight.finding(CHILDREN)  # unlike the operator's event, the finding names the kind
        problem = finding.message if finding else cut(loose.text(event, "message"))
        text = f"a name that the operator needs is taken: {problem}"
        yield Cause("name-taken", Stage.OPERATOR, text, "Event ErrResourceExists", fix, CHILDREN)
    elif not (conditions or sight.launcher or sight.pods or _has_reported(sight)):
        yield from _absent(sight)


def _left_to_others(managed_by: str) -> Cause:
    where = "spec.runPolicy.managedBy"
    if managed_by == MULTIKUEUE:
        text = "MultiKueue runs it in another cluster, so it has no pods here"
        return Cause("elsewhere", Stage.OPERATOR, text, where, "Look at its Workload, which names the cluster.")
    text = f'the operator ignores it: managedBy is "{managed_by[:100]}"'
    return Cause("managed-by", Stage.OPERATOR, text, where, f"Remove managedBy, or set it to {OPERATOR}.", CONTRACT)


def _is_rejected(sight: Sight) -> bool:
    """Whether the operator would reject the job. The operator ignores all changes of a rejected job."""
    try:
        job = mpijob.decode(msgspec.json.encode(sight.job))
    except ValueError:  # the base class of ShapeError
        return False
    mpijob.apply_operator_defaults(job)
    return operator_checks.is_rejected(job)


def _invalid(sight: Sight, message: str) -> Cause:
    problem = message.removeprefix("Found validation errors: ")
    finding = sight.finding(CONTRACT)
    if not problem and finding is not None:
        problem = f"{finding.path}: {finding.message}"
    text = f"the operator rejects it{problem and ': '}{cut(problem)}"
    fix = "Change the named field: until then the operator ignores this job."
    return Cause("invalid", Stage.OPERATOR, text, "Event ValidationError" if message else "spec", fix, CONTRACT)


def _incomplete(sight: Sight) -> bool:
    return sight.launcher is None or (not sight.suspended and len(sight.workers) < sight.requested_workers)


def _has_reported(sight: Sight) -> bool:
    return any(loose.text(event, "source", "component") == SOURCE for event in sight.events_about(sight.name))


def _absent(sight: Sight) -> Iterator[Cause]:
    try:
        mpijob.decode(msgspec.json.encode(sight.job))
    except ShapeError as error:  # possible because the CRD's schema does not check templates
        fix = "Correct the field: the operator cannot read the job before that."
        text = f"the operator cannot read it: {error}"
        yield Cause("unreadable", Stage.OPERATOR, text, error.path or "spec", fix, SHAPE)
        return
    created = loose.moment(sight.job, "metadata", "creationTimestamp")
    if created is None or sight.now - created < PATIENCE:
        return
    text = f"no operator has processed it since it was created {sight.since(created)} ago"
    fix = "Ask your administrator whether mpi-operator runs and watches this namespace: kubectl get pods -A | grep mpi"
    yield Cause("operator-absent", Stage.OPERATOR, text, "MPIJob, which has no status and no Event", fix)
