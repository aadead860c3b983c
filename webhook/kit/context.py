"""The input of a rule or an injection, in addition to the job."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

import msgspec

from webhook.api import names
from webhook.api.mpijob import MPIJob
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.kit.advice_bounds import ANYTHING, Admitted
from webhook.kit.custom_rules import Outcome
from webhook.kit.limits import MAX_SUGGESTIONS

S = TypeVar("S")
T = TypeVar("T")


class Memo(msgspec.Struct):
    """Values that rules and injections share during a review."""

    suggestions: int = 0
    reported_claims: set[str] = msgspec.field(default_factory=set)
    """Paths of resource claims for which a rule has reported a violation."""
    values: dict[tuple[Any, int], tuple[Any, Any]] = msgspec.field(default_factory=dict)
    """(function, id of the subject) -> (subject, result). The reference to the subject keeps its id unique."""


class Context(msgspec.Struct, frozen=True, eq=False):
    operation: Literal["CREATE", "UPDATE"] = "CREATE"
    namespace: str = ""
    username: str = ""
    groups: tuple[str, ...] = ()
    by_controller: bool = False
    """Whether one of the policy's controllers sent the request, in a cluster with Kueue."""
    old: MPIJob | None = None
    """The stored job on UPDATE, with the operator's defaults; else None."""
    document: bytes | msgspec.Raw = b"{}"
    """The JSON of the job. It contains fields that the decoded job leaves out."""
    old_document: bytes | msgspec.Raw = b"{}"
    """The JSON of the stored job on UPDATE."""
    view: ClusterView = msgspec.field(default_factory=NothingKnown)
    admitted: Admitted = ANYTHING
    """The limits that all rejecting rules set on workers, accelerators and slots. Advice must stay within these limits.
    """
    custom_rules: Mapping[str, Outcome] = {}
    """Outcomes of the policy's custom rules by id. A missing outcome means that the job meets the rule."""
    memo: Memo = msgspec.field(default_factory=Memo)

    def once(self, work: Callable[[S, "Context"], T], subject: S) -> T:
        """`work(subject, self)`, computed once per review for the same object. All callers share the result."""
        key = work, id(subject)
        if (cached := self.memo.values.get(key)) is None:
            cached = self.memo.values[key] = subject, work(subject, self)
        result: T = cached[1]
        return result

    def closest_name(self, name: str, candidates: Callable[[], Iterable[str]]) -> str | None:
        """The most similar name; None if no name is similar, or after MAX_SUGGESTIONS searches in a review."""
        self.memo.suggestions += 1
        return names.closest_name(name, candidates()) if self.memo.suggestions <= MAX_SUGGESTIONS else None
