"""Faults at random for as long as asked: `python -m tests.chaos.soak --minutes 30 --rate 200 --seed 1`.

What it prints: verdicts that were wrong, reviews that nobody answered, what was not as before after a fault, and the
memory of a replica that lived all the time.
"""
# ruff: noqa: T201 - a command prints

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from tests.bench.machine import busy_seconds, this_machine
from tests.bench.report import text
from tests.chaos.arena import MEGABYTE, Arena, arena
from tests.chaos.faults import drawn, together
from tests.controlplane.process import ControlPlaneError, ends_in_words

MOST_AT_ONCE = 2


@dataclass
class Soaked:
    """The figures."""

    machine: str
    seed: int
    minutes: float = 0
    rate_asked: float = 0
    rate_sent: float = 0
    rate: float = 0
    """Verdicts a second, on average."""
    rate_in_faults: float = 0
    """Of those, while a fault was there."""
    verdicts: int = 0
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    """Attempts without a verdict, each tried again, by how they ended."""
    skipped: int = 0
    """Reviews that were not sent because too many others were under way."""
    through_api_server: int = 0
    lost_through_api_server: list[str] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    not_recovered: list[str] = field(default_factory=list)
    memory_start: int = 0
    memory_middle: int = 0
    memory_end: int = 0
    memory_peak: int = 0
    """Bytes: of the oldest replica, between faults."""
    busy_cores: float = 0
    """Cores that were at work on average, this run's own and others'."""
    load_average: float = 0

    @property
    def passed(self) -> bool:
        """Whether nothing was wrong."""
        return not (self.wrong or self.lost or self.lost_through_api_server or self.not_recovered)

    def lines(self) -> list[tuple[str, str]]:
        """The table."""
        memory = (self.memory_start, self.memory_middle, self.memory_end, self.memory_peak)
        rate = f"{self.rate:.0f}/s, {self.rate_in_faults:.0f}/s during faults"
        unlike = f"not recovered {len(self.not_recovered)}"
        return [
            ("reviews due", f"{self.rate_asked:.0f}/s; sent {self.rate_sent:.0f}/s, not sent {self.skipped:,}"),
            ("verdicts", f"{self.verdicts:,} in {self.minutes:.1f} minutes: {rate}"),
            ("wrong", f"{len(self.wrong)}"),
            ("lost", f"{len(self.lost)}"),
            ("tried again", f"{sum(self.refused.values()):,}"),
            ("through the API server", f"{self.through_api_server:,}, lost {len(self.lost_through_api_server)}"),
            ("faults", f"{sum(self.faults.values())} of {len(self.faults)} kinds, {unlike}"),
            ("memory MiB", "start {}, middle {}, end {}, peak {}".format(*(each // MEGABYTE for each in memory))),
            ("machine", f"{self.machine}; {self.busy_cores:.1f} cores busy, load average {self.load_average:.1f}"),
        ]  # fmt: skip


def soak(stage: Arena, soaked: Soaked, *, minutes: float, rng: Random) -> None:
    """Faults until the time is over, one or two at a time."""
    began, busy = time.monotonic(), busy_seconds()
    tally, oldest, in_faults = stage.traffic.tally, stage.replicas[0], _Answered()
    soaked.memory_start = soaked.memory_peak = stage.vitals(oldest).memory
    while (passed := time.monotonic() - began) < minutes * 60:
        names = drawn(rng, MOST_AT_ONCE)
        _one_round(stage, soaked, names, rng, in_faults)
        memory = stage.vitals(oldest).memory
        soaked.memory_peak = max(soaked.memory_peak, memory)
        if passed < minutes * 30:
            soaked.memory_middle = memory
        soaked.memory_end = memory
        print(f"{passed / 60:5.1f} min  {' + '.join(names)}: {tally.answered:,} verdicts, wrong {len(tally.wrong)}, "
              f"lost {len(tally.lost)}, {memory // MEGABYTE} MiB", flush=True)  # fmt: skip
    seconds = time.monotonic() - began
    soaked.minutes, soaked.rate, soaked.rate_sent = seconds / 60, tally.answered / seconds, tally.sent / seconds
    soaked.rate_in_faults = in_faults.answered / in_faults.seconds
    soaked.busy_cores, soaked.load_average = (busy_seconds() - busy) / seconds, os.getloadavg()[2]


@dataclass
class _Answered:
    """How many verdicts came in how many seconds."""

    answered: int = 0
    seconds: float = 0


def _one_round(stage: Arena, soaked: Soaked, names: list[str], rng: Random, in_faults: _Answered) -> None:
    for name in names:
        soaked.faults[name] = soaked.faults.get(name, 0) + 1
    began, before = time.monotonic(), stage.traffic.tally.answered
    try:
        with together(stage, rng, names):
            stage.goes_on(rng.randint(50, 500))
        in_faults.seconds += time.monotonic() - began
        in_faults.answered += stage.traffic.tally.answered - before
        stage.recovers(rng)
    except (AssertionError, TimeoutError, ControlPlaneError) as error:
        soaked.not_recovered.append(f"{' + '.join(names)}: {str(error)[:2000]}")


def main(arguments: list[str] | None = None) -> int:
    """Print the figures as a table, and as JSON to --output; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=200, help="reviews a second")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same faults in the same order")
    parser.add_argument("--output", type=Path, help="the figures as JSON")
    chosen = parser.parse_args(arguments)
    soaked = Soaked(this_machine().summary, chosen.seed, rate_asked=chosen.rate)
    with ends_in_words():
        with arena(rate=chosen.rate, seed=chosen.seed) as stage:
            tally = stage.traffic.tally
            tally.answered, tally.sent, tally.skipped = 0, 0, 0
            tally.refused.clear()
            soak(stage, soaked, minutes=chosen.minutes, rng=Random(chosen.seed))
        # By now all that were under way have ended.
        soaked.verdicts, soaked.skipped, soaked.refused = tally.answered, tally.skipped, dict(tally.refused)
        soaked.wrong, soaked.lost = tally.wrong, tally.lost
        soaked.through_api_server = stage.load.first.total()
        soaked.lost_through_api_server = stage.load.lost
    print(text([("what", "how many"), *soaked.lines()], left=2))
    for problem in (*soaked.not_recovered, *soaked.wrong[:10], *soaked.lost[:10]):
        print(problem)
    if chosen.output:
        chosen.output.write_text(json.dumps(asdict(soaked), indent=2) + "\n")
    return 0 if soaked.passed else 1


if __name__ == "__main__":
    sys.exit(main())
