"""Throughput, latency and memory of the service beside servers in Go: one that only allows, and those of peers."""

import argparse
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from tests.bench import body, engines, full_caches, pod_security, report
from tests.bench.environment import environment
from tests.bench.machine import two_cores
from tests.bench.measure import Generator, Load, Sample
from tests.bench.report import FULL, NEW, OFF, POD_SECURITY, YARDSTICK, Row
from tests.bench.revision import tree
from tests.bench.section import Section, Table
from tests.bench.servers import Server, Servers
from tests.controlplane.assets import Assets, assets
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from webhook import injections, rules
from webhook.policy.document import API_VERSION, KIND

# As fast as the server answers; the rates of the latency budgets.
RATES = (None, 100, 1000)
# Share of its core: above it, the load generator may be what limits the requests/s.
LOAD_LIMIT = 0.9
# Cores: above it, what others did on the machine shows in the figures.
BUSY = 0.1
ALLOWED = '"allowed":true'
PATCHED = '"patchType":"JSONPatch"'
PEERS = ("pod-security", "opa", "kyverno", "new", "caches")
"""What `--without` may leave out."""

NOTHING_ON = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "rules": {rule: {"action": "off"} for rule in rules.REGISTRY},
    "injections": {injection: {"enabled": False} for injection in injections.REGISTRY},
}

Subjects = dict[str, tuple[Server, Load]]
"""Every server, with what it is asked, by the name that it has in the table."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run found."""

    rows: list[Row]
    base: str = ""
    """Another revision that was measured too."""

    @property
    def others(self) -> float:
        """How many cores other programs used, on the average of all measurements."""
        return mean(sample.others for row in self.rows for sample in row.samples)

    def problems(self) -> list[str]:
        """Why the figures should not be trusted, empty if nothing speaks against them."""
        found = []
        if self.others > BUSY:
            found.append(f"Other programs used {self.others:.1f} cores meanwhile: run this again on a quiet machine.")
        for row in self.rows:
            if row.rate is None and row.median(lambda sample: sample.load_cpu) > LOAD_LIMIT:
                found.append(f"{row.server}: the load generator was at its limit, the server may answer more.")
            if row.errors:
                error = next(sample.error for sample in row.samples if sample.errors)
                found.append(f"{row.server}: {row.errors} wrong or missing answers, the first: {error}")
        return found

    def section(self) -> Section:
        """The tables: all servers, the budgets, and beside another revision."""
        verdicts = [("budget", "goal", "now", ""), *(budget.cells for budget in report.budgets(self.rows))]
        tables = [Table(lines=report.table(self.rows), left=2), Table(lines=verdicts)]
        if self.base:
            tables.append(Table(lines=report.compared(self.rows, self.base), left=2))
        failed = any(row.errors for row in self.rows)
        return Section(tables=tables, samples=self.rows, problems=self.problems(), failed=failed)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where servers are started; each method starts some and says what they are asked."""

    folder: Path
    servers: Servers
    programs: Assets
    progress: Progress
    stack: ExitStack = field(default_factory=ExitStack)

    def reviews(self) -> tuple[Path, Path]:
        """The files with validating and with mutating reviews."""
        validate, mutate = self.folder / "validate.json", self.folder / "mutate.json"
        if not validate.exists():
            validate.write_bytes(body.validate_bodies())
            mutate.write_bytes(body.mutate_bodies())
        return validate, mutate

    def yardstick(self) -> Subjects:
        """The Go server that only allows."""
        validate, _ = self.reviews()
        return {
            YARDSTICK: (
                self.servers.yardstick(self.programs),
                Load(path="/?timeout=10s", bodies=validate, expect=ALLOWED),
            )
        }

    def engine(self, engine: engines.Engine, ours: Server) -> Subjects:
        """A policy engine that refuses what `ours` refuses; ControlPlaneError if it does not."""
        validate, _ = self.reviews()
        start = self.servers.opa if engine is engines.OPA else self.servers.kyverno
        server = start(engine.program(self.progress), engine.policy)
        if wrong := [*engine.disagreements(server, ours, self.servers.ca)]:
            raise ControlPlaneError(f"The ten rules of {engine.name} are not ours:\n" + "\n".join(wrong))
        return {engine.name: (server, Load(path=engine.path, bodies=validate, expect=ALLOWED))}

    def pod_security(self) -> Subjects:
        """Kubernetes' own Pod Security for pods of 6 kB, which is half of what a job has."""
        cluster = self.stack.enter_context(Cluster(controller_manager=False))
        pods = self.folder / "pods.json"
        pods.write_bytes(b"\n".join(map(pod_security.pod_review, range(pod_security.VARIANTS))))
        pod_security.label_namespace(cluster)
        server = self.servers.pod_security(cluster.assets, cluster.kubeconfig)
        return {POD_SECURITY: (server, Load(path="/?timeout=10s", bodies=pods, expect=ALLOWED))}

    def ours(
        self,
        suffix: str = "",
        *flags: str | Path,
        reviews: tuple[Path, Path] | None = None,
        patched: str = PATCHED,
        **how: Path,
    ) -> Subjects:
        """Our two hooks, each in a process of its own; `suffix` ends their names."""
        validate, mutate = reviews or self.reviews()
        name = suffix.replace(" ", "-").replace("/", "-").replace(",", "")
        return {
            f"validate{suffix}": (
                self.servers.service(f"validate{name}", *flags, **how),
                Load(path="/validate-mpijob?timeout=10s", bodies=validate, expect=ALLOWED),
            ),
            f"mutate{suffix}": (
                self.servers.service(f"mutate{name}", *flags, **how),
                Load(path="/mutate-mpijob?timeout=10s", bodies=mutate, expect=patched),
            ),
        }

    def new(self) -> Subjects:
        """The same with jobs of which no template is remembered; also with every rule and injection off, for what is
        left to them.
        """
        reviews = self.folder / "validate-new.json", self.folder / "mutate-new.json"
        for file, bodies in zip(reviews, (body.validate_bodies, body.mutate_bodies), strict=True):
            file.write_bytes(bodies(body.MANY_JOBS))
        policy = self.folder / "nothing-on.json"
        policy.write_text(json.dumps(NOTHING_ON))
        nothing_on = self.ours(NEW + OFF, "--policy", policy, reviews=reviews, patched=ALLOWED)
        return self.ours(NEW, reviews=reviews) | nothing_on

    def full(self) -> Subjects:
        """The same with 10,000 jobs in 1,000 namespaces cached."""
        reviews = self.folder / "validate-cached.json", self.folder / "mutate-cached.json"
        full_caches.write_bodies(*reviews)
        kubeconfig = self.stack.enter_context(full_caches.kubeconfig(self.folder))
        return self.ours(FULL, "--kubeconfig", kubeconfig, reviews=reviews)


def measure(arguments: argparse.Namespace, progress: Progress) -> Run:
    """Start the servers and measure them in turns; ControlPlaneError if one cannot be built, started or measured."""
    server_core, load_core = two_cores()
    programs = assets(progress=progress)
    wanted = set(PEERS) - set(arguments.without)
    with (
        TemporaryDirectory(prefix="mpijob-bench-") as name,
        Servers(Path(name), core=server_core) as servers,
        ExitStack() as stack,
    ):
        generator = Generator.wanted(arguments, program=programs.load, ca=servers.ca, core=load_core)
        bench = Bench(folder=Path(name), servers=servers, programs=programs, progress=progress, stack=stack)
        subjects = start(bench, wanted, base=arguments.base, python=arguments.python)
        samples = in_turns(subjects, generator, arguments.rounds, progress)
        rows = [
            Row(server=label, rate=rate, samples=taken, memory=subjects[label][0].peak_memory_mib)
            for (label, rate), taken in samples.items()
        ]
    return Run(rows=rows, base=arguments.base)


def start(bench: Bench, wanted: set[str], *, base: str, python: Path | None) -> Subjects:
    """Every server, in the order of the table."""
    progress = bench.progress
    hooks = bench.ours()
    (ours, _) = hooks["validate"]
    subjects = bench.yardstick()
    if "pod-security" in wanted:
        progress.say("Starting Kubernetes' own Pod Security and an API server for it.")
        subjects |= bench.pod_security()
    for name, engine in (("opa", engines.OPA), ("kyverno", engines.KYVERNO)):
        if name in wanted:
            subjects |= bench.engine(engine, ours)
    subjects |= hooks
    if "new" in wanted:
        subjects |= bench.new()
    if "caches" in wanted:
        progress.say("Filling the caches of two servers with 10,000 jobs.")
        subjects |= bench.full()
    if base:
        subjects |= bench.ours(report.of(base), tree=tree(base, bench.folder))
    if python is not None:
        other = environment(python, progress)
        subjects |= bench.ours(f" on {other.name}", python=other.python)
    return subjects


def in_turns(
    subjects: Mapping[str, tuple[Server, Load]], generator: Generator, rounds: int, progress: Progress
) -> dict[tuple[str, int | None], list[Sample]]:
    """Samples by server and rate. Each round has all servers, so that a slow minute of the machine hits them all."""
    samples: dict[tuple[str, int | None], list[Sample]] = {(label, rate): [] for rate in RATES for label in subjects}
    minutes = rounds * len(samples) * (generator.warmup + generator.seconds) / 60
    progress.say(f"{rounds} x {len(samples)} measurements: about {max(minutes, 1):.0f} min.")
    width = max(map(len, subjects))
    for number in range(rounds):
        for (label, rate), taken in samples.items():
            server, load = subjects[label]
            sample = generator.run(server, replace(load, rate=rate))
            taken.append(sample)
            wanted = f"{rate:,}/s" if rate else "saturated"
            progress.say(
                f"round {number + 1}  {label:{width}}  {wanted:>9}  {sample.rps:>6,.0f} requests/s"
                f"  p50 {sample.p50:6.2f}  p99 {sample.p99:6.2f}  p99.9 {sample.p999:6.2f} ms"
                f"  others {sample.others:.2f} cores" + (f"  {sample.errors} errors" if sample.errors else "")
            )
    return samples
