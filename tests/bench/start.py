"""Measures the time of `check` for one file, and the time in which `serve` starts with a small cluster.

Both run with only the packages of the image.

The result is the minimum of several runs, because other programs affect the minimum least.
"""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench.cluster import Size, kubeconfig
from tests.bench.report import Budget, verdicts
from tests.controlplane.process import ControlPlaneError, free_port, guarded, responds, wait_for
from tests.controlplane.progress import Progress
from tests.support import environment
from tests.support.paths import EXAMPLES, ROOT

RUNS: Final = 10


@dataclass(frozen=True)
class Commands:
    """Runs the project's commands in an environment. Each method returns the time in seconds."""

    python: Path
    folder: Path

    def check(self) -> float:
        """The time of `check` for one file, from start to exit."""
        began = time.perf_counter()
        with self._started([], "check", str(EXAMPLES / "horovod-gpu.yaml")) as process:
            if process.wait():
                raise ControlPlaneError(f"`check` ended with {process.returncode}: {self._log.read_text()[-2000:]}")
        return time.perf_counter() - began

    def serve(self, small: Path) -> float:
        """The time of `serve` from start until it is ready. The service is then stopped."""
        ops = f"127.0.0.1:{free_port()}"
        addresses = ("--listen", "127.0.0.1:0", "--ops-listen", ops, "--ssh-keys-ready", "0", "--drain-seconds", "0")
        began = time.perf_counter()
        with self._started(guarded([]), "serve", "--kubeconfig", str(small), *addresses) as process:
            try:
                wait_for("the service", lambda: responds(f"http://{ops}/readyz"), timeout=60, every=0.005)
                return time.perf_counter() - began
            finally:
                process.terminate()

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _started(self, wrapper: list[str], *arguments: str) -> subprocess.Popen[bytes]:
        # Compiled modules are stored, as in the image.
        own = {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(self.folder / "compiled")}
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        command = [*wrapper, str(self.python), "-P", "-m", "webhook", *arguments]
        with self._log.open("wb") as log:
            return subprocess.Popen(command, env=kept | own, stdout=log, stderr=log)


def measure(progress: Progress) -> str:
    with (
        TemporaryDirectory(prefix="mpijob-bench-") as name,
        kubeconfig(Path(name), Size.of(10)) as small,
    ):
        commands = Commands(environment.this(progress), Path(name))
        progress.say(f"Starting `check` and `serve` {RUNS} times each.")
        commands.check()  # the first run compiles the modules
        commands.serve(small)
        check = min(commands.check() for _ in range(RUNS))
        serve = min(commands.serve(small) for _ in range(RUNS))
    return verdicts(
        Budget(name=name, goal=goal, now=now, unit="s")
        for name, goal, now in (("check of one file", 0.3, check), ("serve until it is ready", 1.5, serve))
    )
