"""What was asked of a view, and whether it would still give the same answers."""

from collections.abc import Hashable, Mapping
from typing import Any, Final

from webhook.cluster.contents import Groups
from webhook.cluster.group import Group
from webhook.cluster.resource import ByNamespace, K, Resource, T
from webhook.cluster.view import Answer, ClusterView, Unknown

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

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        """The object with this key."""
        answer = self._view.get(resource, key)
        self.facts["get", (resource, key)] = answer
        return answer

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """Every object there is, by key."""
        answer = self._view.all(resource)
        self._note("all", (resource,), answer)
        return answer

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        """Every object in the namespace, by key."""
        answer = self._view.within(resource, namespace)
        self._note("within", (resource, namespace), answer)
        return answer

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """Every object there is, sorted by the resource's `group`."""
        answer = self._view.groups(resource)
        self._note("groups", (resource,), answer)
        return answer

    def _note(self, method: str, asked: tuple[Any, ...], answer: Mapping[Any, Any] | Unknown) -> None:
        if isinstance(answer, _VERSIONED):
            self.facts[method, asked] = answer.version
        elif isinstance(answer, Answer):
            self.facts[method, asked] = answer
        elif len(answer) > MOST or any(isinstance(each, Mapping) for each in answer.values()):
            self.complete = False
        else:
            self.facts[method, asked] = dict(answer)  # as it is now: it changes in place


def hold(facts: Facts, view: ClusterView) -> bool:
    """Whether `view` answers the same."""
    for (method, asked), kept in facts.items():
        answer = getattr(view, method)(*asked)
        if isinstance(answer, _VERSIONED):
            answer = answer.version
        if answer is not kept and answer != kept:
            return False
    return True
