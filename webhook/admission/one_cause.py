"""One cause, one message: what is mended by following one rule's advice, another rule does not refuse too.

A request above its limit, or other than that where it may not be, out of the bounds of a LimitRange as well: the advice
for the bounds names both amounts, and that of the rules for amounts would lead back out of them. A user that the level
of Pod Security forbids, and that the pod's own `runAsNonRoot` forbids too.
"""

import re
from collections.abc import Iterable
from typing import Final

from webhook.admission.messages import Finding
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


def _of_amount(finding: Finding) -> bool:
    """Whether it is about how much, and not about what is asked for."""
    return finding.rule in _OF_AMOUNTS and finding.violation.reason is not CauseReason.NOT_SUPPORTED


def _pair(finding: Finding) -> tuple[str, ...] | None:
    """Where a request and its limit are, and of what."""
    match = _PAIR.fullmatch(finding.violation.path)
    return match.groups() if match else None
