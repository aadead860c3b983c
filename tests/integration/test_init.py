"""The jobs that `init --kubeconfig` writes are admitted by `check` and by the API server of the cluster."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import gpu_nodes
from tests.support.mpi.releases import installed
from tests.support.queued_jobs import QUEUE_LABEL, Job, managed_namespace, with_kueue
from tests.support.rare import rare
from webhook.api import yaml
from webhook.api.annotations import QUEUE
from webhook.cli.first_job import FRAMEWORKS
from webhook.cli.main import main

pytestmark = [rare, pytest.mark.cluster, pytest.mark.timeout(300)]
HOSTDEV = "nvidia.com/hostdev"
IMAGE = "registry.example.com/ml/train:1.4"
# The test machine has few slots, and the tests run as root.
HERE = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "FI_PROVIDER": "tcp",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster with Kueue, and with nodes that have GPUs and RDMA adapters."""
    with with_kueue(tmp_path_factory.mktemp("init-logs"), gpu_nodes(4, devices={HOSTDEV: "8"})) as running:
        yield running


@pytest.fixture(scope="module")
def managed(cluster: Cluster) -> str:
    return managed_namespace(cluster, cpu=64)


def written(cluster: Cluster, namespace: str, folder: Path, framework: str, *flags: str) -> tuple[Path, str]:
    """The file that `init` writes, which `check` admits, and the standard error of `init`."""
    at = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    image = () if FRAMEWORKS[framework]["image"] else ("--image", IMAGE)
    done = CliRunner().invoke(main, ["init", "--framework", framework, *image, *flags, *at], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    path = folder / "job.yaml"
    path.write_text(done.stdout, encoding="utf-8")
    checked = CliRunner().invoke(main, ["check", str(path), *at, "-o", "json"], catch_exceptions=False)
    (verdict,) = json.loads(checked.stdout)
    assert (checked.exit_code, verdict["allowed"]) == (0, True), checked.stdout
    return path, done.stderr


def created(cluster: Cluster, path: Path) -> tuple[dict[str, Any], str]:
    """The job that the API server would store, and its warnings."""
    done = cluster.kubectl("create", "--dry-run=server", "-f", str(path), "-o", "json")
    stored: dict[str, Any] = json.loads(done.stdout)
    return stored, done.stderr


def limits(job: dict[str, Any]) -> dict[str, str]:
    pod = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    found: dict[str, str] = pod["containers"][0]["resources"]["limits"]
    return found


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_written_job_of_each_framework_is_admitted(
    cluster: Cluster, namespace: str, tmp_path: Path, framework: str
) -> None:
    path, stderr = written(cluster, namespace, tmp_path, framework)
    assert ": admitted\n" in stderr, stderr
    stored, _ = created(cluster, path)
    assert stored["metadata"]["namespace"] == namespace
    assert HOSTDEV not in limits(stored)


# PyTorch is several gigabytes, so its torchrun is tested only if it is installed.
STARTED = {"openmpi": "openmpi-5", "intel": "intel", "mpich": "mpich", "horovod": "openmpi-4", "deepspeed": "openmpi-4"}
STARTED |= {"pytorch": "openmpi-4"} if shutil.which("torchrun") else {}


@pytest.mark.parametrize("program", ["train.py", "python train.py"])
@pytest.mark.parametrize("framework", STARTED)
def test_launcher_of_the_written_job_starts_the_ranks(framework: str, program: str, tmp_path: Path) -> None:
    flags = ["--framework", framework, "--gpus", "1", "--image", IMAGE]
    done = CliRunner().invoke(main, ["init", *flags, "--", *program.split()], catch_exceptions=False)
    (document,) = yaml.load_all(done.stdout)
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    (tmp_path / "train.py").write_text("print('a rank', flush=True)")
    environment = installed(STARTED[framework]).environment
    started = subprocess.run(
        [*launcher.get("command", ()), *launcher["args"]],
        cwd=tmp_path,
        env=environment
        | HERE
        | {"HOME": str(tmp_path), "PATH": f"{environment['PATH']}:{Path(sys.executable).parent}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (started.returncode, started.stdout.splitlines()) == (0, ["a rank"] * 2), started.stderr


@pytest.mark.parametrize("framework", ["horovod", "pytorch", "deepspeed"])
def test_rdma_uses_the_devices_of_the_nodes(cluster: Cluster, namespace: str, tmp_path: Path, framework: str) -> None:
    path, stderr = written(cluster, namespace, tmp_path, framework, "--gpus", "8", "--rdma")
    assert stderr.endswith(": admitted\n")
    stored, _ = created(cluster, path)
    assert (limits(stored)["nvidia.com/gpu"], limits(stored)[HOSTDEV]) == ("8", "8")


def test_job_with_an_existing_queue_is_queued_and_succeeds(cluster: Cluster, managed: str, tmp_path: Path) -> None:
    path, stderr = written(cluster, managed, tmp_path, "openmpi", "--queue", "training")
    assert "not in queue" not in stderr
    stored, _ = created(cluster, path)
    assert (stored["metadata"]["labels"][QUEUE_LABEL], stored["spec"]["runPolicy"]["suspend"]) == ("training", True)
    cluster.kubectl("create", "-f", str(path))
    Job(cluster, managed, "first-openmpi").wait_for("Succeeded")


@pytest.mark.parametrize("framework", ["openmpi", "pytorch"])
def test_missing_queue_causes_a_warning(cluster: Cluster, managed: str, tmp_path: Path, framework: str) -> None:
    path, stderr = written(cluster, managed, tmp_path, framework, "--queue", "nowhere", "--name", "other")
    stored, warned = created(cluster, path)
    for each in (stderr, warned):
        assert "kueue-queue: not in queue nowhere: " in each
    assert stored["metadata"]["annotations"][QUEUE] == "nowhere"
    assert QUEUE_LABEL not in stored["metadata"].get("labels", {})
