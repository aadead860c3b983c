"""Custom rules of a policy: their expressions, the variables, and the outcomes of evaluation."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

PREFIX: Final = "custom"
"""The name of the setting with the custom rules, and the prefix of their ids outside of the policy."""


def full_id(own_id: str) -> str:
    """The id of a custom rule in messages, metrics and exemptions."""
    return f"{PREFIX}/{own_id}"


def is_own(rule_id: object) -> bool:
    """Whether the id has the form of a custom rule's id."""
    return isinstance(rule_id, str) and rule_id.startswith(f"{PREFIX}/") and len(rule_id) > len(PREFIX) + 1


class Expression(msgspec.Struct, frozen=True, array_like=True):
    """The expressions of one rule."""

    source: str
    match: str = ""
    """Selects the jobs to which the rule applies; empty for all jobs."""
    of_change: bool = False
    """Whether the rule compares the old and the new job, so that the stored job alone cannot violate it."""


class Variables(msgspec.Struct, frozen=True):
    """The variables that expressions can read."""

    object: msgspec.Raw
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    request: Mapping[str, Any] = {}
    namespace_object: Mapping[str, Any] | None = None
    params: Mapping[str, Any] = {}
    job: Any = None
    old_job: Any = None
    """The value of `job` when the stored job is evaluated."""

    def others(self, *, stored: bool = False) -> dict[str, Any]:
        """The variables by name, except `object` and `oldObject`, as JSON values."""
        values = {
            "request": self.request,
            "namespaceObject": self.namespace_object,
            "params": self.params,
            "job": self.old_job if stored else self.job,
        }
        others: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values))
        return others


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of a rule for a job."""

    holds: bool = True
    standing: bool = False
    """Whether the stored job has the same outcome."""
    fault: str = ""
    """Why the rule could not be evaluated; the job then passes, unless the rule has `onError: deny`."""
    written_wrong: bool = False
    """Whether the fault is in the expression, so that it occurs for any job."""
    too_large: str = ""
    """Why the job is too large for evaluation; `onError` does not apply to this."""
