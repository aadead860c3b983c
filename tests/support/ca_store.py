"""A cluster in memory with a Secret and some caBundles. Every call takes time."""

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random

from certs.store import Bundle, Conflict, Secret, StoreError

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


class Clock:
    def __init__(self, now=START):
        self.now = now

    def __call__(self):
        return self.now


class Cluster:
    """The objects, and the failures that a test has set."""

    def __init__(self, *, bundles=("validating", "mutating"), seed=0, clock=None):
        self.data = {}
        self.version = 1
        self.bundles = dict.fromkeys(bundles, (b"", b""))
        self.versions = dict.fromkeys(bundles, 1)
        self.random = Random(seed)
        self.clock = clock  # the API server's clock, or None for an API server that does not return the time
        self.forbidden = set()
        self.down = False
        self.watch = lambda: None  # called after each change
        self.passes = lambda: None  # called during each call
        self.writes = []
        self.conflicts = 0

    def overwrite(self, name, pem):
        """Overwrite caBundles, like a foreign client."""
        self.bundles[name] = (pem,) * len(self.bundles[name])
        self.versions[name] += 1
        self.watch()

    def set_data(self, data):
        """Overwrite the Secret, like a foreign client."""
        self.data = data
        self.version += 1

    async def _call(self, action):
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        self.passes()
        if self.down:
            raise StoreError("the API server does not answer")
        if action in self.forbidden:
            raise StoreError(f"may not {action}")

    async def read_secret(self):
        await self._call("read the Secret")
        if self.data is None:
            return None
        return Secret(dict(self.data), str(self.version), self.clock and self.clock())

    async def write_secret(self, data, resource_version):
        await self._call("write the Secret")
        if self.data is None or resource_version != str(self.version):
            self.conflicts += 1
            raise Conflict("the Secret has changed")
        self.data = dict(data)
        self.version += 1
        self.writes.append("secret")
        self.watch()

    async def read_bundles(self):
        await self._call("read caBundles")
        return [Bundle(name, pems, str(self.versions[name])) for name, pems in self.bundles.items()]

    async def write_bundle(self, bundle, pem):
        await self._call(f"write {bundle.name}")
        if bundle.name not in self.bundles or bundle.resource_version != str(self.versions[bundle.name]):
            self.conflicts += 1
            raise Conflict(f"{bundle.name} has changed")
        self.writes.append(bundle.name)
        self.overwrite(bundle.name, pem)
