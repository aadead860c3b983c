"""How long `check` takes for one file, and `serve` until it is ready on a small cluster, with the image's packages.

Processor time is the least of several runs, which other programs change little; so is the time that a user waits.
"""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench.cluster import Size, kubeconfig
from tests.bench.report import Budget, text, verdicts
from tests.controlplane.process import ControlPlaneError, free_port, guarded, responds, wait_for
from tests.controlplane.progress import Progress
from tests.support import environment
from tests.support.paths import EXAMPLES, ROOT

RUNS: Final = 10
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

    def command(self, *arguments: str) -> list[str]:
        """The words of a command."""
        return [str(self.python), "-P", "-m", "webhook", *arguments]

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


def least(starts: Sequence[Start]) -> Start:
    """The best of each."""
    return Start(cpu=min(each.cpu for each in starts), wall=min(each.wall for each in starts))


def measure(progress: Progress) -> str:
    """A table of both commands, and the budgets."""
    with (
        TemporaryDirectory(prefix="mpijob-bench-") as name,
        kubeconfig(Path(name), Size.of(10)) as small,
    ):
        commands = Commands(environment.this(progress).python, Path(name))
        progress.say(f"Starting `check` and `serve` {RUNS} times each.")
        commands.check()  # compiles
        commands.serve(small)
        check = least([commands.check() for _ in range(RUNS)])
        serve = least([commands.serve(small) for _ in range(RUNS)])
    found = {"check of one file": (check, 0.3), "serve until it is ready": (serve, 1.5)}
    lines = [(what, f"{least.cpu:.2f}", f"{least.wall:.2f}") for what, (least, _) in found.items()]
    budgets = (Budget(what=what, goal=goal, now=least.wall, unit="s") for what, (least, goal) in found.items())
    return f"{text([('command', 'processor s', 's'), *lines], left=1)}\n\n{verdicts(budgets)}"
