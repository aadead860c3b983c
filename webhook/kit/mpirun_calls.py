"""How the launcher starts the ranks."""

import re
from typing import Final

from webhook.api import mpirun
from webhook.api.mpijob import MPIJob
from webhook.api.mpirun import Invocation

_PER_NODE: Final = frozenset(("N", "npernode", "npersocket"))
_PPR: Final = re.compile(r"ppr:(\d{1,5}):", re.IGNORECASE)


def largest_call(job: MPIJob) -> Invocation | None:
    """The call with the most ranks; None without any call."""
    return max(job.mpirun_calls, key=lambda call: call.ranks or 0, default=None)


def ranks_with_slots(job: MPIJob) -> int:
    """The most ranks that a call starts with a slot for each; 0 if no call shows them, or several may share a slot."""
    largest = largest_call(job)
    return 0 if largest is None or may_share_slots(job) else largest.ranks or 0


def may_share_slots(job: MPIJob) -> bool:
    """Whether a call or the launcher's environment allows several ranks per slot."""
    if job.launcher is None or not job.mpirun_calls:
        return False
    by_option = any(call.oversubscribe for call in job.mpirun_calls)
    return by_option or mpirun.oversubscribes_by_env(job.launcher.template.containers[0])


def least_per_node(call: Invocation) -> tuple[str, int]:
    """Open MPI's option for ranks per node, and the minimum that it sets; 0 if no option does."""
    for name, values in call.options or ():
        text = "".join(values)
        if name in _PER_NODE and text.isdecimal() and len(text) <= 5:
            return name, int(text)
        if name == "map-by" and (pattern := _PPR.match(text)):
            return name, int(pattern[1])
    return "", 0
