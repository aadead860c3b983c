"""What the mender cannot mend, with the reasons."""

import re
from collections.abc import Mapping
from typing import Final

RULES: Final[Mapping[str, str]] = {
    "child-names": "which name is free is for the user to decide",
    "job-size": "what to leave out of a job beyond all bounds is for the user to decide",
    "update-safety": "it takes two updates: one that suspends the job, and one that changes it",
}
"""Rules that state no value."""

FAULTS: Final[Mapping[str, str]] = {
    r"new: \[accelerator-available\] .*nodeSelector": "a pod that asks for other things fits other nodes",
    r"still there: \[pod-template\] .*\. Use cpu, memory, ephemeral-storage": "which resource was meant cannot be seen",
    r"(?s)(new|still there): \[slots\] .*-np \d+ refuses to start.*tight policy": (
        "the tier takes the launcher's slots away too"
    ),
    r"(?s)new: \[slots\] .*-np \d+ refuses to start.*a small queue of Volcano's": (
        "two warnings: one has a rank on each slot that there is, the other takes slots away"
    ),
    r"new: \[gang\] .*: unset means": "without the label of a queue the job no longer waits in it",
}
"""Advice that does not lead to an admitted job at once."""

PROSE: Final[Mapping[str, str]] = {
    r"Use an image": "images are the user's",
    r"Name (the tag of )?a version": "images are the user's",
    r"Set runAsUser to a user above 0 that the image has": "images are the user's",
    r"Start sshd with a configuration of the user": "images are the user's",
    r"Run both as the same user": "images are the user's",
    r"Rename the (job|volume|container)|Set one of resourceClaimName": "names are the user's",
    r"Add it to resourceClaims of the pod": "which claim was meant cannot be seen",
    r"Set it to a multiple of|Write the unit": "which amount was meant cannot be seen",
    r"Use the same limits and claims": "which of the two is meant cannot be seen",
    r"Keep within the bounds by yourself": "only the user knows the number",
    r"Mount the volume elsewhere": "paths are the user's",
    r"Use an? (PersistentVolumeClaim|claim|emptyDir)|Reach storage": "it depends on the data",
    r"\w+ needs? no hostPath|[dD]evices need no hostPath": "the device plugin's resource is in the text",
    r"Remove the (sysctl|profile)": "the field of Kubernetes that it stands in differs",
    r"Create it|Add Worker|Add the|Add one": "there is nothing yet that could be changed",
    r"Set replicas to the number of workers": "the rule worker-count says how many there may be",
    r"Set resources\.|Set limits\[\w+\] to what is needed": "how much a program needs is for the user to say",
    r"Correct the (quantity|type|value)": "what was meant cannot be seen",
    r"Write \[|Put \"|Split it": "the value is a part of a command line",
    r"Name one that exists": "which queue was meant cannot be seen",
    r"Write how many ranks": "there is nothing to go by",
    r"Write net-a": "networks are the cluster's",
    r"Ask for \d+ or (fewer|more) in all": "how to share it out is for the user to decide",
    r"Set (it|them) on the launcher": "the value is in the job, on the worker",
    r"Tolerate it": "whether the job may run there is for the user to decide",
    r"Ask for labels|Write some": "which nodes were meant cannot be seen",
    r"Let the launcher itself wait|Expect one more|Leave it as it is|The job starts": "nothing has to be changed",
    r"Suspend the job first": "it takes two updates",
    r"(It waits|Resume it later)": "nothing has to be changed",
    r"Suggestions:\n1\. (Wait|Request)|Ask (your|an) administrator|Have an administrator|No amount fits": (
        "nothing that the user writes helps"
    ),
    r"Use one with it|Ask for (quota|less|another queue)|Check its name|Leave it out": "nothing else is known to fit",
    r"Keep jobs apart by partitions|Give it its own": "nothing that the user writes helps",
    r"Stay within that": "what to leave out is for the user to decide",
    r"Submit it again|Nothing is injected": "the job is not at fault",
}
"""Beginnings of fixes that state no value."""


def excused(fault: str) -> bool:
    """Whether the fault is an exception."""
    return any(re.match(pattern, fault) for pattern in FAULTS)


def is_prose(fix: str) -> bool:
    """Whether the fix is known to state no value."""
    return any(re.match(pattern, fix) for pattern in PROSE)
