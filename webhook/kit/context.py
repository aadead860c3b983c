"""What a rule or an injection may look at besides the job itself."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from webhook.api import names
from webhook.api.mpijob import MPIJob
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.kit.admitted import ANYTHING, Admitted
from webhook.kit.own_rules import Outcome

MOST_SUGGESTIONS: Final = 5
_SUGGESTIONS: Final = ("suggestions", 0)


class Context(msgspec.Struct, frozen=True, eq=False):
    """One request: who asks for what, and what is known of the cluster."""

    operation: Literal["CREATE", "UPDATE"] = "CREATE"
    namespace: str = ""
    username: str = ""
    groups: tuple[str, ...] = ()
    old: MPIJob | None = None
    """The stored job on UPDATE, with the operator's defaults applied, else None."""
    document: bytes | msgspec.Raw = b"{}"
    """The JSON of the job in question, for fields that the wire types leave out."""
    old_document: bytes | msgspec.Raw = b"{}"
    """The JSON of the stored job on UPDATE."""
    view: ClusterView = msgspec.field(default_factory=NothingKnown)
    admitted: Admitted = ANYTHING
    """What all rules that refuse admit of workers, accelerators and slots: advice stays within it."""
    own_rules: Mapping[str, Outcome] = {}
    """What came of the policy's own rules, by their ids; those that are not here hold."""
    memo: dict[tuple[str, int], Any] = msgspec.field(default_factory=dict)
    """What several rules work out of the same object: (what, id of the object) to result."""

    def closest_name(self, name: str, known: Callable[[], Iterable[str]]) -> str | None:
        """The one of `known` that was probably meant; None where none is near, and after the first few of a review.

        Looking for it takes milliseconds among many names, and nobody needs it for each of a hundred faults.
        """
        looked_for: int = self.memo.get(_SUGGESTIONS, 0)
        self.memo[_SUGGESTIONS] = looked_for + 1
        return names.closest_name(name, known()) if looked_for < MOST_SUGGESTIONS else None
