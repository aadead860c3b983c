"""`kubectl mpijob diff`, called by the real kubectl, for a job created without and with the webhook."""

import os
import subprocess
import sys
from pathlib import Path

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.service import example


def test_diff_of_jobs_created_without_and_with_the_webhook(cluster: Cluster, namespace: str) -> None:
    job = example(assets().upstream_examples["pi"], namespace=namespace)
    cluster.kubectl("create", "-f", "-", stdin=job)

    def diff() -> subprocess.CompletedProcess[str]:
        # kubectl looks for plug-ins on the PATH.
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        command = [assets().kubectl, "mpijob", "diff", f"{namespace}/pi", "--kubeconfig", str(cluster.kubeconfig)]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)

    before = diff()
    assert before.returncode == 1, before.stderr
    assert f"+++ admitted/{namespace}/pi\n" in before.stdout
    assert "+    sidecar.istio.io/inject: 'false'\n" in before.stdout
    with service.running(cluster):
        cluster.kubectl("delete", "mpijob", "pi", "-n", namespace)
        cluster.kubectl("create", "-f", "-", stdin=job)
        after = diff()
    assert (after.returncode, after.stdout) == (0, ""), after.stderr
