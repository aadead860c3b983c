"""Kubeflow's SDKs in a separate environment, because they need an older Kubernetes client."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.progress import Progress
from tests.support import environment
from tests.support.paths import ROOT

PROGRAM = Path(__file__).with_name("program.py")


def submit(sdk: str, cluster: Cluster, namespace: str, job: dict[str, Any]) -> tuple[Any, str]:
    """Submit the job with the SDK. Returns the result, and the text that the SDK shows."""
    python = environment.apart(Progress(), ROOT / "requirements" / "kubeflow.txt")
    done = subprocess.run(
        [python, PROGRAM, sdk, cluster.kubeconfig, namespace],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr
