"""Reads the SCCs (OpenShift's SecurityContextConstraints) that accounts may use.

An account may use an SCC if a list in the SCC names it, or if RBAC grants it the verb `use` on the SCC.
"""

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic
from typing import cast

from webhook.client.access_reviews import Right, has_right
from webhook.client.calls import Client, ClusterError
from webhook.client.limits import MAX_SCC_GRANTS, SCC_GRANTS_SECONDS
from webhook.cluster.resource import ByNamespace, K, Resource, T
from webhook.cluster.resources.sccs import API_GROUP, SECURITY_CONTEXT_CONSTRAINTS, SecurityContextConstraints
from webhook.cluster.scc_grants import SCC_GRANTS, SccGrants, groups, lists
from webhook.cluster.view import UNKNOWN, Answer, ClusterView, ViewOf


class GrantsReader:
    """Queries the API server, and caches each answer for SCC_GRANTS_SECONDS: several reviews of a job need it."""

    def __init__(self, api: Client, view: ClusterView, now: Callable[[], float] = monotonic) -> None:
        self._api = api
        self._view = view
        self._now = now
        self._cached: dict[ByNamespace, tuple[float, SccGrants]] = {}

    def over(self, view: ClusterView, missing: set[ByNamespace]) -> ClusterView:
        """Add the cached grants to `view`. The keys of grants that are read but not cached are added to `missing`."""
        return _GrantsView(view, self, missing)

    def cached(self, key: ByNamespace) -> SccGrants | None:
        """The cached grants of (namespace, account), or None."""
        until, grants = self._cached.get(key, (0.0, None))
        return grants if self._now() < until else None

    async def read(self, keys: Iterable[ByNamespace]) -> None:
        """Read and cache the grants of each (namespace, account). Without an answer they stay unknown."""
        constraints = self._view.all(SECURITY_CONTEXT_CONSTRAINTS)
        if constraints is UNKNOWN:
            return
        if len(self._cached) >= MAX_SCC_GRANTS:
            self._cached.clear()
        await asyncio.gather(*(self._read(*key, constraints.values()) for key in keys))

    async def _read(self, namespace: str, account: str, constraints: Iterable[SecurityContextConstraints]) -> None:
        subject = {"user": account, "groups": [*groups(account)]}

        async def may_use(scc: SecurityContextConstraints) -> bool:
            if lists(scc, account):
                return True
            right = Right("use", API_GROUP, SECURITY_CONTEXT_CONSTRAINTS.plural, namespace, scc.name)
            return await has_right(self._api, right, subject)

        constraints = [*constraints]
        try:
            answers = await asyncio.gather(*map(may_use, constraints))
        except ClusterError:
            return
        names = frozenset(scc.name for scc, usable in zip(constraints, answers, strict=True) if usable)
        self._cached[namespace, account] = self._now() + SCC_GRANTS_SECONDS, SccGrants(namespace, account, names)


class _GrantsView(ViewOf):
    def __init__(self, view: ClusterView, reader: GrantsReader, missing: set[ByNamespace]) -> None:
        super().__init__(view)
        self._reader = reader
        self._missing = missing

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        if resource is not cast("object", SCC_GRANTS):
            return super().get(resource, key)
        grants = self._reader.cached(cast("ByNamespace", key))
        if grants is None:
            self._missing.add(cast("ByNamespace", key))
        return UNKNOWN if grants is None else cast("T", grants)
