"""Real MPI programs run with the hostfile, keys and environment that the real operator creates for reviewed jobs."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import KEEP_RUNNING
from tests.controlplane.process import Program
from tests.support.installation import service
from tests.support.installation.ssh_secrets import keys_of
from tests.support.installation.sshd import Sshd, find_sshd
from tests.support.jobs import changed
from tests.support.mpi import pods, rank
from tests.support.mpi.programs import find
from tests.support.mpi.releases import DEBIAN, DEBIANS_MPIRUN, Release, installed
from tests.support.rare import rare

pytestmark = [
    rare,
    pytest.mark.timeout(600),  # the first run downloads four releases of MPI
    pytest.mark.skipif(
        os.geteuid() != 0, reason="needs root, because the test runs pods as Linux namespaces of this machine"
    ),
]
HEAD = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\nsshKeys: ed25519\n"
WITHOUT = HEAD + "injections: {mpi-env: {enabled: false}}\n"
LAUNCHER, WORKER = (f"{role}.template.spec.containers.0" for role in ("Launcher", "Worker"))
PORT = 2222
Start = Callable[[str], subprocess.CompletedProcess[str]]
HOSTFILE = {"name": "PRTE_MCA_prte_default_hostfile", "value": "/etc/mpi/hostfile"}
ON_PORT = {f"{WORKER}.command": ["/usr/sbin/sshd", "-De", "-p", str(PORT)]}
WITH_ARGS = f'mpirun -mca plm_rsh_args "-p {PORT}" -x NCCL_DEBUG'


@dataclass(frozen=True)
class Case:
    """A job: the MPI release in its image, the command that starts the ranks, and other settings."""

    release: str
    implementation: str
    mpirun: str
    changes: Mapping[str, Any]
    env: tuple[Mapping[str, str], ...] = ()


CASES = {
    "openmpi-4": Case("openmpi-4", "OpenMPI", "mpirun -x NCCL_DEBUG", {}),
    "openmpi-5": Case("openmpi-5", "OpenMPI", "mpirun -x NCCL_DEBUG", {}),
    "mpich": Case("mpich", "MPICH", "mpiexec", {}),
    "intel": Case("intel", "Intel", "mpiexec", {}),
    "port-4": Case("openmpi-4", "OpenMPI", WITH_ARGS, ON_PORT),
    "port-5": Case("openmpi-5", "OpenMPI", WITH_ARGS, ON_PORT),
    # The injection `mpi-env` is disabled when these jobs are created.
    "without-5": Case("openmpi-5", "OpenMPI", "mpirun -x NCCL_DEBUG", {}),
    "without-port-5": Case("openmpi-5", "OpenMPI", WITH_ARGS, ON_PORT, (HOSTFILE,)),
}

# Debian's Open MPI needs dozens of packages, so the tests use it only where it is already installed.
DEBIANS = ["debian"] if shutil.which(DEBIANS_MPIRUN) else []
CASES |= {name: Case(DEBIAN, "OpenMPI", f"{DEBIANS_MPIRUN} -x NCCL_DEBUG", {}) for name in DEBIANS}


def manifest(name: str, namespace: str) -> dict[str, Any]:
    case = CASES[name]
    library = installed(case.release).library
    env = [
        {"name": "NCCL_DEBUG", "value": "INFO"},
        {"name": "NCCL_ALGO", "value": "Ring"},
        {"name": "OMPI_ALLOW_RUN_AS_ROOT", "value": "1"},
        {"name": "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "value": "1"},
        {"name": "FI_PROVIDER", "value": "tcp"},  # for Intel MPI, because this machine has only TCP
        *case.env,
    ]
    return changed(
        {
            "metadata.name": name,
            "metadata.namespace": namespace,
            "spec.mpiImplementation": case.implementation,
            "spec.slotsPerWorker": 1,
            "Worker.replicas": 2,
            f"{WORKER}.env": [{"name": "NCCL_PROTO", "value": "Simple"}],
            f"{WORKER}.resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            "Launcher.template.metadata": {"annotations": {KEEP_RUNNING: "true"}},
            f"{LAUNCHER}.command": ["bash", "-c", f"{case.mpirun} -n 2 {sys.executable} {rank.__file__} {library}"],
            f"{LAUNCHER}.env": env,
            **case.changes,
        }
    )


@pytest.fixture(scope="module")
def jobs(operator_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The namespace in which the operator has created the objects for all of CASES."""
    cluster, namespace = operator_cluster, operator_cluster.create_namespace()
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    for text, names in (
        (HEAD, [name for name in CASES if not name.startswith("without")]),
        (WITHOUT, [name for name in CASES if name.startswith("without")]),
    ):
        policy.write_text(text)
        with service.running(cluster, "--policy", str(policy)):
            items = [manifest(name, namespace) for name in names]
            cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
            keys_of(cluster, namespace, names)
    yield namespace
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Sshd:
    find("ssh", "openssh-client")
    return find_sshd(tmp_path_factory.mktemp("sshd"))


@pytest.fixture
def start(operator_cluster: Cluster, jobs: str, sshd: Sshd, tmp_path: Path) -> Start:
    """A function that runs a job."""
    return lambda name: started(operator_cluster, jobs, name, sshd, tmp_path)


def started(cluster: Cluster, namespace: str, name: str, sshd: Sshd, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands of the launcher and the workers that the operator has created for the job."""

    def get(kind: str, of: str) -> Any:
        return cluster.wait_for(f"{kind} {of}", lambda: cluster.get(kind, of, "-n", namespace))

    template = get("job", f"{name}-launcher")["spec"]["template"]
    launcher = {"metadata": {"namespace": namespace}, "spec": template["spec"]}
    workers = [get("pod", f"{name}-worker-{number}") for number in (0, 1)]
    files = get("configmap", f"{name}-config")["data"]
    keys = keys_of(cluster, namespace, [name])[name]
    assert keys.words[2:] == [f"mpijob/{namespace}/{name}"], "the service generated the key pair"
    contents = {
        f"{name}-ssh": keys.manifest["data"],
        f"{name}-config": {key: base64.b64encode(text.encode()).decode() for key, text in files.items()},
    }
    release: Release = installed(CASES[name].release)
    with (
        pods.running([launcher, *workers], contents, release.environment, folder) as (first, *others),
        ExitStack() as run,
    ):
        for number, pod in enumerate(others):
            program = Program(f"sshd-{number}", serving(pod, sshd), log=folder / f"sshd-{number}.log", env={})
            run.callback(program.stop)
            program.wait_ready(lambda program=program: "Server listening" in program.log.read_text())
        return subprocess.run(first.command, capture_output=True, text=True, timeout=120, check=False)


def serving(pod: pods.Pod, sshd: Sshd) -> list[str | Path]:
    """The worker's command, with the sshd of this machine instead of the image's sshd."""
    command = [sshd.program if word == "/usr/sbin/sshd" else word for word in pod.command]
    assert sshd.program in command
    if sshd.libraries:
        command.insert(command.index(sshd.program), f"LD_LIBRARY_PATH={sshd.libraries}")
    return command


def ranks(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The lines that the ranks printed, sorted."""
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return sorted(found, key=lambda one: (one["rank"], one["host"]))


@pytest.mark.parametrize(
    ("name", "env"),
    [
        *((name, {"NCCL_DEBUG": "INFO"}) for name in DEBIANS),
        ("openmpi-4", {"NCCL_DEBUG": "INFO"}),
        ("openmpi-5", {"NCCL_DEBUG": "INFO"}),
        ("mpich", {"NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ring"}),
        ("intel", {"NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ring"}),
    ],
)
def test_ranks_start_on_both_workers_with_the_exported_environment(
    start: Start, name: str, env: dict[str, str]
) -> None:
    found = ranks(start(name))
    assert found == [{"rank": number, "size": 2, "host": f"{name}-worker-{number}", "env": env} for number in (0, 1)], (
        "NCCL_PROTO of the worker's environment does not reach the ranks"
    )


def test_ranks_of_open_mpi_5_stay_on_the_launcher_without_the_injection_mpi_env(start: Start) -> None:
    found = ranks(start("without-5"))
    assert [one["host"] for one in found] == ["without-5-launcher"] * 2


@pytest.mark.parametrize("name", ["port-4", "port-5"])
def test_options_of_ssh_reach_open_mpi(start: Start, name: str) -> None:
    found = ranks(start(name))
    assert [one["host"] for one in found] == [f"{name}-worker-0", f"{name}-worker-1"]


def test_options_of_ssh_do_not_reach_open_mpi_5_without_the_injection_mpi_env(start: Start) -> None:
    done = start("without-port-5")
    assert done.returncode != 0
    assert "port 22: Connection refused" in done.stderr
