"""Lists and watches one kind of object. Recovers from every fault, and does not flood the API server."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Generic, NoReturn
from urllib.parse import urlencode

from msgspec import Raw

from webhook.client import wire
from webhook.client.connection import Connection
from webhook.client.paging import SMALLER, pages, slices
from webhook.client.store import Kind, Store
from webhook.client.wire import Event, FaultReason, Page, WatchFault
from webhook.cluster.resource import K, T
from webhook.cluster.view import UNKNOWN, Answer

# Seconds.
LAST_DELAY = 30  # delays between retries grow from 1 to this; each is shortened at random, by up to half
LONGEST_DELAY = 300  # the maximum, even if the API server requests a longer delay
DENIED_DELAY = 300  # after BELIEVED denials, because each denial is a line in the cluster's audit log
STEADY = 60  # a watch that worked this long resets the count of failures
WATCH_SECONDS = (240, 300)  # random, to reconnect the watches of replicas and kinds at different times
RELIST_AFTER = 600  # silence of a watch after which the objects are listed again
PROVEN_AFTER = 5  # a watch that lasts so long began at the requested version: otherwise it would have ended
STALE_AFTER = 150  # a healthy cache is never older, because a quiet watch is opened again every 90 s
# The minimum number of objects on a page. Timeouts make pages smaller, down to this number.
LEAST_PAGE = 16

# After this number of denials in a row, the records are unknown. An API server that has just started denies every
# request.
BELIEVED = 3

# The service has no right to read the kind, or the kind is not installed.
DENIALS = {FaultReason.FORBIDDEN, FaultReason.NOT_FOUND}
# After these faults the objects must be listed again.
RELIST = DENIALS | {FaultReason.EXPIRED, FaultReason.REJECTED, FaultReason.INTERNAL}
# If a watch ends with one of these faults, the records were complete when the watch was opened.
UNBROKEN = {FaultReason.ENDED, FaultReason.STALLED, FaultReason.CUT}


class Watch(Generic[K, T]):
    """The records of one kind, which `run` keeps up to date. The records stay during an outage."""

    synced: bool = False
    """Whether a list was read completely, and access was not denied afterwards."""
    reason: str = ""
    """The reason why the watch fails; empty while it works."""
    requests: int = 0
    """The number of requests so far."""
    events: int = 0
    """The number of changes so far."""
    restarts: Counter[FaultReason]
    """The number of lists and watches that have ended so far, by reason."""

    def __init__(
        self,
        kind: Kind[K, T],
        connection: Connection,
        *,
        log: Any,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.kind = kind
        self.store = Store(kind, log=log)
        self.restarts = Counter()
        self._connection = connection
        self._log = log
        self._clock = clock
        self._sleep = sleep
        self._uniform = uniform
        self._version = ""  # the resource version to resume from; empty to list first
        self._contact = self._heard = -inf
        self._opened = inf
        self._denials = 0  # in a row
        self._denied = False
        self._not_found = False
        self._page_size = kind.page
        self._settled = asyncio.Event()

    @property
    def age(self) -> float:
        """Seconds since the last time when the records were certainly complete; infinite before the first list."""
        return self._clock() - (self._contact if self._opened == inf else max(self._contact, self._opened))

    @property
    def silence(self) -> float:
        """Seconds since the API server last sent something."""
        return self._clock() - self._heard

    @property
    def faulty(self) -> bool:
        """Whether the records are unknown although the API server serves the kind."""
        return bool(self.requests) and not self.known and not self._not_found

    @property
    def not_installed(self) -> bool:
        """Whether the API server does not serve the kind."""
        return self._not_found and not self.synced

    @property
    def refused(self) -> bool:
        """Whether the kind is not installed, or the service may not read it."""
        return self._denied and not self.synced

    @property
    def known(self) -> bool:
        """Whether the records were read, and are not too old."""
        return self.synced and self.age <= self.kind.stale_after

    @property
    def stale(self) -> bool:
        return self.synced and self.age > STALE_AFTER

    def get(self, key: K) -> T | Answer:
        """The record; ABSENT if the object does not exist or is ignored; UNKNOWN if it could not be read."""
        return self.store.get(key) if self.known else UNKNOWN

    async def settled(self) -> None:
        """Return when the first list is complete or was denied."""
        await self._settled.wait()

    async def run(self) -> NoReturn:
        """List, watch and recover forever.

        A retry is delayed, except in two cases: a watch of at least `STEADY` seconds ended or got no more data, or the
        version from an earlier list has expired.
        """
        failures = 0
        fault: WatchFault | None = None
        while True:
            listed = not self._version or self.silence > RELIST_AFTER
            try:
                if fault is not None and fault.reason is FaultReason.UNAUTHORIZED:
                    await self._connection.renew()
                if listed:
                    await self._list()
                fault = await self._watch()
            except WatchFault as caught:
                fault = caught
            except Exception as error:  # noqa: BLE001 - a bug must not end the cache
                fault = WatchFault(FaultReason.INTERNAL, wire.place(error))
            steady = self._closed(fault) >= STEADY
            self.restarts[fault.reason] += 1
            if steady and fault.reason in {FaultReason.ENDED, FaultReason.STALLED}:
                failures = 0
                continue  # the watch ended as requested, or the cluster is quiet
            failures = 1 if steady else failures + 1
            self._failed(fault)
            if fault.reason is not FaultReason.EXPIRED or (listed and not steady):
                await self._sleep(self._delay(fault, failures))

    async def _list(self) -> None:
        contents = self.store.contents()
        version = ""
        larger = min(self.kind.page, self._page_size * 2)
        try:
            async for page in pages(self._page, self.kind.path, limit=self._page_size, **self._selectors):
                for objects in slices(page.items or ()):
                    self.store.read(objects, contents)
                    await asyncio.sleep(0)
                version = version or page.metadata.resource_version
        except WatchFault as fault:
            if fault.reason is FaultReason.STALLED:
                self._page_size = max(min(LEAST_PAGE, self.kind.page), self._page_size // SMALLER)
            elif fault.reason is FaultReason.EXPIRED:  # the token expired: too many pages
                self._page_size = larger
            raise
        self._page_size = larger
        self._version = version
        self.synced = True
        self._denials = 0
        self._settled.set()
        self._touch()
        self.store.replace(contents)

    async def _page(self, target: str) -> Page[Raw]:
        self.requests += 1
        return await self._connection.list_page(target, metadata_only=self.kind.metadata_only)

    async def _watch(self) -> WatchFault:
        """Follow the changes since the last version. Return the fault ENDED, or raise another fault."""
        self.requests += 1
        seconds = round(self._uniform(*WATCH_SECONDS))
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": seconds,
            "resourceVersion": self._version,
            **self._selectors,
        }
        target = f"{self.kind.path}?{urlencode(query)}"
        received = False
        async with self._connection.watch(target, seconds, metadata_only=self.kind.metadata_only) as lines:
            self._opened = self._clock()
            self._recovered()
            async for line in lines:
                self._apply(wire.decode(wire.events, line))
                self._touch()
                received = True
        if not received and self._clock() - self._opened < STEADY:
            self._version = ""  # the answer possibly comes from a proxy
            raise WatchFault(FaultReason.GARBAGE, "an empty watch")
        return WatchFault(FaultReason.ENDED)

    def _apply(self, event: Event) -> None:
        if event.type == "ERROR":
            raise wire.status_fault(event.object)
        metadata = wire.decode(wire.objects, event.object).metadata
        if not metadata.resource_version:
            raise WatchFault(FaultReason.GARBAGE, "an event without version")
        match event.type:
            case "ADDED" | "MODIFIED":
                self.store.put(metadata, event.object)
            case "DELETED":
                self.store.remove(metadata)
            case "BOOKMARK":
                pass
            case _:
                raise WatchFault(FaultReason.GARBAGE, f"an event of type {event.type[:100]}")
        self.events += event.type != "BOOKMARK"
        self._version = metadata.resource_version

    @property
    def _selectors(self) -> dict[str, str]:
        selectors = {"labelSelector": self.kind.label_selector, "fieldSelector": self.kind.field_selector}
        return {name: selector for name, selector in selectors.items() if selector}

    def _closed(self, fault: WatchFault) -> float:
        """Record that no watch is open. Return the seconds for which a watch was open; negative if none was."""
        opened, self._opened = self._opened, inf
        lasted = self._clock() - opened
        if lasted >= PROVEN_AFTER and fault.reason in UNBROKEN:
            self._contact = max(self._contact, opened)
        return lasted

    def _touch(self) -> None:
        """Note that the records are complete now."""
        self._contact = self._heard = self._clock()
        self._recovered()

    def _recovered(self) -> None:
        if self.reason:
            self._log.info("watch recovered", kind=self.kind.name)
            self.reason = ""

    def _failed(self, fault: WatchFault) -> None:
        if fault.reason in RELIST:
            self._version = ""
        was_synced = self.synced
        self._denied = fault.reason in DENIALS
        self._not_found = fault.reason is FaultReason.NOT_FOUND
        if self._denied:
            self._denials += 1
            self.synced = self.synced and self._denials < BELIEVED
            self._settled.set()
        if fault.reason is FaultReason.ENDED:
            return
        if self.reason != str(fault):
            # Most clusters lack some kinds. The service logs all of them on one line.
            log = self._log.debug if self._not_found and not was_synced else self._log.warning
            log("watch failed", kind=self.kind.name, reason=str(fault))
        self.reason = str(fault)

    def _delay(self, fault: WatchFault, failures: int) -> float:
        """Seconds to wait after this number of failures in a row, the last of which is `fault`."""
        delay = min(LAST_DELAY, 2.0 ** min(failures - 1, 5)) * self._uniform(0.5, 1)
        if fault.reason is FaultReason.FORBIDDEN and self._denials > BELIEVED:
            delay = DENIED_DELAY * self._uniform(0.5, 1)
        return max(delay, min(LONGEST_DELAY, fault.retry_after) * self._uniform(1, 1.25))
