"""One cause, one message: where the advice of one rule fixes a fault, another rule does not report it too.

- Amounts outside of a LimitRange that also contradict each other: the advice for the range names both amounts.
- A user that both the Pod Security level and the pod's own `runAsNonRoot` forbid.
- What the init container of `launcher-wait` copies from the launcher's first container.
"""

import re
from collections.abc import Iterable
from typing import Final

from webhook.admission.messages import Finding
from webhook.api.mpijob import LAUNCHER, MPIJob, replica_path
from webhook.api.sshd import WAIT_CONTAINER
from webhook.kit.settings import Action
from webhook.rules import CauseReason

_BOUNDS: Final = "limit-range"
_LEVEL: Final = "pod-security"
_PODS: Final = "pod-template"
_USER: Final = ".runAsUser"
_OF_AMOUNTS: Final = frozenset({"pod-template", "gpus"})
# The first of these in a path is not looked for again: the name of a resource may hold very many.
_PAIR: Final = re.compile(r"(?>(.+?\.resources)\.(?:limits|requests)\[)(.+)\]", re.DOTALL)


def told_once(denied: Iterable[Finding]) -> list[Finding]:
    """The findings that refuse a job, without those that another one mends."""
    found = list(denied)
    bounded = {_pair(each) for each in found if each.rule == _BOUNDS} - {None}
    users = {path for each in found if each.rule == _LEVEL and (path := each.violation.path).endswith(_USER)}
    left = [each for each in found if each.rule != _PODS or each.violation.path not in users]
    return [each for each in left if not _of_amount(each) or _pair(each) not in bounded]


def without_copies(found: list[tuple[Finding, Action]], job: MPIJob) -> list[tuple[Finding, Action]]:
    """Without what is found again in the init container that waits, which copies the launcher's first container."""
    init = job.launcher.template.init_containers if found and job.launcher else ()
    index = next((index for index, each in enumerate(init) if each.name == WAIT_CONTAINER), None)
    if index is None:
        return found
    spec = f"{replica_path(LAUNCHER)}.template.spec"
    copy, original = f"{spec}.initContainers[{index}]", f"{spec}.containers[0]"
    told = {(each.rule, each.violation.path, each.violation.message) for each, _ in found}
    return [
        (each, action)
        for each, action in found
        if not each.violation.path.startswith(copy)
        or (each.rule, original + each.violation.path.removeprefix(copy), each.violation.message) not in told
    ]


def _of_amount(finding: Finding) -> bool:
    """Whether it is about how much, and not about what is asked for."""
    return finding.rule in _OF_AMOUNTS and finding.violation.reason is not CauseReason.NOT_SUPPORTED


def _pair(finding: Finding) -> tuple[str, ...] | None:
    """Where a request and its limit are, and of what."""
    match = _PAIR.fullmatch(finding.violation.path)
    return match.groups() if match else None
