"""The service's connection to its cluster: the view, the policies in ConfigMaps, and single calls."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from webhook.admission.what_if.replay import Replayer
from webhook.api import mpijob
from webhook.api.review import AdmissionRequest
from webhook.client import access_reviews, calls
from webhook.client.calls import Client, ClusterError
from webhook.client.connection import METADATA, Connection
from webhook.client.live_view import LiveView
from webhook.client.paging import pages
from webhook.client.scc_grants import GrantsReader
from webhook.client.watch import STALE_AFTER, Watch
from webhook.client.wire import WatchFault
from webhook.cluster.resource import Resource, WatchedPlace
from webhook.cluster.resources import watched_resources
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import ClusterView
from webhook.controllers.reservations.ledger import LedgerApi, QuotaLedger
from webhook.policy.in_force import PolicySet
from webhook.policy.layers import Layer
from webhook.policy.store import Loaded
from webhook.server.background import in_background
from webhook.server.limits import JOBS_PER_PAGE
from webhook.server.metrics import Value
from webhook.server.policy_watch import POLICIES, PolicyWatch, policies
from webhook.work_limit import TooExpensive, limited


@dataclass(frozen=True, slots=True)
class ClusterLink:
    """The connection to a cluster."""

    api: Client
    """The client for single calls."""
    connection: Connection
    """The connection for lists and watches."""
    view: LiveView
    watches: tuple[Watch[Any, Any], ...]
    """All watches, for metrics."""
    policies: PolicyWatch
    read: asyncio.Event
    """Set once each watch has read its objects, was refused or has timed out."""
    settled: asyncio.Event
    """Set once `read` is set and policies are in force."""
    ledger: QuotaLedger
    """Judges quotas with reservations that all replicas share."""
    grants: GrantsReader
    """The SCCs of OpenShift that accounts may use."""
    faults: dict[str, str] = field(default_factory=dict)
    """The failures of background tasks that were restarted, by task."""

    async def first_answer(self, seconds: float) -> None:
        """Return once `settled` is set, or namespaces cannot be read, or `seconds` have passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (self.settled.is_set() or self.view.reason(NAMESPACES)):  # noqa: ASYNC110 - a watch has no event for it
                    await asyncio.sleep(0.02)

    def concerns(self) -> dict[str, str]:
        """Problems with the cluster's data, for the administrator. The service stays ready."""
        unknown = {f"unknown-{name}": f"no information about {name}: {why}" for name, why in self.view.faults().items()}
        restarted = {f"background-{name}": fault for name, fault in self.faults.items()}
        stale = {f"stale-{watch.kind.name}": _out_of_date(watch) for watch in self.watches if watch.stale}
        return unknown | stale | self.policies.concerns() | restarted

    def misleading_caches(self) -> str:
        """Stale caches of namespaces and policies, if other caches are fresh.

        In an outage of the API server all caches become stale together. No cache is reported then, because all replicas
        would become unready.
        """
        freshest = min(watch.age for watch in self.watches)
        choosing = [watch for watch in self.watches if watch.kind.name in {NAMESPACES.name, POLICIES} and watch.synced]
        return "; ".join(_out_of_date(watch) for watch in choosing if watch.age - freshest > STALE_AFTER)

    async def namespace(self, name: str) -> Namespace:
        """The current Namespace; ClusterError if it cannot be read or does not exist."""
        path = f"{NAMESPACES.path('v1')}/{quote(name, safe='')}"
        namespace = NAMESPACES.project(msgspec.json.encode(await self.api.request("GET", path, accept=METADATA % "")))
        if namespace is None or namespace.name != name:
            raise ClusterError(f"what answers at {self.api.host} is not an API server")
        return namespace

    async def may_exempt(self, request: AdmissionRequest, rules: Iterable[str]) -> Mapping[str, bool]:
        """For each rule, whether the requester may exempt jobs from the rule; ClusterError if that is unknown."""
        return await access_reviews.may_exempt(self.api, request, rules)

    async def policy_impact(
        self, before: PolicySet, after: PolicySet, *, today: date, time_left: Callable[[], float]
    ) -> list[str]:
        """Lines about the effect on existing jobs if `after` replaces `before`."""
        return await policy_impact(self.connection, self.view, before, after, today=today, time_left=time_left)

    def measured(self) -> Iterator[Value]:
        faults = self.view.faults()
        for name, count in self.view.unknown.items():
            yield "cache_faulty", (name,), name in faults
            yield "cache_unknown_answers_total", (name,), count
        yield "policies_unread", (), bool(self.policies.problem)


def _out_of_date(watch: Watch[Any, Any]) -> str:
    return f"{watch.kind.name} may be out of date, complete {watch.age:.0f} s ago: {watch.reason or 'no answer yet'}"


@asynccontextmanager
async def linked(
    kubeconfig: Path | None,
    *,
    namespace: str,
    kueue_namespace: str,
    base: tuple[Layer, ...],
    apply: Callable[[PolicySet, Loaded], None],
    log: Any,
    more: Iterable[Resource[Any, Any]] = (),
    on_quota: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[ClusterLink]:
    """Keep a link up to date until the block ends. ClusterError if there is no valid client configuration.

    `apply` gets the policies after each change: `base`, overridden by the ConfigMaps in `namespace`. `more` are
    additional resources to watch. `on_quota` gets the outcome of each verdict on quotas.
    """
    api = await calls.connect(kubeconfig)
    try:
        connection = Connection(api.raw, renew=api.renew)
        places = {WatchedPlace.OWN: namespace, WatchedPlace.KUEUE: kueue_namespace}
        view = LiveView(connection, log=log, resources=(*watched_resources(), *more), places=places)
        configmaps = Watch(policies(namespace), connection, log=log)
        policy_watch = PolicyWatch(watch=configmaps, api=api, namespace=namespace, apply=apply, log=log, base=base)
        ledger = QuotaLedger(LedgerApi(api, connection, namespace), view, log=log, on_outcome=on_quota)
        link = ClusterLink(
            api,
            connection,
            view,
            (*view.watches, configmaps),
            policy_watch,
            asyncio.Event(),
            asyncio.Event(),
            ledger,
            GrantsReader(api, view),
        )

        async def settle() -> None:
            await view.settled()
            if absent := view.not_installed():
                log.info("not installed", kinds=absent)
            link.read.set()
            await policy_watch.loaded()
            link.settled.set()

        work = {
            "caches": view.run,
            "policy-list": configmaps.run,
            "policies": policy_watch.run,
            "quota-ledger": ledger.run,
            "first-lists": settle,
        }
        async with AsyncExitStack() as running:
            running.push_async_callback(ledger.close)
            for name, run in work.items():
                await running.enter_async_context(in_background(name, run, log=log, faults=link.faults))
            yield link
    finally:
        await api.close()


JOBS: Final = f"/apis/{mpijob.API_VERSION}/mpijobs"


async def policy_impact(
    connection: Connection,
    view: ClusterView,
    before: PolicySet,
    after: PolicySet,
    *,
    today: date,
    time_left: Callable[[], float],
) -> list[str]:
    """A line on the verdicts that would change, and a line on the injections that would change.

    The lines cover as many jobs as can be listed and judged in time.
    """
    replayer = Replayer(before=before, after=after, view=view, today=today)
    listed = False
    try:
        async with asyncio.timeout(max(0, time_left())):
            async for page in pages(connection.list_page, JOBS, limit=JOBS_PER_PAGE):
                listed = True
                for job in page.items or ():
                    try:
                        replayer.count(limited(partial(replayer.judge, job)))
                    except TooExpensive:
                        replayer.result.too_expensive += 1
                    await asyncio.sleep(0)  # so that reviews go on
    except TimeoutError:
        if not listed:
            return ["impact not computed: existing jobs were not listed in time"]
        replayer.result.complete = False
    except WatchFault as fault:
        return [f"impact not computed: existing jobs cannot be listed ({fault})"]
    result = replayer.result
    return [line for line in (result.summary(), result.injections_summary()) if line]
