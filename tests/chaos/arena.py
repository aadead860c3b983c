"""A cluster with fixed objects. Two replicas of the service watch it through a proxy and get reviews all the time."""

import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

from tests.chaos.api_proxy import ApiProxy
from tests.chaos.cases import POLICY, Case, Offline
from tests.chaos.clock import Clock
from tests.chaos.traffic import Traffic, difference
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import Program, responds
from tests.support.installation import inventory
from tests.support.installation.balancer import Backend, Balancer
from tests.support.installation.deployment import SELF_MANAGED, VALIDATING, Deployment
from tests.support.installation.load import Load
from tests.support.jobs import body
from tests.support.object_api import kubeconfig

T = TypeVar("T")
REPLICAS = 2
POLICY_FILE = "chaos-policy.yaml"
SAMPLE = 10
"""The number of verdicts of each replica that are checked after a fault. Every reply to the traffic is checked too."""
SYNCED = "mpijob_webhook_cache_synced{"
SAMPLES = ("process_open_fds ", "mpijob_webhook_tasks ", "process_resident_memory_bytes ", SYNCED)
PROBES = 0.25
"""Seconds between two checks of a replica's readiness."""
RECOVERY = 180
"""Seconds to wait for a recovery. The service promises no such time: the limit is for a slow test machine."""
# How much the values of a healthy replica vary: connections open and close, and the allocator keeps freed memory.
SPARE = {"descriptors": 24, "tasks": 24, "memory": 96 * 2**20}
PATH = f"/apis/kubeflow.org/v2beta1/namespaces/{inventory.TEAM}/mpijobs"


@dataclass(frozen=True, kw_only=True)
class Vitals:
    """A replica's own metrics."""

    descriptors: int
    """Nearly all of them are sockets."""
    tasks: int
    memory: int
    """Resident bytes."""
    synced: frozenset[str]
    """The kinds whose cache is complete."""

    def worse_than(self, first: "Vitals") -> str:
        """The values that exceed `first`, as text; empty if there are none."""
        worse = []
        for name, spare in SPARE.items():
            now, then = getattr(self, name), getattr(first, name)
            if now > then + spare:
                worse.append(f"{name}: {now:,} instead of {then:,}")
        if missing := first.synced - self.synced:
            worse.append(f"unknown: {', '.join(sorted(missing))}")
        return "; ".join(worse)


@dataclass
class Arena:
    """The target of faults, and the checks of its replicas."""

    cluster: Cluster
    proxy: ApiProxy
    deployment: Deployment
    proxied: Path
    """The kubeconfig of the replicas."""
    clocks: dict[Backend, Clock] = field(default_factory=dict)
    offline: Offline = field(init=False)
    traffic: Traffic = field(init=False)
    load: Load = field(init=False)
    """Valid jobs that are created through the API server."""
    first: Vitals = field(init=False)
    """A replica's values before any fault."""
    _canaries: int = 0

    @property
    def replicas(self) -> Sequence[Backend]:
        return tuple(self.deployment.balancer.backends)

    def program(self, backend: Backend) -> Program:
        return self.cluster.programs[self.deployment.names[backend]]

    def start_replica(self) -> Backend:
        """Start one more replica with its own clock, and wait until it is ready."""
        folder = self.cluster.dir
        (policy := folder / POLICY_FILE).write_text(POLICY)
        clock = Clock(folder / f"clock-{len(self.deployment.names)}")
        self.deployment.under = clock.command
        flags = ("--policy", str(policy), "--kubeconfig", str(self.proxied))
        backend = self.deployment.start(*SELF_MANAGED, *flags)
        self.clocks[backend] = clock
        return backend

    def vitals(self, backend: Backend) -> Vitals:
        with urllib.request.urlopen(f"{backend.ops_url}/metrics", timeout=30) as response:
            lines = response.read().decode().splitlines()
        # The client library's parser is not used: it takes so long for a whole page that reviews would be late.
        samples = (line.rpartition(" ") for line in lines if line.startswith(SAMPLES))
        value = {name: int(float(number)) for name, _, number in samples}
        return Vitals(
            descriptors=value["process_open_fds"],
            tasks=value["mpijob_webhook_tasks"],
            memory=value["process_resident_memory_bytes"],
            synced=frozenset(name for name, number in value.items() if name.startswith(SYNCED) and number),
        )

    def answers_more(self) -> None:
        """Return after 100 more verdicts of any replica."""
        enough = self.traffic.tally.answered + 100
        self._wait("100 more verdicts", lambda: self.traffic.tally.answered >= enough)

    def recovers(self, rng: Random) -> None:
        """Return once every replica has recovered. Raises AssertionError for a wrong verdict, TimeoutError after
        `RECOVERY`.
        """
        for backend in self.replicas:
            if not self.program(backend).running:  # a new replica replaces it below
                self.deployment.stop(backend, kill=True)
        while len(self.replicas) < REPLICAS:
            self.start_replica()
        for backend in self.replicas:
            self._wait("readiness", lambda backend=backend: responds(f"{backend.ops_url}/readyz"))
            self._wait("its metrics to be as before", lambda backend=backend: self._as_before(backend))
            assert self.wrong(backend, rng.sample(self.traffic.cases, SAMPLE)) == []
        self._sees_a_new_config_map()

    def wrong(self, backend: Backend, cases: Sequence[Case]) -> list[str]:
        replies = ((case, self._reply(backend, case)) for case in cases)
        return [difference(case, reply) for case, reply in replies if reply != case.reply]

    def _reply(self, backend: Backend, case: Case) -> bytes:
        return self._wait(f"the verdict on {case.name}", lambda: self.traffic.ask(backend, case))

    def _as_before(self, backend: Backend) -> bool:
        worse = self.vitals(backend).worse_than(self.first)
        if worse:
            raise OSError(worse)  # wait_for shows this text after a timeout
        return True

    def _sees_a_new_config_map(self) -> None:
        """Check that every replica sees a new ConfigMap and its deletion: both change the verdict on a job."""
        self._canaries += 1
        name = f"canary-{self._canaries}"
        path = "Worker.template.spec.volumes.1.configMap.name"
        job = inventory.full_job(**{"metadata.name": name, path: name})
        case = self.offline.case("canary", "validate", body(job, dryRun=True))
        self.cluster.kubectl("create", "configmap", name, "-n", inventory.TEAM)
        admitted = b'"allowed":true'
        for backend in self.replicas:
            self._wait("the new ConfigMap", lambda backend=backend: admitted in self.traffic.ask(backend, case))
        self.cluster.kubectl("delete", "configmap", name, "-n", inventory.TEAM)
        for backend in self.replicas:
            self._wait("its deletion", lambda backend=backend: self.traffic.ask(backend, case) == case.reply)

    def _wait(self, what: str, probe: Callable[[], T | None]) -> T:
        return self.cluster.wait_for(what, probe, timeout=RECOVERY)


@contextmanager
def arena(*, rate: float, seed: int, log_dir: Path | None = None) -> Iterator[Arena]:
    """Yields an arena that has got 100 verdicts. All its parts run until the block ends."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(controller_manager=False, log_dir=log_dir))
        inventory.install(cluster)
        proxy = ApiProxy(cluster.kubeconfig)
        url = stack.enter_context(proxy.running())
        proxied = kubeconfig(cluster.dir / "proxied.kubeconfig", url)
        made = Arena(cluster, proxy, Deployment(cluster, stack.enter_context(Balancer(every=PROBES))), proxied)
        made.deployment.install()
        for _ in range(REPLICAS):
            made.start_replica()
        made.offline = Offline(_snapshot(cluster), cluster.dir / POLICY_FILE)
        ca = made.deployment.bundle(VALIDATING)
        made.traffic = Traffic(lambda: made.replicas, ca, made.offline.usual(), rate=rate, seed=seed)
        made.load = Load(cluster.kubeconfig, PATH, inventory.full_job(), threads=2, patience=RECOVERY, pause=0.2)
        stack.enter_context(made.traffic)
        stack.enter_context(made.load)
        made.answers_more()
        made.first = made.vitals(made.replicas[0])
        yield made


def _snapshot(cluster: Cluster) -> Path:
    file = cluster.dir / "cluster.yaml"
    command = [sys.executable, "-m", "webhook", "snapshot", "--kubeconfig", str(cluster.kubeconfig), "-o", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return file
