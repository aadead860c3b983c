"""The launcher's calls of mpirun."""

from webhook.api import mpirun
from webhook.api.mpijob import MPIJob
from webhook.api.mpirun import Invocation


def largest_call(job: MPIJob) -> Invocation | None:
    return max(job.mpirun_calls, key=lambda call: call.ranks or 0, default=None)


def ranks_with_slots(job: MPIJob) -> int:
    """The ranks of the largest call of mpirun; 0 if their number is unknown, or if ranks may share slots."""
    largest = largest_call(job)
    return 0 if largest is None or may_share_slots(job) else largest.ranks or 0


def may_share_slots(job: MPIJob) -> bool:
    """Whether an option or a variable of the launcher allows several ranks per slot."""
    if job.launcher is None or not job.mpirun_calls:
        return False
    by_option = any(call.oversubscribe for call in job.mpirun_calls)
    return by_option or mpirun.oversubscribes_by_env(job.launcher.template.containers[0])
