"""`make playground`: one job succeeds, one job is rejected, and nothing is left at the end."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.process import wait_for
from tests.support.rare import rare

pytestmark = pytest.mark.cluster
COMMAND = [sys.executable, "-W", "error", "-m", "tests.controlplane.playground"]


def processes_of(folder: str) -> list[str]:
    """The command lines of all processes of the cluster in `folder`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # the process has exited
        if folder in line:
            found.append(line)
    return found


def cluster_folder(output: str) -> str:
    match = re.search(r"KUBECONFIG=(\S+)/admin.kubeconfig", output)
    assert match, output
    return match[1]


def logged_absent_kinds(log: Path) -> list[dict[str, Any]]:
    """The log lines of the webhook about the missing CRDs of Kueue and Multus."""
    return [json.loads(line) for line in log.read_text().splitlines() if "localqueues" in line]


@rare
def test_single_run_shows_a_success_and_a_rejection() -> None:
    done = subprocess.run([*COMMAND, "--once"], capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mpijob.kubeflow.org/openmpi-pi condition met" in done.stdout
    assert "mpijob.kubeflow.org/horovod-resnet created (server dry run)" in done.stdout
    assert "resourcequota/gpus created" in done.stdout
    assert "mpijob.kubeflow.org/horovod-resnet created\n" in done.stdout
    assert "200 workers, at most 100 allowed" in done.stdout
    assert not Path(cluster_folder(done.stdout)).exists()


def test_playground_runs_until_interrupted(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("wb") as sink, subprocess.Popen(COMMAND, stdout=sink, stderr=sink) as playground:
        try:
            wait_for("the playground", lambda: "Ctrl-C" in output.read_text(), timeout=120, detail=output.read_text)
            folder = cluster_folder(output.read_text())
            assert len(processes_of(folder)) >= 7
            (path,) = re.findall(r"export PATH=(\S+):\$PATH", output.read_text())
            assert [shutil.which(name, path=path) is None for name in ("kubectl", "mpijob-webhook")] == [False, False]
            (absent,) = logged_absent_kinds(Path(folder, "mpijob-webhook.log"))
            assert {"localqueues", "network-attachment-definitions"} <= {*absent["kinds"]}
            assert absent["level"] == "info"
            playground.send_signal(signal.SIGTERM)  # ends the playground like Ctrl-C
            assert playground.wait(30) == 0, output.read_text()
        finally:
            playground.kill()
    assert processes_of(folder) == []
    assert not Path(folder).exists()
