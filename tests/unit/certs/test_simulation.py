"""A simulated year of rotations. Each client has the current or a recent caBundle, and no call may fail."""

import asyncio
from datetime import timedelta
from random import Random

import pytest

from certs.authority import Authority
from certs.rotation import Phase, RotationSettings
from certs.self_managed import SelfManaged
from tests.support.ca_store import DAY, HOUR, MINUTE, START, Clock, Cluster
from tests.support.trust import accepts

HOST = "webhook.training.svc"
SETTINGS = RotationSettings(name="test CA", ca_lifetime=30 * DAY, leaf_lifetime=7 * DAY)
# Maximum age of an API server's copy of a caBundle. It is less than the grace time.
LAG = timedelta(seconds=100)
STEADY_STEP = 6 * HOUR


class World:
    """Replicas, the cluster, and clients. After every change, the clients check every leaf."""

    def __init__(self, seed, *, replicas=2):
        self.random = Random(seed)
        self.clock = Clock()
        self.cluster = Cluster(bundles=("validating", "mutating", "conversion"), seed=seed)
        self.cluster.watch = self.changed
        self.cluster.passes = self.passes
        self.seen = []  # (time, caBundles at this time), not older than LAG
        self.replicas = [self.start() for _ in range(replicas)]
        self.cas = set()
        self.checks = 0
        self.accepted = {}  # (caBundle, leaf): the time until which the pair needs no new check
        self.accidents = 0
        self.recovering = False
        self.cut_off = None
        self.joined = START

    def start(self):
        return SelfManaged(
            self.cluster, [HOST], settings=SETTINGS, clock=self.clock, random=Random(self.random.random())
        )

    def passes(self):
        self.clock.now += timedelta(seconds=self.random.random())

    def changed(self):
        self.seen.append((self.clock.now, {pem for pems in self.cluster.bundles.values() for pem in pems}))
        self.check()

    def known_bundles(self):
        """Every caBundle that a client may have now."""
        while len(self.seen) > 1 and self.seen[1][0] <= self.clock.now - LAG:
            del self.seen[0]
        return frozenset().union(*(bundles for _, bundles in self.seen))

    def check(self):
        """Check that every client accepts every replica, with each caBundle that the client may have."""
        bundles = self.known_bundles()
        for replica in self.replicas:
            # A replica that is disconnected for long cannot renew its leaf, and is not ready.
            if not replica.leaf or not replica.leaf.valid(self.clock.now):
                continue
            for bundle in bundles - {b""}:
                pair = (bundle, replica.leaf.certificate_pem)
                if self.clock.now >= self.accepted.get(pair, START):
                    assert accepts(*pair, host=HOST, now=self.clock.now)
                    self.accepted[pair] = self.clock.now + HOUR
                    self.checks += 1

    async def settle(self):
        """Run a pass of all connected replicas, in parallel.

        After an accident, a replica without a leaf gets a leaf of a published CA at once. A client with an older
        caBundle would reject this leaf. This case is not checked, because the replica does not serve yet.
        """
        if self.clock.now >= self.joined and not self.recovering:
            self.cut_off, self.joined = None, self.clock.now + self.random.random() * 8 * DAY
            if self.random.random() < 0.7:
                self.cut_off = self.random.choice(self.replicas)
        looking = [replica for replica in self.replicas if replica is not self.cut_off]
        await asyncio.gather(*(replica.reconcile() for replica in looking))
        assert not any(replica.last_error for replica in looking)
        if "ca.crt" in self.cluster.data:
            self.cas.add(self.cluster.data["ca.crt"])
        self.recovering = self.recovering and not self.calm

    @property
    def calm(self):
        """Whether no rotation is in progress."""
        return "ca.crt" in self.cluster.data and "next-ca.crt" not in self.cluster.data

    def accident(self):
        """Damage the Secret."""
        damage = self.random.choice(
            [
                dict.clear,
                lambda data: data.update({"ca.crt": data["ca.crt"][:200]}),
                lambda data: data.update({"ca.key": Authority("other", lifetime=DAY).key_pem}),
                lambda data: data.update({"next-ca.crt": b"nonsense", "old-ca.crt": b"nonsense"}),
                lambda data: data.pop("ca.key"),
            ]
        )
        data = dict(self.cluster.data)
        damage(data)
        self.cluster.set_data(data)
        self.recovering = True
        self.accidents += 1

    async def live(self, days):
        """Let this number of days pass, in steps of at most a minute during a rotation."""
        while self.clock.now < START + days * DAY:
            await self.settle()
            self.check()
            self.clock.now += MINUTE * self.random.uniform(0.2, 1)
            self.check()
            if self.calm:
                self.clock.now += STEADY_STEP * self.random.random()
                self.check()
                if self.random.random() < 0.05:
                    self.replicas[self.random.randrange(2)] = self.start()
                elif self.random.random() < 0.02:
                    self.accident()


@pytest.mark.parametrize(("seed", "days", "cas"), [(0, 365, 18), (1, 60, 3)])
def test_no_client_ever_fails(seed, days, cas):
    world = World(seed)
    asyncio.run(world.live(days))
    # A CA is replaced after two thirds of its 30 days, or after an accident.
    assert len(world.cas) >= cas
    assert world.accidents > days / 60
    assert world.checks > 10 * days


def test_all_replicas_reach_the_same_state():
    world = World(7, replicas=5)

    async def race():
        await asyncio.gather(*(replica.reconcile() for replica in world.replicas))

    asyncio.run(race())
    assert {replica.phase for replica in world.replicas} == {Phase.STEADY}
    assert len({replica.leaf.issuer for replica in world.replicas}) == 1
    assert all(replica.trusted and replica.last_error is None for replica in world.replicas)
    assert world.cluster.conflicts > 0
