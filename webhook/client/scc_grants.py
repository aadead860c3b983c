"""Reads which SCCs (OpenShift's SecurityContextConstraints) an account may use.

An account may use an SCC if the SCC itself names the account, or if RBAC grants the account the verb `use` on the SCC.
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
    """Queries the API server, and caches each answer for SCC_GRANTS_SECONDS."""

    def __init__(self, api: Client, view: ClusterView, now: Callable[[], float] = monotonic) -> None:
        self._api = api
        self._view = view
        self._now = now
        self._cached: dict[ByNamespace, tuple[float, SccGrants]] = {}

    def over(self, view: ClusterView, missing: set[ByNamespace]) -> ClusterView:
        """A view with the cached grants. A query for other grants adds their key to `missing`."""
        return _GrantsView(view, self, missing)

    def cached(self, key: ByNamespace) -> SccGrants | None:
        """The cached grants of `key`, a (namespace, account); None if there are none."""
        until, grants = self._cached.get(key, (0.0, None))
        return grants if self._now() < until else None

    async def read(self, keys: Iterable[ByNamespace]) -> None:
        """Read and cache the grants of each (namespace, account). Grants without an answer are not cached."""
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
