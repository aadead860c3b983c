import asyncio
import gc
import os
import sys
import threading
import weakref
from contextlib import asynccontextmanager
from time import monotonic

import pytest

from tests.support.secret_reviews import is_pair
from webhook.controllers.ssh import pool as ssh_keys
from webhook.controllers.ssh.pool import KeyPair, KeyPool, NoKey

FOREVER = 1e9


class Pair(KeyPair):
    """A key pair that supports weak references."""

    __slots__ = ("__weakref__",)


class Maker:
    """Makes numbered pairs. After `hold()` each pair waits in its thread for a `release()`."""

    def __init__(self):
        self.made = 0
        self.at_work = 0
        self.most_at_work = 0
        self.error = None
        self.niceness = set()
        self._lock = threading.Lock()
        self._gate = threading.Semaphore(0)
        self._held = False

    def hold(self):
        self._held = True

    def release(self, count=1):
        self._gate.release(count)

    def __call__(self, algorithm):
        with self._lock:
            self.at_work += 1
            self.most_at_work = max(self.most_at_work, self.at_work)
        if self._held:
            assert self._gate.acquire(timeout=30)
        if sys.platform == "linux":
            self.niceness.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        with self._lock:
            self.at_work -= 1
            if self.error:
                raise self.error
            self.made += 1
            return Pair(algorithm, b"private %d" % self.made, b"public %d" % self.made)


@pytest.fixture
def maker():
    made = Maker()
    yield made
    made.release(1000)  # so that no thread prevents the end of the interpreter


@asynccontextmanager
async def pool(maker, *, size=0, rate=1e6, workers=2, **more):
    made = KeyPool(size=size, rate=rate, workers=workers, make=maker, **more)
    async with made.filled():
        yield made


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a pool has no events for these conditions
            await asyncio.sleep(0.001)


def take(keys, algorithm="rsa-4096", deadline=FOREVER):
    return asyncio.create_task(keys.take(algorithm, deadline=deadline))


async def test_stock_is_filled_and_refilled(maker):
    async with pool(maker, size=3) as keys:
        await until(lambda: keys.ready == 3)
        assert (await keys.take("rsa-4096", deadline=0)).private == b"private 1"  # the oldest pair, without waiting
        await until(lambda: keys.ready == 3)
        await asyncio.sleep(0.02)
        assert (maker.made, keys.ready) == (4, 3)


async def test_stock_is_filled_one_pair_at_a_time_with_low_priority(maker):
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    async with pool(maker, size=8, workers=4) as keys:
        await until(lambda: keys.ready == 8)
    assert maker.most_at_work == 1
    if sys.platform == "linux":
        assert maker.niceness == {min(ours + ssh_keys.NICENESS, ssh_keys.LOWEST)}
        assert os.getpriority(os.PRIO_PROCESS, 0) == ours


async def test_stock_is_filled_at_the_maximum_rate(maker, monkeypatch):
    pauses = []
    real = asyncio.sleep

    async def sleep(seconds):
        pauses.append(seconds)
        await real(0)

    monkeypatch.setattr(ssh_keys.asyncio, "sleep", sleep)
    async with pool(maker, size=3, rate=0.25) as keys:
        while keys.ready < 3 or len(pauses) < 3:
            await real(0.001)
    assert all(3 < pause <= 4 for pause in pauses)


async def test_no_spare_pairs_are_made_without_a_stock(maker):
    async with pool(maker) as keys:
        await asyncio.sleep(0.02)
        assert maker.made == 0
        assert (await keys.take("rsa-4096", deadline=monotonic() + 30)).private == b"private 1"


async def test_requests_are_served_after_the_pool_stops_filling(maker):
    async with pool(maker, size=2) as keys:
        await until(lambda: keys.ready == 2)
        keys.stop_filling()
        got = [await keys.take("rsa-4096", deadline=monotonic() + 30) for _ in range(4)]
        assert len({pair.private for pair in got}) == 4
        assert keys.ready == 0


async def test_filling_continues_after_a_failure(maker):
    maker.error = RuntimeError("no entropy")
    async with pool(maker, size=1) as keys:
        await asyncio.sleep(0.02)
        maker.error = None
        await until(lambda: keys.ready == 1)


async def test_requests_are_served_in_order_with_limited_concurrency(maker):
    maker.hold()
    async with pool(maker, workers=2) as keys:
        tasks = []
        for number in range(6):
            tasks.append(take(keys))
            await until(lambda number=number: keys.waiting == number + 1)
        await until(lambda: maker.at_work == 2)
        for done in range(1, 7):
            maker.release()
            await until(lambda done=done: sum(task.done() for task in tasks) == done)
            assert [task.done() for task in tasks] == [True] * done + [False] * (6 - done)
        assert len({task.result().private for task in tasks}) == 6
    assert maker.most_at_work == 2


async def test_hundred_simultaneous_requests_use_the_stock_first(maker):
    waits = []
    async with pool(maker, size=60, rate=1e6, waited=lambda algorithm, seconds: waits.append(algorithm)) as keys:
        await until(lambda: keys.ready == 60)
        pairs = await asyncio.gather(*(take(keys, deadline=monotonic() + 30) for _ in range(100)))
    assert len({pair.private for pair in pairs}) == 100
    assert waits == ["rsa-4096"] * 100


async def test_request_without_a_key_in_time_fails(maker):
    maker.hold()
    async with pool(maker) as keys:
        with pytest.raises(NoKey, match=r"^no SSH key was made in time$"):
            await keys.take("rsa-4096", deadline=monotonic() + 0.01)
        assert keys.waiting == 0
        # The unfinished pair is not lost.
        second = take(keys)
        await until(lambda: keys.waiting == 1)
        maker.release()
        assert (await second).private == b"private 1"


async def test_request_after_its_deadline_fails(maker):
    maker.hold()
    async with pool(maker) as keys:
        with pytest.raises(NoKey):
            await keys.take("rsa-4096", deadline=monotonic() - 1)


async def test_too_many_waiting_reviews_are_rejected(maker, monkeypatch):
    monkeypatch.setattr(ssh_keys, "MAX_WAITING_FOR_KEYS", 2)
    maker.hold()
    async with pool(maker) as keys:
        first = [take(keys), take(keys)]
        await until(lambda: keys.waiting == 2)
        with pytest.raises(NoKey, match=r"^too many requests wait for an SSH key$"):
            await keys.take("rsa-4096", deadline=FOREVER)
        maker.release(2)
        await asyncio.gather(*first)


async def test_next_review_gets_the_key_of_a_cancelled_review(maker):
    maker.hold()
    async with pool(maker, workers=1) as keys:
        gone = take(keys)
        await until(lambda: keys.waiting == 1)
        second = take(keys)
        await until(lambda: keys.waiting == 2)
        gone.cancel()
        await until(lambda: keys.waiting == 1)
        maker.release()
        assert (await second).private == b"private 1"


async def test_failure_is_reported_to_the_waiting_review(maker):
    maker.error = RuntimeError("no entropy")
    async with pool(maker) as keys:
        with pytest.raises(RuntimeError, match="no entropy"):
            await keys.take("rsa-4096", deadline=FOREVER)


async def test_fast_algorithm_does_not_use_the_stock(maker):
    made = []
    async with pool(maker, size=1, made=lambda algorithm, seconds: made.append(algorithm)) as keys:
        await until(lambda: keys.ready == 1)
        assert (await keys.take("ed25519", deadline=0)).algorithm == "ed25519"
        assert (keys.ready, maker.made) == (1, 2)
    assert made == ["rsa-4096", "ed25519"]


async def test_real_keys_are_generated():
    """One pair of each algorithm; the RSA pair is made in a thread."""
    times = []
    keys = KeyPool(size=0, made=lambda algorithm, seconds: times.append((algorithm, seconds)))
    async with keys.filled():
        for algorithm in ssh_keys.GENERATORS:
            pair = await keys.take(algorithm, deadline=monotonic() + 60)
            assert is_pair(pair.private, pair.public, algorithm)
    assert [algorithm for algorithm, _ in times] == list(ssh_keys.GENERATORS)
    assert all(seconds > 0 for _, seconds in times)


async def test_issued_key_is_not_stored(maker):
    async with pool(maker, size=1) as keys:
        await until(lambda: keys.ready == 1)
        stocked = weakref.ref(await keys.take("rsa-4096", deadline=0))
        waited = weakref.ref(
            await asyncio.gather(take(keys), take(keys)) and await keys.take("rsa-4096", deadline=FOREVER)
        )
        # The thread that made the pair keeps a reference to the pair for a moment.
        await until(lambda: gc.collect() >= 0 and stocked() is None and waited() is None)


async def test_stock_is_freed_at_the_end(maker):
    maker.hold()
    async with pool(maker, size=2) as keys:
        waits = take(keys)
        await until(lambda: maker.at_work)
    maker.release()
    assert keys.ready == 0
    waits.cancel()
