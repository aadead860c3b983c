"""What was asked of a view, and whether it would still give the same answers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from webhook.cluster.contents import Groups
from webhook.cluster.group import Group
from webhook.cluster.view import ClusterView

# Objects of a list without a version that are compared.
MOST: Final = 16
_VERSIONED: Final = Groups, Group

Facts = dict[tuple[str, tuple[Any, ...]], object]
"""By method and arguments: what was answered."""


class AskedView:
    """A ClusterView that answers as `view` does."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.facts: Facts = {}
        """What was asked."""
        self.complete = True
        """Whether all of it is in `facts`: a long list without a version is not."""

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return partial(self._noted, method)

    def _noted(self, method: str, *asked: Any) -> Any:
        answer = getattr(self._view, method)(*asked)
        kept: object = answer
        if isinstance(answer, _VERSIONED):
            kept = answer.version
        elif isinstance(answer, Mapping):
            if len(answer) > MOST or any(isinstance(each, Mapping) for each in answer.values()):
                self.complete = False
                return answer
            kept = dict(answer)  # as it is now: it changes in place
        self.facts[method, asked] = kept
        return answer


def hold(facts: Facts, view: ClusterView) -> bool:
    """Whether `view` answers the same."""
    for (method, asked), kept in facts.items():
        answer = getattr(view, method)(*asked)
        if isinstance(answer, _VERSIONED):
            answer = answer.version
        if answer is not kept and answer != kept:
            return False
    return True
