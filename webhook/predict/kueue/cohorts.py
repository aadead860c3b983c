"""The maximum of a flavor that a ClusterQueue can get: its own quota, and what it can borrow from its cohort.

As in kueue `pkg/cache/scheduler/resource_node.go`: ClusterQueues and Cohorts form a tree. A node lends quota to its
parent up to its lending limit, and keeps the rest. A node gets at most its quota plus its borrowing limit.
"""

from collections import Counter
from collections.abc import Mapping

from webhook.api.kueue import UNLIMITED, FlavorResource, Quota, minus, plus
from webhook.cluster.contents import Group
from webhook.cluster.resources.cluster_queues import CLUSTER_QUEUES, ClusterQueue
from webhook.cluster.resources.cohorts import COHORTS, Cohort
from webhook.cluster.view import UNKNOWN, ClusterView, Unknown

_NOTHING = Quota()


def within_reach(view: ClusterView, queue: ClusterQueue, pair: FlavorResource) -> int:
    """The maximum when nothing is in use; UNLIMITED if unknown. Visits all cohorts of the tree, which is slow."""
    own = queue.quotas.get(pair, _NOTHING)
    if not queue.cohort:
        return own.nominal
    path = _ancestors(view, queue.cohort)
    if path is UNKNOWN:
        return UNLIMITED
    quota_of_cohorts = _subtrees(view, path[-1], pair)
    if quota_of_cohorts is UNKNOWN:
        return UNLIMITED
    reach = quota_of_cohorts[path[-1]]
    for name in reversed(path[:-1]):
        reach = _reach(_quota(view, name, pair), quota_of_cohorts[name], reach)
    return _reach(own, own.nominal, reach)


def _reach(quota: Quota, subtree: int, of_parent: int) -> int:
    reach = plus(_kept(quota, subtree), of_parent)
    return reach if quota.borrowing_limit is None else min(plus(subtree, quota.borrowing_limit), reach)


def _kept(quota: Quota, subtree: int) -> int:
    return 0 if quota.lending_limit is None else max(0, minus(subtree, quota.lending_limit))


def _ancestors(view: ClusterView, cohort: str) -> list[str] | Unknown:
    """The names from this cohort up to the root; UNKNOWN if one is unknown or if they form a cycle.

    Kueue stops all queues of a cycle.
    """
    path: list[str] = []
    while cohort:
        if cohort in path:
            return UNKNOWN
        path.append(cohort)
        parent = view.get(COHORTS, cohort)
        if parent is UNKNOWN:
            return UNKNOWN
        cohort = parent.parent if isinstance(parent, Cohort) else ""
    return path


def _subtrees(view: ClusterView, root: str, pair: FlavorResource) -> Mapping[str, int] | Unknown:
    """For each cohort of the tree, its own quota plus the quota that its ClusterQueues and child cohorts lend."""
    children, members = view.groups(COHORTS), view.groups(CLUSTER_QUEUES)
    if children is UNKNOWN or members is UNKNOWN:
        return UNKNOWN
    order = [root]
    for name in order:  # the list grows, but each cohort is added once: it has one parent, and the root has none
        order += children.get(name, {})
    total: dict[str, int] = {}
    for name in reversed(order):
        quota_here = plus(_quota(view, name, pair).nominal, _lent(members.get(name, {}))[pair])
        for child, cohort in children.get(name, {}).items():
            quota = cohort.quotas.get(pair, _NOTHING)
            quota_here = plus(quota_here, minus(total[child], _kept(quota, total[child])))
        total[name] = quota_here
    return total


class _Lent:
    """The quota that the ClusterQueues of a cohort lend, by flavor and resource."""

    def __init__(self, total: Counter[FlavorResource]) -> None:
        self._total = total

    def __getitem__(self, pair: FlavorResource) -> int:
        return min(self._total[pair], UNLIMITED)

    def changed(self, old: ClusterQueue | None, new: ClusterQueue | None) -> None:
        for queue, step in ((old, -1), (new, 1)):
            for pair, quota in queue.quotas.items() if queue is not None else ():
                self._total[pair] += step * minus(quota.nominal, _kept(quota, quota.nominal))

    def copy(self) -> "_Lent":
        return _Lent(self._total.copy())


def _summed(queues: Mapping[str, ClusterQueue]) -> _Lent:
    lent = _Lent(Counter())
    for queue in queues.values():
        lent.changed(None, queue)
    return lent


def _lent(queues: Mapping[str, ClusterQueue]) -> _Lent:
    # A cohort may have thousands of ClusterQueues, so the sum is computed once and then updated.
    return queues.derived(_summed) if isinstance(queues, Group) else _summed(queues)


def _quota(view: ClusterView, cohort: str, pair: FlavorResource) -> Quota:
    stored = view.get(COHORTS, cohort)
    return stored.quotas.get(pair, _NOTHING) if isinstance(stored, Cohort) else _NOTHING
