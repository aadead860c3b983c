"""Own rules of a policy: what is evaluated, and what came of it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

PREFIX: Final = "custom"
"""The setting that own rules stand in, and what their names begin with in messages, metrics and exemptions."""


def full_id(own_id: str) -> str:
    """What the own rule is called outside of the policy."""
    return f"{PREFIX}/{own_id}"


def is_own(rule_id: object) -> bool:
    """Whether a rule is called like an own rule, whatever policies there are."""
    return isinstance(rule_id, str) and rule_id.startswith(f"{PREFIX}/") and len(rule_id) > len(PREFIX) + 1


class Expression(msgspec.Struct, frozen=True, array_like=True):
    """What one rule evaluates."""

    source: str
    match: str = ""
    """Whether the rule is about the job at all; empty for every job."""
    of_change: bool = False
    """It looks at the change, so an update cannot have found the job that way."""


class Variables(msgspec.Struct, frozen=True):
    """What expressions read."""

    object: msgspec.Raw
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    request: Mapping[str, Any] = {}
    namespace_object: Mapping[str, Any] | None = None
    params: Mapping[str, Any] = {}
    job: Any = None
    old_job: Any = None
    """What `job` is where the stored job is judged."""

    def others(self, *, stored: bool = False) -> dict[str, Any]:
        """By the names in expressions, all but the two objects, as JSON has them."""
        found = {
            "request": self.request,
            "namespaceObject": self.namespace_object,
            "params": self.params,
            "job": self.old_job if stored else self.job,
        }
        others: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
        return others


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """What came of one expression."""

    holds: bool = True
    standing: bool = False
    """The same came of the stored job."""
    fault: str = ""
    """Why it has no value; it then counts as holding."""
    written_wrong: bool = False
    """The fault is there whatever the job is."""
    too_large: str = ""
    """Why the job was not evaluated: its size, which no `onError` excuses."""
