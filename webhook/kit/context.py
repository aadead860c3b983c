"""What a rule or an injection may look at besides the job itself."""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from webhook.api.mpijob import MPIJob
from webhook.cluster.view import ClusterView, NothingKnown


@dataclass(frozen=True, slots=True)
class Context:
    """One request: who asks for what, and what is known of the cluster."""

    operation: Literal["CREATE", "UPDATE"] = "CREATE"
    namespace: str = ""
    username: str = ""
    groups: tuple[str, ...] = ()
    old: MPIJob | None = None
    """The stored job on UPDATE, with the operator's defaults applied, else None."""
    document: bytes | msgspec.Raw = b"{}"
    """The JSON of the job in question, for fields that the wire types leave out."""
    view: ClusterView = field(default_factory=NothingKnown)
    memo: dict[tuple[str, int], Any] = field(default_factory=dict, compare=False, repr=False)
    """What several rules work out of the same object: (what, id of the object) to result."""
