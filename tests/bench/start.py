"""How long `check` takes for one file, and `serve` until it is ready on a small cluster, with the image's packages.

Processor time is the least of several runs, which other programs change little; so is the time that a user waits.
"""

import argparse
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench import environment, full_caches
from tests.bench.report import Budget
from tests.bench.section import Section, Table
from tests.controlplane.process import ControlPlaneError, free_port, guarded, responds, wait_for
from tests.controlplane.progress import Progress
from tests.support.paths import EXAMPLES, ROOT

RUNS: Final = 10
SHOWN: Final = 12
"""Packages in the table of imports."""
CHECK: Final = ("check", str(EXAMPLES / "horovod-gpu.yaml"))


@dataclass(frozen=True, kw_only=True)
class Start:
    """The least of several runs, in seconds."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Commands:
    """Runs our commands with the packages of one environment."""

    python: Path
    folder: Path

    def command(self, *arguments: str, flags: Sequence[str] = ()) -> list[str]:
        """The words of a command."""
        return [str(self.python), *flags, "-P", "-m", "webhook", *arguments]

    def environment(self) -> dict[str, str]:
        """Compiled modules are kept, as in the image."""
        own = {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(self.folder / "compiled")}
        return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | own

    def check(self) -> Start:
        """`check` of one file, from its start to its end."""
        began = time.perf_counter()
        process = subprocess.Popen(
            self.command(*CHECK), env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise ControlPlaneError(f"`{' '.join(CHECK)}` ended with {process.returncode}")
        return Start(cpu=used.ru_utime + used.ru_stime, wall=time.perf_counter() - began)

    def serve(self, kubeconfig: Path) -> Start:
        """`serve`, from its start until it is ready; then it is ended."""
        ops = f"127.0.0.1:{free_port()}"
        addresses = ("--listen", "127.0.0.1:0", "--ops-listen", ops, "--ssh-keys-ready", "0", "--drain-seconds", "0")
        began = time.perf_counter()
        with (self.folder / "serve.log").open("wb") as log:
            process = subprocess.Popen(
                guarded(self.command("serve", "--kubeconfig", str(kubeconfig), *addresses)),
                env=self.environment(),
                stdout=log,
                stderr=log,
            )
        try:
            wait_for("the service", lambda: responds(f"http://{ops}/readyz"), timeout=60, every=0.005)
            took = time.perf_counter() - began
            # utime and stime are fields 14 and 15, after the name in parentheses: proc(5).
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        finally:
            process.terminate()
            process.wait()
        return Start(cpu=(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), wall=took)

    def imports(self) -> Mapping[str, int]:
        """Microseconds that each module takes `check` by itself, in the best of some runs."""
        best: dict[str, int] = {}
        for _ in range(3):
            done = subprocess.run(
                self.command(*CHECK, flags=("-X", "importtime")),
                env=self.environment(), capture_output=True, text=True, check=True,
            )  # fmt: skip
            for line in done.stderr.splitlines():
                taken, _, module = (part.strip() for part in f"{line.removeprefix('import time:')}||".split("|")[:3])
                if taken.isdigit():
                    best[module] = min(int(taken), best.get(module, int(taken)))
        return best


def least(starts: Sequence[Start]) -> Start:
    """The best of each."""
    return Start(cpu=min(each.cpu for each in starts), wall=min(each.wall for each in starts))


def packages(imports: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """The headings and a line for each package that takes long to import."""
    yield "imported by `check`", "modules", "ms"
    taken, modules = Counter[str](), Counter[str]()
    for module, micros in imports.items():
        package = module.partition(".")[0]
        taken[package] += micros
        modules[package] += 1
    for package, micros in taken.most_common(SHOWN):
        yield package, str(modules[package]), f"{micros / 1e3:.1f}"
    yield "all", str(len(imports)), f"{sum(imports.values()) / 1e3:.1f}"


def budgets(found: Mapping[str, Start]) -> list[Budget]:
    """Those of the start."""
    return [
        Budget(what=what, goal=goal, now=found[what].wall, unit="s")
        for what, goal in (("check of one file", 0.3), ("serve until it is ready", 0.5))
    ]


def measure(arguments: argparse.Namespace, progress: Progress) -> Section:
    """Start both, with the Python that runs this and with another one."""
    del arguments
    with (
        TemporaryDirectory(prefix="mpijob-bench-") as name,
        full_caches.kubeconfig(Path(name), full_caches.SMALL) as kubeconfig,
    ):
        commands = Commands(environment.this(progress).python, Path(name))
        progress.say(f"Starting `check` and `serve` {RUNS} times each.")
        commands.check()  # compiles
        commands.serve(kubeconfig)
        found = {
            "check of one file": least([commands.check() for _ in range(RUNS)]),
            "serve until it is ready": least([commands.serve(kubeconfig) for _ in range(RUNS)]),
        }
        imports = commands.imports()
    lines = [("command", "processor s", "s"), *((what, f"{s.cpu:.2f}", f"{s.wall:.2f}") for what, s in found.items())]
    verdicts = [("budget", "goal", "now", ""), *(budget.cells for budget in budgets(found))]
    tables = [Table(lines=lines), Table(lines=[*packages(imports)]), Table(lines=verdicts)]
    return Section(tables=tables, samples={"starts": found, "imports": imports})
