"""The input of a rule or an injection except the job."""

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
    """Values that rules and injections share in one review."""

    suggestions: int = 0
    """Number of searches for closest names."""
    reported_claims: set[str] = msgspec.field(default_factory=set)
    """Paths of resource claims with a violation of any rule."""
    values: dict[tuple[Any, int], tuple[Any, Any]] = msgspec.field(default_factory=dict)
    """(function, id of its subject) to (subject, result); the reference to the subject keeps its id unique."""


class Context(msgspec.Struct, frozen=True, eq=False):
    """One request: the user, the operation, and the cluster's state."""

    operation: Literal["CREATE", "UPDATE"] = "CREATE"
    namespace: str = ""
    username: str = ""
    groups: tuple[str, ...] = ()
    by_controller: bool = False
    """Whether the requester is one of the policy's controllers, in a cluster with Kueue."""
    old: MPIJob | None = None
    """The stored job on UPDATE, with the operator's defaults applied, else None."""
    document: bytes | msgspec.Raw = b"{}"
    """The JSON of the job in question, for fields that the wire types leave out."""
    old_document: bytes | msgspec.Raw = b"{}"
    """The JSON of the stored job on UPDATE."""
    view: ClusterView = msgspec.field(default_factory=NothingKnown)
    admitted: Admitted = ANYTHING
    """The limits of all rejecting rules on workers, accelerators and slots: advice stays within them."""
    own_rules: Mapping[str, Outcome] = {}
    """Outcomes of the policy's custom rules, by their ids; missing ones hold."""
    memo: Memo = msgspec.field(default_factory=Memo)

    def once(self, work: Callable[[S, "Context"], T], subject: S) -> T:
        """`work(subject, self)`, computed once per review for the same object. All callers share the result."""
        key = work, id(subject)
        if (known := self.memo.values.get(key)) is None:
            known = self.memo.values[key] = subject, work(subject, self)
        result: T = known[1]
        return result

    def closest_name(self, name: str, known: Callable[[], Iterable[str]]) -> str | None:
        """The one of `known` that was probably meant; None if none is similar, and after the first few of a review.

        A search takes milliseconds among many names, and a hundred faults do not need one each.
        """
        self.memo.suggestions += 1
        return names.closest_name(name, known()) if self.memo.suggestions <= MAX_SUGGESTIONS else None
