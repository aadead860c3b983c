"""With the injection `launcher-wait`, jobs with slow workers do not fail. sshd, mpirun and Kueue are real.

The same jobs run without the injection for comparison, and some of them fail.
"""

import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import BY_HAND, gpu_nodes
from tests.support.installation.sshd import Sshd, find_sshd
from tests.support.jobs import changed
from tests.support.mpi import rank
from tests.support.mpi.kubelet import Kubelet, Life
from tests.support.mpi.programs import find
from tests.support.mpi.releases import installed
from tests.support.policies import policy_configmap
from tests.support.queued_jobs import MANAGED, QUEUE_LABEL, add_queue, settle, with_kueue
from tests.support.rare import FULL

pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        os.geteuid() != 0, reason="needs root, because the test runs pods as Linux namespaces of this machine"
    ),
]
JOBS = int(os.environ.get("MPIJOB_SLOW_JOBS", "4"))
MANY = JOBS >= 50
SLOWEST = 60.0 if MANY else 12.0
AT_A_TIME = 10 if MANY else 4
SEED = 20261126
RELEASES = ("openmpi-4", "openmpi-5", "mpich", "intel") if FULL else ("openmpi-4", "openmpi-5")
OFF = {"wait": "off"}
WITHOUT = "priority: 10\nnamespaces: {matchLabels: {wait: 'off'}}\ninjections: {launcher-wait: {enabled: false}}\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_kueue(tmp_path_factory.mktemp("slow-workers"), gpu_nodes(8)) as running:
        running.apply([policy_configmap(WITHOUT, "without")])
        yield running


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Sshd:
    find("ssh", "openssh-client")
    return find_sshd(tmp_path_factory.mktemp("sshd"))


def places(cluster: Cluster, labels: dict[str, str]) -> tuple[str, str]:
    """A namespace that Kueue manages, whose queue has quota for all jobs, and a namespace without Kueue."""
    queued, free = cluster.create_namespace("slow", MANAGED | labels), cluster.create_namespace("slow", labels)
    add_queue(cluster, queued, cpu=10000)
    settle(cluster, queued, "training")
    return queued, free


def job(index: int, namespace: str, chosen: random.Random) -> dict[str, Any]:
    """A job whose launcher runs a shell script (odd index) or mpirun (even index). The full run varies backoffLimit."""
    release = RELEASES[index % len(RELEASES)]
    implementation = {"mpich": "MPICH", "intel": "Intel"}.get(release, "OpenMPI")
    mpirun = ["mpirun" if implementation == "OpenMPI" else "mpiexec", "-n", "2"]
    words = [*mpirun, sys.executable, rank.__file__, str(installed(release).library)]
    as_root = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    env = [{"name": name, "value": "1"} for name in as_root] + [{"name": "FI_PROVIDER", "value": "tcp"}]
    by_hand = {"annotations": {BY_HAND: "yes"}}
    return changed(
        {
            "metadata.name": f"slow-{index}",
            "metadata.namespace": namespace,
            "spec.mpiImplementation": implementation,
            "spec.slotsPerWorker": 1,
            "spec.runPolicy.backoffLimit": chosen.choice([0, 1, 2, 6]) if FULL else 0,
            "Launcher.restartPolicy": "OnFailure",
            "Launcher.template.metadata": by_hand,
            "Worker.template.metadata": by_hand,
            "Worker.replicas": 2,
            "Worker.template.spec.containers.0.env": [],
            "Worker.template.spec.containers.0.resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            "Launcher.template.spec.containers.0.command": ["bash", "-c", " ".join(words)] if index % 2 else words,
            "Launcher.template.spec.containers.0.env": env,
        }
    )


def outcomes(cluster: Cluster, sshd: Sshd, folder: Path, labels: dict[str, str]) -> list[Life]:
    """The outcomes of `JOBS` jobs. Half of the jobs have a queue."""
    chosen = random.Random(SEED)
    both = places(cluster, labels)
    drawn = [(index, both[index // 2 % 2], [chosen.uniform(5, SLOWEST) for _ in range(2)]) for index in range(JOBS)]

    machine = Kubelet(cluster, sshd, folder)

    def run(index: int, namespace: str, delays: list[float]) -> Life:
        manifest = job(index, namespace, random.Random(SEED + index))
        cluster.kubectl("create", "-f", "-", stdin=manifest)
        release = installed(RELEASES[index % len(RELEASES)])
        life = machine.live(namespace, f"slow-{index}", delays, release)
        sys.stderr.write(f"{life}\n")
        return life

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = list(pool.map(lambda one: run(*one), drawn))
    in_queue = cluster.get("mpijobs", "-n", both[0])["items"]
    assert {one["metadata"]["labels"][QUEUE_LABEL] for one in in_queue} == {"training"}
    failed, again = sum(not life.succeeded for life in found), sum(life.tries > 1 for life in found)
    wait = "without the launcher's wait" if labels else "with the default policy"
    sys.stderr.write(f"{wait} {failed} of {JOBS} jobs failed, {again} needed a retry\n")
    return found


def test_jobs_with_slow_workers_succeed(cluster: Cluster, sshd: Sshd, tmp_path: Path) -> None:
    found = outcomes(cluster, sshd, tmp_path, {})
    assert {life.name: life.output for life in found if not life.succeeded or life.tries != 1} == {}
    for life in found:
        assert life.waited[-1].endswith("every worker answers\n")
    assert any("waiting for" in text and "Could not resolve hostname" in text for life in found for text in life.waited)


def test_launcher_created_after_the_workers_are_ready_does_not_wait(
    cluster: Cluster, sshd: Sshd, tmp_path: Path
) -> None:
    _, namespace = places(cluster, {})
    cluster.kubectl("create", "-f", "-", stdin=job(1, namespace, random.Random(SEED)))
    life = Kubelet(cluster, sshd, tmp_path).live(namespace, "slow-1", [1.0, 8.0], installed(RELEASES[1]), held=True)
    assert (life.succeeded, life.tries, life.waited) == (True, 1, ["every worker answers\n"])


def test_some_jobs_fail_without_the_injection(cluster: Cluster, sshd: Sshd, tmp_path: Path) -> None:
    found = outcomes(cluster, sshd, tmp_path, OFF)
    failed = [life for life in found if not life.succeeded]
    assert failed
    assert all(not life.waited for life in found)
    assert any("Could not resolve hostname" in life.output for life in failed)
