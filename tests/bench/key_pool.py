"""What reviews wait while SSH keys are made ahead: the first minutes of a replica, on one core.

The same service twice, with a stock to fill and without, under the same rate of reviews in turns.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench import body
from tests.bench.machine import two_cores
from tests.bench.measure import Generator, Load, Sample
from tests.bench.section import Section, Table
from tests.bench.servers import Server, Servers
from tests.controlplane.assets import assets
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress

RATES: Final = (100, 500)
WITHOUT: Final = "no keys to make"
# As `serve` has it by default, and as fast as it can: what a burst of jobs leads to.
FILLING: Final = {"filling, 1 a second": 1, "filling without a pause": 100}
STOCK: Final = 100_000
"""More keys than can be made meanwhile."""


def table(samples: Mapping[tuple[str, int], Sequence[Sample]]) -> list[tuple[str, ...]]:
    """The headings and a line for each service and rate."""
    lines: list[tuple[str, ...]] = [("service", "load", "p50 ms", "p99 ms", "p99.9 ms", "max ms")]
    for (label, rate), taken in samples.items():
        figures = (median(getattr(sample, name) for sample in taken) for name in ("p50", "p99", "p999", "max"))
        lines.append((label, f"{rate}/s", *(f"{figure:.1f}" for figure in figures)))
    return lines


def measure(arguments: argparse.Namespace, progress: Progress) -> Section:
    """Measure in turns; ControlPlaneError if a server cannot be started or answers wrongly."""
    server_core, load_core = two_cores()
    programs = assets(progress=progress)
    with TemporaryDirectory(prefix="mpijob-bench-") as name, Servers(Path(name), core=server_core) as servers:
        bodies = Path(name) / "validate.json"
        bodies.write_bytes(body.validate_bodies())
        load = Load(path="/validate-mpijob?timeout=10s", bodies=bodies, expect='"allowed":true')
        generator = Generator.wanted(arguments, program=programs.load, ca=servers.ca, core=load_core)
        samples: dict[tuple[str, int], list[Sample]] = {
            (label, rate): [] for rate in RATES for label in (WITHOUT, *FILLING)
        }
        for number in range(arguments.rounds):
            for (label, rate), taken in samples.items():
                server = started(servers, label, number)
                sample = generator.run(server, replace(load, rate=rate))
                server.program.stop(grace=10)
                if sample.errors:
                    raise ControlPlaneError(f"{label}: {sample.errors} wrong or missing answers: {sample.error}")
                taken.append(sample)
                progress.say(
                    f"round {number + 1}  {label:23}  {rate:>3}/s  p50 {sample.p50:6.2f}  p99 {sample.p99:6.2f} ms"
                )
    return Section(tables=[Table(lines=table(samples), left=2)], samples=[*samples.items()])


def started(servers: Servers, label: str, number: int) -> Server:
    """A service that makes keys as `label` says from the moment when it is ready."""
    ahead = FILLING.get(label)
    flags = ("--ssh-keys-ready", str(STOCK), "--ssh-keys-rate", str(ahead)) if ahead else ()
    return servers.service(f"keys-{number}-{ahead or 0}", *flags)
