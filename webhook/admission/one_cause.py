"""One cause, one message: what is mended by following one rule's advice, another rule does not refuse too.

A request above its limit, out of the bounds of a LimitRange as well: the advice for the bounds names both amounts, and
that of the API server's own rule would lead back out of them.
"""

import re
from collections.abc import Iterable
from typing import Final

from webhook.admission.messages import Finding

_BOUNDS: Final = "limit-range"
_ABOVE_ITS_LIMIT: Final = "pod-template"
_PAIR: Final = re.compile(r"(.+\.resources)\.(?:limits|requests)\[(cpu|memory|ephemeral-storage)\]")


def told_once(denied: Iterable[Finding]) -> list[Finding]:
    """The findings that refuse a job, without those that another one mends."""
    found = list(denied)
    bounded = {_pair(each) for each in found if each.rule == _BOUNDS} - {None}
    return [each for each in found if each.rule != _ABOVE_ITS_LIMIT or _pair(each) not in bounded]


def _pair(finding: Finding) -> tuple[str, ...] | None:
    """Where a request and its limit are, and of what."""
    match = _PAIR.fullmatch(finding.violation.path)
    return match.groups() if match else None
