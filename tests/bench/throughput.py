"""Throughput, latency and memory of the service, of a minimal server in Go, and of comparable projects."""

import argparse
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench import body, engines, pod_security, report
from tests.bench.cluster import Size, kubeconfig
from tests.bench.machine import two_cores
from tests.bench.measure import Generator, Load, Sample
from tests.bench.report import FULL, HOOKS, OPA, POD_SECURITY, YARDSTICK, Row
from tests.bench.revision import tree
from tests.bench.servers import Server, Servers
from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress

RATES: Final = (None, 100, 1000)
"""Requests/s. With None, requests are sent as fast as the server replies. Each of the numbers has a latency budget."""
EXPECTED: Final = {"validate": '"allowed":true', "mutate": '"patchType":"JSONPatch"'}
PEERS: Final = ("pod-security", "opa", "caches")
"""The possible values of `--without`."""
CACHED: Final = Size(10_000, 1_000)

Subjects = dict[str, tuple[Server, Load]]
"""Each server with its load, by name in the table."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    folder: Path
    servers: Servers
    progress: Progress
    stack: ExitStack

    def subjects(self, arguments: argparse.Namespace) -> Subjects:
        validate = self._load("/?timeout=10s", "validate", body.validate_bodies)
        subjects = {YARDSTICK: (self.servers.yardstick(assets(progress=self.progress)), validate)}
        ours = self._ours()
        if "pod-security" not in arguments.without:
            subjects[POD_SECURITY] = self._pod_security()
        if "opa" not in arguments.without:
            subjects[OPA] = self._opa(ours["validate"][0], validate)
        subjects |= ours
        if "caches" not in arguments.without:
            self.progress.say("Filling the caches of two servers with 10,000 jobs.")
            subjects |= self._ours(FULL, "--kubeconfig", self.stack.enter_context(kubeconfig(self.folder, CACHED)))
        if arguments.base:
            subjects |= self._ours(f" of {arguments.base}", tree=tree(arguments.base, self.folder))
        return subjects

    def _load(self, path: str, hook: str, bodies: Callable[[], bytes]) -> Load:
        file = self.folder / f"{bodies.__name__}.json"
        if not file.exists():
            file.write_bytes(bodies())
        return Load(path=path, bodies=file, expect=EXPECTED[hook])

    def _ours(self, suffix: str = "", *flags: str | Path, **how: Path) -> Subjects:
        """This service's two hooks, each in a separate process. Their names end with `suffix`."""
        bodies = {"validate": body.validate_bodies, "mutate": body.mutate_bodies}
        name = suffix.replace(" ", "-").replace("/", "-").replace(",", "")
        return {
            hook + suffix: (
                self.servers.service(hook + name, *flags, **how),
                self._load(f"/{hook}-mpijob?timeout=10s", hook, bodies[hook]),
            )
            for hook in HOOKS
        }

    def _opa(self, ours: Server, load: Load) -> tuple[Server, Load]:
        """Raises ControlPlaneError if OPA's ten rules do not reject the same jobs as this service."""
        server = self.servers.opa(engines.program(self.progress), engines.POLICY)
        if wrong := [*engines.disagreements(server, ours, self.servers.ca)]:
            raise ControlPlaneError(
                "The ten rules of OPA and of this service reject different jobs:\n" + "\n".join(wrong)
            )
        return server, replace(load, path=engines.PATH)

    def _pod_security(self) -> tuple[Server, Load]:
        self.progress.say("Starting Kubernetes' Pod Security webhook and an API server for it.")
        cluster = self.stack.enter_context(Cluster(controller_manager=False))
        pod_security.label_namespace(cluster)
        server = self.servers.pod_security(cluster.assets, cluster.kubeconfig)
        return server, self._load("/?timeout=10s", "validate", pod_security.pod_bodies)


def measure(arguments: argparse.Namespace, progress: Progress) -> list[Row]:
    """Start the servers and measure them in turns. Raises ControlPlaneError if a server cannot be built or measured."""
    server_core, load_core = two_cores()
    with (
        TemporaryDirectory(prefix="mpijob-bench-") as name,
        Servers(Path(name), core=server_core) as servers,
        ExitStack() as stack,
    ):
        load = assets(progress=progress).load
        how = {"connections": arguments.connections, "seconds": arguments.seconds}
        generator = Generator(program=load, ca=servers.ca, core=load_core, **how)
        subjects = Bench(folder=Path(name), servers=servers, progress=progress, stack=stack).subjects(arguments)
        samples = in_turns(subjects, generator, arguments.rounds, progress)
        return [
            Row(server=label, rate=rate, samples=taken, memory=subjects[label][0].peak_memory_mib)
            for (label, rate), taken in samples.items()
        ]


def in_turns(
    subjects: Mapping[str, tuple[Server, Load]], generator: Generator, rounds: int, progress: Progress
) -> dict[tuple[str, int | None], list[Sample]]:
    """Samples by server and rate. Each round measures all servers, so that a slow period affects all of them."""
    samples: dict[tuple[str, int | None], list[Sample]] = {(label, rate): [] for rate in RATES for label in subjects}
    minutes = rounds * len(samples) * (generator.warmup + generator.seconds) / 60
    progress.say(f"{rounds} x {len(samples)} measurements: about {max(minutes, 1):.0f} min.")
    width = max(map(len, subjects))
    for number in range(rounds):
        for (label, rate), taken in samples.items():
            server, load = subjects[label]
            sample = generator.run(server, replace(load, rate=rate))
            taken.append(sample)
            pace = f"{rate:,}/s" if rate else "saturated"
            progress.say(
                f"round {number + 1}  {label:{width}}  {pace:>9}  {sample.rps:>6,.0f} requests/s"
                f"  p50 {sample.p50:6.2f}  p99 {sample.p99:6.2f}  p99.9 {sample.p999:6.2f} ms"
                f"  others {sample.others:.2f} cores" + (f"  {sample.errors} errors" if sample.errors else "")
            )
    return samples


def tables(rows: list[Row]) -> str:
    return f"{report.text(report.table(rows), left=2)}\n\n{report.verdicts(report.budgets(rows))}"
