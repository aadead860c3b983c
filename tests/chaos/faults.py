"""The faults of an arena: `FAULTS[name](arena, rng)` is a context manager, and the fault lasts as long as its block.

A fault depends only on the state of `rng`, so that a run can be repeated.
"""

import os
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random

from tests.chaos import attacks
from tests.chaos.api_proxy import Trouble
from tests.chaos.arena import Arena
from tests.controlplane.process import Program
from tests.support.installation.balancer import Backend
from webhook.admission.too_expensive import TOO_EXPENSIVE
from webhook.cluster.resources import watched_resources

Fault = Callable[[Arena, Random], AbstractContextManager[None]]
MEGABYTE = 2**20
HOUR = 3600
PATHS = (resource.path(version, "x") for resource in watched_resources() for version in resource.api_versions)
KINDS = sorted({path.rsplit("/", 1)[-1] for path in PATHS})


@contextmanager
def _api_server_restarted(arena: Arena, rng: Random) -> Iterator[None]:
    """The API server is stopped cleanly or killed, and started again at the end of the block."""
    if rng.random() < 0.5:
        arena.cluster.stop_apiserver()
    else:
        arena.cluster.programs.pop("kube-apiserver").stop()
    try:
        yield
    finally:
        arena.cluster.start_apiserver()


@contextmanager
def _frozen(arena: Arena, rng: Random, *, program: str) -> Iterator[None]:
    """The program neither responds nor exits."""
    pid = arena.cluster.programs[program].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def _watches(arena: Arena, rng: Random, *, trouble: Trouble) -> Iterator[None]:
    """The watches of some or all kinds fail."""
    kinds = KINDS if rng.random() < 0.2 else rng.sample(KINDS, rng.randint(1, 5))
    with arena.proxy.trouble(kinds, trouble):
        yield


@contextmanager
def _clock_jumps(arena: Arena, rng: Random) -> Iterator[None]:
    """A replica's clock jumps ahead or back, and is correct again at the end of the block."""
    clock = arena.clocks[_one(arena, rng)]
    clock.jump(rng.choice((-72, -6, -1, 1, 6, 72)) * HOUR)
    try:
        yield
    finally:
        clock.jump(0)


@contextmanager
def _no_descriptors(arena: Arena, rng: Random) -> Iterator[None]:
    """A replica has hardly any file descriptors left while clients connect."""
    backend = _one(arena, rng)
    program = arena.program(backend)
    left = len(os.listdir(f"/proc/{program.pid}/fd")) + rng.randint(0, 8)  # noqa: PTH208 - of another process
    with _limited(program, resource.RLIMIT_NOFILE, left), attacks.crowd(backend.port, 100):
        yield


@contextmanager
def _no_memory(arena: Arena, rng: Random) -> Iterator[None]:
    """A replica can hardly allocate memory while large reviews arrive. If this replica exits, a new one replaces it."""
    backend = _youngest(arena)
    program = arena.program(backend)
    pages = int(Path(f"/proc/{program.pid}/statm").read_text().split()[0])
    has = pages * resource.getpagesize()
    with _limited(program, resource.RLIMIT_AS, has + rng.randint(1, 32) * MEGABYTE):
        for case in arena.offline.hostile(rng, 4):
            with suppress(OSError):
                reply = arena.traffic.ask(backend, case)
                assert reply == case.reply or TOO_EXPENSIVE.encode() in reply, case.name
        yield


@contextmanager
def _replica_killed(arena: Arena, rng: Random) -> Iterator[None]:
    """A replica gets a SIGKILL. After the block, a new replica replaces it."""
    arena.deployment.stop(_youngest(arena), kill=True)
    yield


@contextmanager
def _hostile_jobs(arena: Arena, rng: Random) -> Iterator[None]:
    """Costly jobs must get the right verdict. On a slow machine they may be rejected as too expensive."""
    wrong = arena.wrong(_one(arena, rng), list(arena.offline.hostile(rng, 6)))
    assert [each for each in wrong if TOO_EXPENSIVE not in each] == []
    yield


@contextmanager
def _hostile_policies(arena: Arena, rng: Random) -> Iterator[None]:
    assert arena.wrong(_one(arena, rng), list(arena.offline.policies())) == []
    yield


@contextmanager
def _attack(
    arena: Arena, rng: Random, *, attack: Callable[[int, Random], AbstractContextManager[object]]
) -> Iterator[None]:
    with attack(_one(arena, rng).port, rng):
        yield


@contextmanager
def _limited(program: Program, what: int, soft: int) -> Iterator[None]:
    """The program's soft limit of the resource `what` is `soft` until the block ends."""
    before = resource.prlimit(program.pid, what)
    resource.prlimit(program.pid, what, (soft, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(program.pid, what, before)


def _one(arena: Arena, rng: Random) -> Backend:
    return rng.choice(arena.replicas)


def _youngest(arena: Arena) -> Backend:
    """The replica to kill. The oldest replica is never killed, because it shows how memory grows."""
    return arena.replicas[-1]


FAULTS: Mapping[str, Fault] = {
    "API server restarted": _api_server_restarted,
    "API server frozen": partial(_frozen, program="kube-apiserver"),
    "etcd frozen": partial(_frozen, program="etcd"),
    **{f"watches {trouble.value}": partial(_watches, trouble=trouble) for trouble in Trouble},
    "clock jumps": _clock_jumps,
    "no descriptors": _no_descriptors,
    "no memory": _no_memory,
    "replica killed": _replica_killed,
    "slow clients": partial(_attack, attack=partial(attacks.slow_clients, count=60)),
    "TLS garbage": partial(_attack, attack=partial(attacks.garbage, count=200)),
    "10,000 connections": partial(_attack, attack=lambda port, _: attacks.crowd(port, 10_000)),
    "hostile jobs": _hostile_jobs,
    "hostile policies": _hostile_policies,
}
# At most one fault of each group at a time: a frozen program cannot be restarted, and a replica must remain.
EXCLUSIVE = (
    {"API server restarted", "API server frozen", "etcd frozen"},
    {"replica killed", "no memory"},
)


def drawn(rng: Random, most: int) -> list[str]:
    """The names of randomly chosen faults that may occur together."""
    names: list[str] = []
    for name in rng.sample(sorted(FAULTS), rng.randint(1, most)):
        if not any(name in group and group & {*names} for group in EXCLUSIVE):
            names.append(name)
    return names


@contextmanager
def together(arena: Arena, rng: Random, names: Sequence[str]) -> Iterator[None]:
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(FAULTS[name](arena, rng))
        yield
