"""The launcher's calls of mpirun."""

from webhook.api import mpirun
from webhook.api.mpijob import MPIJob
from webhook.api.mpirun import Invocation


def largest_call(job: MPIJob) -> Invocation | None:
    """The call that shows the most ranks; None without any call."""
    return max(job.mpirun_calls, key=lambda call: call.ranks or 0, default=None)


def ranks_with_slots(job: MPIJob) -> int:
    """The most ranks that a call starts with a slot for each; 0 where none is shown, or several may share a slot."""
    largest = largest_call(job)
    return 0 if largest is None or may_share_slots(job) else largest.ranks or 0


def may_share_slots(job: MPIJob) -> bool:
    """Whether the user says, in a call or in the launcher's environment, that a slot may have several ranks."""
    if job.launcher is None or not job.mpirun_calls:
        return False
    by_option = any(call.oversubscribe for call in job.mpirun_calls)
    return by_option or mpirun.oversubscribes_by_env(job.launcher.template.containers[0])
