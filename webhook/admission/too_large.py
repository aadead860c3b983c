"""Rejects objects that are too large to decode: decoding takes memory and cannot be interrupted."""

import msgspec

from webhook.admission.messages import Finding
from webhook.api import limits
from webhook.rules import CauseReason, Violation
from webhook.rules.job_size import RULE

TOO_LARGE = "too large to judge"
AS_STORED = f"{TOO_LARGE}, and unchanged since it was stored"


def finding(document: msgspec.Raw) -> Finding | None:
    """The finding, regardless of the policy; None if the object is small enough to decode."""
    data = bytes(document)
    if len(data) > limits.MAX_OBJECT_BYTES:
        return _finding(len(data), "bytes", limits.MAX_OBJECT_BYTES)
    # The count includes brackets in texts, because only a parser could exclude them.
    if len(data) > limits.MAX_NESTED_VALUES:
        nested = data.count(b"{") + data.count(b"[")
        if nested > limits.MAX_NESTED_VALUES:
            return _finding(nested, "mappings and lists", limits.MAX_NESTED_VALUES)
    return None


def _finding(count: int, unit: str, maximum: int) -> Finding:
    message = f"{TOO_LARGE}: {count:,} {unit}, at most {maximum:,}"
    fix = "Stay within that: no policy allows more."
    return Finding(RULE, Violation("spec", message, fix=fix, reason=CauseReason.NOT_SUPPORTED))
