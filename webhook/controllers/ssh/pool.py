"""A stock of spare key pairs: an RSA-4096 key takes half a second of a core, and a job should not wait for it.

Threads with a low priority make the pairs. OpenSSL works without Python's lock, so reviews are not slowed down.

Each pair is in exactly one reply, and is not stored afterwards. No key is logged, or quoted in an error or a `repr`.
"""

import asyncio
import hashlib
import os
import threading
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Final, Literal

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from webhook.controllers.limits import MAX_KEY_WORKERS, MAX_WAITING_FOR_KEYS

Algorithm = Literal["rsa-4096", "ecdsa-p521", "ecdsa-p256", "ed25519"]
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

GENERATORS: Final[Mapping[Algorithm, Callable[[], PrivateKey]]] = {
    "rsa-4096": lambda: rsa.generate_private_key(public_exponent=65537, key_size=4096),
    "ecdsa-p521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ecdsa-p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}
# Algorithms that take less than half a millisecond.
INSTANT: Final[frozenset[Algorithm]] = frozenset({"ecdsa-p521", "ecdsa-p256", "ed25519"})


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class KeyPair:
    """A private key and its public key."""

    algorithm: Algorithm
    private: bytes
    """In PEM, the format of ssh's `id_rsa`."""
    public: bytes
    """The first two words of a line of authorized_keys."""

    @property
    def fingerprint(self) -> str:
        """In the format of `ssh-keygen -l`."""
        digest = hashlib.sha256(b64decode(self.public.split()[1])).digest()
        return "SHA256:" + b64encode(digest).decode().rstrip("=")

    def authorized_key(self, comment: str) -> bytes:
        """The line of authorized_keys, with its line break."""
        return self.public + b" " + comment.encode() + b"\n"


def generate(algorithm: Algorithm) -> KeyPair:
    key = GENERATORS[algorithm]()
    return KeyPair(algorithm, _private(key), _public(key))


def _private(key: PrivateKey) -> bytes:
    # Ed25519 has only the new format. Every ssh client reads the older format of the other algorithms.
    is_new = isinstance(key, ed25519.Ed25519PrivateKey)
    style = PrivateFormat.OpenSSH if is_new else PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(Encoding.PEM, style, NoEncryption())


def _public(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


STOCKED: Final[Algorithm] = "rsa-4096"
NICENESS = 10  # added to the process's priority; a higher number is a lower priority
LOWEST = 19

Observe = Callable[[Algorithm, float], object]


class NoKey(Exception):
    """No pair was ready in time. The client may try again."""


@dataclass(eq=False)
class KeyPool:
    """A stock of `size` pairs, refilled at `rate` per second.

    While the stock is empty, requests wait in their order, and up to `workers` pairs are made in parallel. `made` is
    called with the seconds to make a pair, and `waited` with the seconds that a request waited.
    """

    size: int
    rate: float = 1
    workers: int = min(MAX_KEY_WORKERS, os.cpu_count() or 1)
    make: Callable[[Algorithm], KeyPair] = generate
    made: Observe = lambda *_: None
    waited: Observe = lambda *_: None

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="ssh-keys", initializer=_step_back)
        self._ready: asyncio.Queue[KeyPair | Exception] = asyncio.Queue()
        """Pairs, or errors for the requests that wait for a pair."""
        self._taken = asyncio.Event()
        self._making = 0
        self._makers: set[asyncio.Task[None]] = set()
        self._filler: asyncio.Task[None] | None = None
        self.waiting = 0

    @property
    def ready(self) -> int:
        return self._ready.qsize()

    @asynccontextmanager
    async def filled(self) -> AsyncIterator[None]:
        """Keep the stock filled until the block ends. Then requests fail."""
        self._filler = asyncio.create_task(self._fill())
        try:
            yield
        finally:
            self.stop_filling()
            for task in self._makers:
                task.cancel()
            # At its end, the interpreter waits for a pair in progress.
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._ready = asyncio.Queue()

    def stop_filling(self) -> None:
        """Requests are still served."""
        if self._filler is not None:
            self._filler.cancel()

    async def take(self, algorithm: Algorithm, *, deadline: float) -> KeyPair:
        """A pair that no other caller gets; NoKey if none is ready by `deadline` (monotonic)."""
        started = monotonic()
        try:
            if algorithm in INSTANT:
                pair = self.make(algorithm)
                self.made(algorithm, monotonic() - started)
                return pair
            self._taken.set()
            result = await self._wait(deadline) if self.waiting or not self.ready else self._ready.get_nowait()
            if isinstance(result, Exception):
                raise result
            return result
        finally:
            self.waited(algorithm, monotonic() - started)

    async def _wait(self, deadline: float) -> KeyPair | Exception:
        if self.waiting >= MAX_WAITING_FOR_KEYS:
            raise NoKey("too many requests wait for an SSH key")
        self.waiting += 1
        if self._making < min(self.workers, self.waiting):
            self._making += 1
            maker = asyncio.create_task(self._make_for_waiting())
            self._makers.add(maker)
            maker.add_done_callback(self._makers.discard)
        try:
            async with asyncio.timeout(deadline - monotonic()):
                return await self._ready.get()
        except TimeoutError:
            raise NoKey("no SSH key was made in time") from None
        finally:
            self.waiting -= 1

    async def _make_for_waiting(self) -> None:
        # The caller that gets the last pair may request a new pair before this task is done.
        try:
            while self.waiting > self.ready:
                await self._make_one()
        finally:
            self._making -= 1

    async def _fill(self) -> None:
        while True:
            self._taken.clear()
            if self.ready >= self.size:
                await self._taken.wait()
                continue
            started = monotonic()
            await self._make_one()
            await asyncio.sleep(max(0, 1 / self.rate - (monotonic() - started)))

    async def _make_one(self) -> None:
        """Make a pair for the request that has waited longest, or for the stock if no request waits."""
        started = monotonic()
        try:
            pair = await asyncio.get_running_loop().run_in_executor(self._threads, self.make, STOCKED)
        except Exception as error:  # noqa: BLE001 - a waiting request raises it; without one, `_fill` tries again
            if self.waiting > self.ready:
                self._ready.put_nowait(error)
            return
        self.made(STOCKED, monotonic() - started)
        self._ready.put_nowait(pair)


def _step_back() -> None:
    """Lower the priority of this thread: on Linux, threads have priorities (setpriority(2), "C library/kernel
    differences").
    """
    if os.uname().sysname == "Linux":
        with suppress(OSError):
            thread = threading.get_native_id()
            lower = min(os.getpriority(os.PRIO_PROCESS, thread) + NICENESS, LOWEST)
            os.setpriority(os.PRIO_PROCESS, thread, lower)
