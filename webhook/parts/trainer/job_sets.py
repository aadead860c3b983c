"""Faults for which the API server would reject the JobSet or its Jobs.

For TrainJobs, this check replaces the rule `upstream-contract`.

Sources: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go (`ValidateCreate`) and
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/batch/validation/validation.go (`ValidateJob`).
"""

from collections.abc import Iterator
from typing import Any, Final

from webhook.api import names
from webhook.api.mpijob import WORKER, replica_path
from webhook.api.untyped import at
from webhook.kit.context import Context
from webhook.parts.trainer import kinds
from webhook.parts.trainer.replicated_jobs import JOB_SET, ReplicatedJob
from webhook.parts.trainer.shape import Shape
from webhook.rules import CauseReason, Violation, shortened

_NODES: Final = f"{replica_path(WORKER)}.replicas"
_FIX: Final = "Correct it in the runtime."


def faults(shape: Shape, _: Context) -> Iterator[Violation]:
    preceding: set[str] = set()
    for job in shape.jobs:
        yield from _of_job(job, preceding)
        preceding.add(job.name)
    yield from _of_success(at(shape.runtime, "template", "spec", "successPolicy"), {job.name for job in shape.jobs})
    if at(shape.runtime, "mlPolicy", "mpi").get("mpiImplementation") == "" and shape.replicated_job(kinds.LAUNCHER):
        yield Violation("spec.mpiImplementation", "is empty, so Trainer creates no pods", fix="Set it to OpenMPI.")


def _of_job(replicated: ReplicatedJob, preceding: set[str]) -> Iterator[Violation]:
    path = replicated.path
    if problem := names.dns_1035_label_problem(f"a-{replicated.name}-0"):
        fault = f"{_quoted(replicated.name)} gives an invalid name of a Job, which {problem}"
        yield Violation(f"{path}.name", fault, fix=_FIX)
    if replicated.depends_on and not replicated.index:
        yield Violation(f"{path}.dependsOn", "the first of the replicatedJobs cannot depend on another", fix=_FIX)
    elif before := [
        name
        for dependency in replicated.depends_on
        if (name := str(dependency.get("name"))) not in preceding | {replicated.name}
    ]:
        fault = f"{_quoted(before[0])} is not among the replicatedJobs before it"
        yield Violation(f"{path}.dependsOn", fault, fix=_FIX, reason=CauseReason.NOT_SUPPORTED)
    if at(replicated.template, "spec").get("restartPolicy") == "Always":
        field = f"{replicated.template_path}.spec.restartPolicy"
        yield Violation(field, "is Always, which Jobs do not allow", fix="Use OnFailure or Never.")
    if replicated.pods < 1:  # only possible if a TrainJob sets the number of nodes
        # A Job without pods is complete, so a launcher may continue alone.
        fault = f"{replicated.pods} pods of {replicated.name}" + (", at least 1 required" if replicated.pods else "")
        yield Violation(_NODES, fault, fix="Set it to 1 or more.", advisory=not replicated.pods)


def _of_success(policy: dict[str, Any], replicated: set[str]) -> Iterator[Violation]:
    targets = policy.get("targetReplicatedJobs")
    for name in map(str, targets if isinstance(targets, list) else ()):
        if name not in replicated:
            fault, path = f"{_quoted(name)} is not one of the replicatedJobs", f"{JOB_SET}.successPolicy"
            yield Violation(f"{path}.targetReplicatedJobs", fault, fix=_FIX, reason=CauseReason.NOT_SUPPORTED)
            return


def _quoted(text: object) -> str:
    return f'"{shortened(str(text), 40)}"'
