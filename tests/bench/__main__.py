"""Throughput, latency and memory of the service beside a Go server that only allows: `python -m tests.bench`."""
# ruff: noqa: T201 - a command prints

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from tests.bench import body, opa_server, report
from tests.bench.machine import Machine, this_machine, two_cores
from tests.bench.measure import Generator, Load, Sample
from tests.bench.report import HOOKS, OPA, YARDSTICK, Budget, Row
from tests.bench.revision import tree
from tests.bench.servers import Server, Servers
from tests.controlplane.assets import Assets, assets
from tests.controlplane.process import ControlPlaneError, ends_in_words
from tests.controlplane.progress import Progress
from tests.support.paths import ROOT

# As fast as the server answers; the rates of the latency budgets.
RATES = (None, 100, 1000)
# Share of its core: above it, the load generator may be what limits the requests/s.
LOAD_LIMIT = 0.9
# Cores: above it, what others did on the machine shows in the figures.
BUSY = 0.1


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run found."""

    machine: Machine
    rows: list[Row]
    budgets: list[Budget]
    base: str = ""
    """Another revision that was measured too."""

    @property
    def others(self) -> float:
        """How many cores other programs used, on the average of all measurements."""
        return mean(sample.others for row in self.rows for sample in row.samples)

    def text(self, *, markdown: bool) -> str:
        """Both tables."""
        render = report.markdown if markdown else report.text
        verdicts = [("budget", "goal", "now", ""), *(budget.cells for budget in self.budgets)]
        tables = [render(report.table(self.rows), left=2), render(verdicts, left=1)]
        if self.base:
            tables.append(render(report.compared(self.rows, self.base), left=2))
        return "\n\n".join([*tables, f"{self.machine.summary}. Other programs used {self.others:.2f} cores meanwhile."])

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


def measure(arguments: argparse.Namespace, progress: Progress) -> Run:
    """Start the servers and measure them in turns; ControlPlaneError if one cannot be built, started or measured."""
    server_core, load_core = two_cores()
    programs = assets(progress=progress)
    machine = this_machine()
    with TemporaryDirectory(prefix="mpijob-bench-") as name, Servers(Path(name), core=server_core) as servers:
        generator = Generator(
            program=programs.load,
            ca=servers.ca,
            core=load_core,
            connections=arguments.connections,
            seconds=arguments.seconds,
            warmup=min(1, arguments.seconds),
        )
        trees = {"": ROOT}
        if arguments.base:
            trees[report.of(arguments.base)] = tree(arguments.base, Path(name))
        opa = opa_server.program(progress) if arguments.opa else None
        subjects = start(Path(name), servers, programs, opa=opa, trees=trees)
        if OPA in subjects and (
            wrong := [*opa_server.disagreements(subjects[OPA][0], subjects["validate"][0], servers.ca)]
        ):
            raise ControlPlaneError("OPA's ten rules are not ours:\n" + "\n".join(wrong))
        samples = in_turns(subjects, generator, arguments.rounds, progress)
        rows = [
            Row(server=label, rate=rate, samples=taken, memory=subjects[label][0].peak_memory_mib)
            for (label, rate), taken in samples.items()
        ]
        start_seconds = mean(server.start_seconds for label, (server, _) in subjects.items() if label in HOOKS)
    budgets = report.budgets(rows, start_seconds=start_seconds)
    return Run(machine=machine, rows=rows, budgets=budgets, base=arguments.base)


def start(
    folder: Path, servers: Servers, programs: Assets, *, opa: Path | None, trees: Mapping[str, Path]
) -> dict[str, tuple[Server, Load]]:
    """Every server, each with what it is asked, by the name that it has in the table; `trees` have the revisions of our
    own, by what is added to their names."""
    validate, mutate = folder / "validate.json", folder / "mutate.json"
    validate.write_bytes(body.validate_bodies())
    mutate.write_bytes(body.mutate_bodies())
    allowed = '"allowed":true'
    timeout = "?timeout=10s"
    subjects = {YARDSTICK: (servers.yardstick(programs), Load(path=f"/{timeout}", bodies=validate, expect=allowed))}
    if opa is not None:
        subjects[OPA] = servers.opa(opa, opa_server.POLICY), Load(path=opa_server.PATH, bodies=validate, expect=allowed)
    for number, (of, files) in enumerate(trees.items()):
        subjects[f"validate{of}"] = (
            servers.service(f"validate-{number}", tree=files),
            Load(path=f"/validate-mpijob{timeout}", bodies=validate, expect=allowed),
        )
        subjects[f"mutate{of}"] = (
            servers.service(f"mutate-{number}", tree=files),
            Load(path=f"/mutate-mpijob{timeout}", bodies=mutate, expect='"patchType":"JSONPatch"'),
        )
    return subjects


def in_turns(
    subjects: dict[str, tuple[Server, Load]], generator: Generator, rounds: int, progress: Progress
) -> dict[tuple[str, int | None], list[Sample]]:
    """Samples by server and rate. Each round has all servers, so that a slow minute of the machine hits them all."""
    samples: dict[tuple[str, int | None], list[Sample]] = {(label, rate): [] for rate in RATES for label in subjects}
    minutes = rounds * len(samples) * (generator.warmup + generator.seconds) / 60
    progress.say(f"{rounds} x {len(samples)} measurements: about {max(minutes, 1):.0f} min.")
    for number in range(rounds):
        for (label, rate), taken in samples.items():
            server, load = subjects[label]
            sample = generator.run(server, replace(load, rate=rate))
            taken.append(sample)
            wanted = f"{rate:,}/s" if rate else "saturated"
            progress.say(
                f"round {number + 1}  {label:{len(YARDSTICK)}}  {wanted:>9}  {sample.rps:>6,.0f} requests/s"
                f"  p50 {sample.p50:6.2f}  p99 {sample.p99:6.2f}  p99.9 {sample.p999:6.2f} ms"
                f"  others {sample.others:.2f} cores" + (f"  {sample.errors} errors" if sample.errors else "")
            )
    return samples


def positive(text: str) -> int:
    """A whole number of 1 or more, for argparse."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=5, help="length of each measurement (default: 5)")
    parser.add_argument("--rounds", type=positive, default=3, help="how often each is repeated (default: 3)")
    parser.add_argument("--connections", type=positive, default=50, help="kept-alive connections (default: 50)")
    parser.add_argument(
        "--opa", action=argparse.BooleanOptionalAction, default=True, help="measure Open Policy Agent too (default)"
    )
    parser.add_argument("--base", default="", metavar="REVISION", help="measure this revision too")
    parser.add_argument("--markdown", action="store_true", help="print the tables as docs/benchmarks.md has them")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write every sample as JSON")
    return parser.parse_args()


def main() -> None:
    """Measure and print; exit code 1 if a server gave a wrong answer."""
    arguments = parse()
    with ends_in_words():
        found = measure(arguments, Progress())
    print(found.text(markdown=arguments.markdown))
    for problem in found.problems():
        print(f"\n{problem}", file=sys.stderr)
    if arguments.output:
        arguments.output.write_text(json.dumps(asdict(found), indent=2) + "\n")
    sys.exit(any(row.errors for row in found.rows))


if __name__ == "__main__":
    main()
