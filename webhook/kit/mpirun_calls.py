"""How the launcher starts the ranks: read once in a review, for all that ask."""

from collections.abc import Sequence

from webhook.api import mpirun
from webhook.api.mpijob import MPIJob
from webhook.api.mpirun import Invocation
from webhook.kit.context import Context


def mpirun_calls(job: MPIJob, ctx: Context) -> Sequence[Invocation]:
    """The calls of mpirun and its like that the launcher's first container makes; see `mpirun.find`."""
    known: Sequence[Invocation] | None = ctx.memo.get(("mpirun_calls", id(job)))
    if known is None:
        known = ctx.memo["mpirun_calls", id(job)] = _calls(job)
    return known


def _calls(job: MPIJob) -> Sequence[Invocation]:
    if job.launcher is None or not job.launcher.template.containers:
        return ()
    container = job.launcher.template.containers[0]
    return mpirun.find(container.command, container.args, job.spec.mpi_implementation)
