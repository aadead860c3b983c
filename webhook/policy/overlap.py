"""Whether two policy documents can ever be for the same namespace."""

from collections import defaultdict
from collections.abc import Sequence

from webhook.api.labels import Requirement
from webhook.policy.layers import Layer


def may_meet(first: Layer, second: Layer) -> bool:
    """False only where their selectors exclude each other, whatever labels a namespace has."""
    by_key: dict[str, list[Requirement]] = defaultdict(list)
    for layer in (first, second):
        selector = layer.document.selector
        for requirement in (selector.requirements or ()) if selector is not None else ():
            by_key[requirement.key].append(requirement)
    return all(map(_can_hold, by_key.values()))


def _can_hold(requirements: Sequence[Requirement]) -> bool:
    """Whether one label can fulfil all of them."""
    wanted = [requirement for requirement in requirements if requirement.wanted]
    if any(not requirement.wanted and requirement.values is None for requirement in requirements):
        return not wanted
    choices = [requirement.values for requirement in wanted if requirement.values is not None]
    if not choices:
        return True
    excluded = frozenset[str]().union(*(r.values or () for r in requirements if not r.wanted))
    return bool(frozenset.intersection(*choices) - excluded)
