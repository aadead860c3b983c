"""Custom rules of a policy: the evaluated expressions, and their outcomes."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

PREFIX: Final = "custom"
"""The setting with the custom rules, and the prefix of their names in messages, metrics and exemptions."""


def full_id(own_id: str) -> str:
    """The custom rule's id outside of the policy."""
    return f"{PREFIX}/{own_id}"


def is_own(rule_id: object) -> bool:
    """Whether an id has the form of a custom rule's."""
    return isinstance(rule_id, str) and rule_id.startswith(f"{PREFIX}/") and len(rule_id) > len(PREFIX) + 1


class Expression(msgspec.Struct, frozen=True, array_like=True):
    """The expressions of one rule."""

    source: str
    match: str = ""
    """Selects the jobs that the rule judges; empty for every job."""
    of_change: bool = False
    """It compares the old and the new job, so the stored job cannot have broken it already."""


class Variables(msgspec.Struct, frozen=True):
    """The variables of expressions."""

    object: msgspec.Raw
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    request: Mapping[str, Any] = {}
    namespace_object: Mapping[str, Any] | None = None
    params: Mapping[str, Any] = {}
    job: Any = None
    old_job: Any = None
    """The value of `job` when the stored job is judged."""

    def others(self, *, stored: bool = False) -> dict[str, Any]:
        """All variables by name, except the two objects, as JSON values."""
        found = {
            "request": self.request,
            "namespaceObject": self.namespace_object,
            "params": self.params,
            "job": self.old_job if stored else self.job,
        }
        others: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
        return others


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of one expression."""

    holds: bool = True
    standing: bool = False
    """The stored job has the same outcome."""
    fault: str = ""
    """Why it could not be evaluated; the job then passes."""
    written_wrong: bool = False
    """The fault occurs with any job."""
    too_large: str = ""
    """Why the job is too large to be evaluated; `onError` does not apply to this."""
