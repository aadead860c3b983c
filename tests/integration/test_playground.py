"""`make playground` as its user meets it: a job that succeeds, one that is refused, and nothing left at the end."""

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
    """Command lines of all processes that were started for the cluster in `folder`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        if folder in line:
            found.append(line)
    return found


def cluster_folder(output: str) -> str:
    match = re.search(r"KUBECONFIG=(\S+)/admin.kubeconfig", output)
    assert match, output
    return match[1]


def told_of_absent_kinds(log: Path) -> list[dict[str, Any]]:
    """What the webhook's log says of Kueue and Multus, which are not there."""
    return [json.loads(line) for line in log.read_text().splitlines() if "localqueues" in line]


@rare
def test_once_shows_a_success_and_a_refusal() -> None:
    done = subprocess.run([*COMMAND, "--once"], capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mpijob.kubeflow.org/openmpi-pi condition met" in done.stdout
    assert "mpijob.kubeflow.org/horovod-resnet created (server dry run)" in done.stdout
    assert "resourcequota/gpus created" in done.stdout
    assert "mpijob.kubeflow.org/horovod-resnet created\n" in done.stdout, "a quota counts it"
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
            (absent,) = told_of_absent_kinds(Path(folder, "mpijob-webhook.log"))
            assert {"localqueues", "network-attachment-definitions"} <= {*absent["kinds"]}
            assert absent["level"] == "info"
            playground.send_signal(signal.SIGTERM)  # becomes what Ctrl-C is
            assert playground.wait(30) == 0, output.read_text()
        finally:
            playground.kill()
    assert processes_of(folder) == []
    assert not Path(folder).exists()
