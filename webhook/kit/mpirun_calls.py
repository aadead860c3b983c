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


def largest_call(job: MPIJob, ctx: Context) -> Invocation | None:
    """The call that shows the most ranks; None without any call."""
    return max(mpirun_calls(job, ctx), key=lambda call: call.ranks or 0, default=None)


def ranks_with_slots(job: MPIJob, ctx: Context) -> int:
    """The most ranks that a call starts with a slot for each; 0 where none is shown, or several may share a slot."""
    largest = largest_call(job, ctx)
    return 0 if largest is None or may_share_slots(job, ctx) else largest.ranks or 0


def may_share_slots(job: MPIJob, ctx: Context) -> bool:
    """Whether the user says, in a call or in the launcher's environment, that a slot may have several ranks."""
    calls = mpirun_calls(job, ctx)
    if any(call.oversubscribe for call in calls):
        return True
    if job.launcher is None or not calls:
        return False
    return mpirun.oversubscribes_by_env(job.launcher.template.containers[0])


def _calls(job: MPIJob) -> Sequence[Invocation]:
    if job.launcher is None or not job.launcher.template.containers:
        return ()
    container = job.launcher.template.containers[0]
    return mpirun.find(container.command, container.args, job.spec.mpi_implementation)
