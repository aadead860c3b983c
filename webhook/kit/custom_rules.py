"""Custom rules of a policy: expressions, variables, and outcomes."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

PREFIX: Final = "custom"
"""The name of the setting with the custom rules. Outside of the policy it is also the prefix of their ids."""


def full_id(own_id: str) -> str:
    return f"{PREFIX}/{own_id}"


def is_custom_id(rule_id: object) -> bool:
    return isinstance(rule_id, str) and rule_id.startswith(f"{PREFIX}/") and len(rule_id) > len(PREFIX) + 1


class Expression(msgspec.Struct, frozen=True, array_like=True):
    source: str
    match: str = ""
    """Selects the jobs to which the rule applies; empty for all jobs."""
    of_change: bool = False
    """Whether the rule compares the old job with the new one. The stored job alone cannot violate this rule."""


class Variables(msgspec.Struct, frozen=True):
    object: msgspec.Raw
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    request: Mapping[str, Any] = {}
    namespace_object: Mapping[str, Any] | None = None
    params: Mapping[str, Any] = {}
    job: Any = None
    old_job: Any = None
    """The value of `job` when the stored job is evaluated."""

    def without_objects(self, *, stored: bool = False) -> dict[str, Any]:
        """The variables by name, except `object` and `oldObject`, as JSON values."""
        values = {
            "request": self.request,
            "namespaceObject": self.namespace_object,
            "params": self.params,
            "job": self.old_job if stored else self.job,
        }
        return msgspec.json.decode(msgspec.json.encode(values), type=dict[str, Any])


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    holds: bool = True
    standing: bool = False
    """Whether the stored job has the same outcome."""
    fault: str = ""
    """Why the rule could not be evaluated. The job then passes, unless the rule has `onError: deny`."""
    written_wrong: bool = False
    """Whether the fault is in the expression, so that it occurs for every job."""
    too_large: str = ""
    """Why the job is too large for evaluation. `onError` does not apply then."""
