"""How the launcher starts the ranks: read once, for all that ask."""

from collections.abc import Sequence

from webhook.api import mpirun
from webhook.api.mpijob import MPIJob
from webhook.api.mpirun import Invocation
from webhook.api.pod import PodTemplate
from webhook.api.remembered import remembered


def mpirun_calls(job: MPIJob) -> Sequence[Invocation]:
    """The calls of mpirun and its like that the launcher's first container makes; see `mpirun.find`."""
    launcher = job.launcher
    return () if launcher is None else _calls(launcher.template, job.spec.mpi_implementation)


def largest_call(job: MPIJob) -> Invocation | None:
    """The call that shows the most ranks; None without any call."""
    calls = mpirun_calls(job)
    return max(calls, key=lambda call: call.ranks or 0) if len(calls) > 1 else calls[0] if calls else None


def ranks_with_slots(job: MPIJob) -> int:
    """The most ranks that a call starts with a slot for each; 0 where none is shown, or several may share a slot."""
    largest = largest_call(job)
    return 0 if largest is None or may_share_slots(job) else largest.ranks or 0


def may_share_slots(job: MPIJob) -> bool:
    """Whether the user says, in a call or in the launcher's environment, that a slot may have several ranks."""
    launcher = job.launcher
    return launcher is not None and _may_share_slots(launcher.template, job.spec.mpi_implementation)


@remembered
def _calls(template: PodTemplate, implementation: str | None) -> Sequence[Invocation]:
    if not template.containers:
        return ()
    container = template.containers[0]
    return tuple(mpirun.find(container.command, container.args, implementation))


@remembered
def _may_share_slots(template: PodTemplate, implementation: str | None) -> bool:
    calls = _calls(template, implementation)
    by_option = any(call.oversubscribe for call in calls)
    return by_option or (bool(calls) and mpirun.oversubscribes_by_env(template.containers[0]))
