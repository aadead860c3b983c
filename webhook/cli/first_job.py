"""A first job for a framework, as YAML with comments: what `init` writes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook import PROGRAM
from webhook.api import yaml
from webhook.api.annotations import QUEUE, RDMA, TIMEOUT
from webhook.api.mpijob import API_VERSION

GPU: Final = "nvidia.com/gpu"
WORKERS: Final = 2
_PORT: Final = 29500
_USER: Final = 1000
_HOME: Final = "/home/mpiuser"
_SSHD: Final = ("/usr/sbin/sshd", "-De", "-f", f"{_HOME}/.sshd_config")
_PASSED_ON: Final = ("-x", "PATH", "-x", "LD_LIBRARY_PATH", "-x", "NCCL_DEBUG=INFO")
_OPEN_MPI: Final = ("-bind-to", "none", "-map-by", "slot", *_PASSED_ON)


@dataclass(frozen=True, slots=True)
class Framework:
    """How jobs of a framework run."""

    title: str
    needs: str
    """What the image has to have."""
    program: tuple[str, ...]
    image: str = ""
    """A published one that has all that; empty where there is none."""
    implementation: str = "OpenMPI"
    as_user: bool = False
    """The image is one of upstream's, with a user of its own."""
    waits: bool = False
    """Its entry point waits for the names of the workers, so it is not replaced by a command."""
    starter: bool = False
    """One process on each worker starts the others."""
    gpus: int = 1


FRAMEWORKS: Final = {
    "openmpi": Framework(
        "Open MPI", "Open MPI, sshd and ssh", (f"{_HOME}/pi",), "mpioperator/mpi-pi:openmpi", as_user=True, gpus=0
    ),
    "intel": Framework(
        "Intel MPI",
        "Intel MPI, sshd and ssh, and upstream's entry point",
        (f"{_HOME}/pi",),
        "mpioperator/mpi-pi:intel",
        "Intel",
        as_user=True,
        waits=True,
        gpus=0,
    ),
    "mpich": Framework(
        "MPICH",
        "MPICH, sshd and ssh, and upstream's entry point",
        (f"{_HOME}/pi",),
        "mpioperator/mpi-pi:mpich",
        "MPICH",
        as_user=True,
        waits=True,
        gpus=0,
    ),
    "horovod": Framework(
        "Horovod",
        "Horovod, Open MPI, sshd and ssh",
        ("python", "/horovod/examples/tensorflow2/tensorflow2_synthetic_benchmark.py"),
        "horovod/horovod:0.28.1",
    ),
    "pytorch": Framework("PyTorch", "PyTorch, Open MPI, sshd and ssh", ("train.py",), starter=True),
    "deepspeed": Framework(
        "DeepSpeed",
        "DeepSpeed, mpi4py, Open MPI, sshd and ssh",
        ("python", "train.py", "--deepspeed", "--deepspeed_config", "ds_config.json"),
    ),
}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the job is to be."""

    framework: str
    name: str
    image: str
    program: Sequence[str]
    workers: int = 2
    gpus: int = 0
    namespace: str = ""
    queue: str = ""
    rdma: bool = False
    gpu_resource: str = GPU


def default_name(framework: str) -> str:
    """Of the job, where nobody names it."""
    return f"first-{framework}"


def wish(said: Mapping[str, Any], program: Sequence[str], gpu_resource: str = GPU) -> Wishes:
    """What was said, and defaults; ValueError where there is none."""
    name = said["framework"]
    framework = FRAMEWORKS[name]
    image = said["image"] or framework.image
    if not image:
        raise ValueError(f"--image: no published image is known that has {framework.needs}: name one of yours")
    if framework.image and image != framework.image and not program:
        raise ValueError("PROGRAM: the example is in the published image alone: name what each rank runs in yours")
    return Wishes(
        framework=name,
        name=said["name"] or default_name(name),
        image=image,
        program=tuple(program) or framework.program,
        workers=WORKERS if said["workers"] is None else said["workers"],
        gpus=framework.gpus if said["gpus"] is None else said["gpus"],
        namespace=said["namespace"] or "",
        queue=said["queue"] or "",
        rdma=bool(said["rdma"]),
        gpu_resource=gpu_resource,
    )


def text(wishes: Wishes) -> str:
    """The job."""
    return "\n".join(_lines(wishes, FRAMEWORKS[wishes.framework])) + "\n"


def _lines(wishes: Wishes, framework: Framework) -> Iterator[str]:
    gpus = f" with {_counted(wishes.gpus, 'GPU')} each" if wishes.gpus else ""
    yield f"# {framework.title} on {_counted(wishes.workers, 'worker')}{gpus}, written by {PROGRAM} init."
    yield f"# Before it is submitted: {PROGRAM} check FILE. Then: kubectl create -f FILE."
    yield f"apiVersion: {API_VERSION}"
    yield "kind: MPIJob"
    yield "metadata:"
    yield f"  name: {_value(wishes.name)}"
    if wishes.namespace:
        yield f"  namespace: {_value(wishes.namespace)}"
    yield "  annotations:"
    yield "    # How long it may run. Then it ends, and gives back what it holds."
    yield f"    {TIMEOUT}: 24h"
    if wishes.queue:
        yield "    # The queue of Kueue in which it waits until there is room for all of it."
        yield f"    {QUEUE}: {_value(wishes.queue)}"
    if wishes.rdma:
        yield "    # Devices, networks and variables for RDMA, as the nodes and the platform's policy have them."
        yield f'    {RDMA}: "true"'
    yield "spec:"
    yield from _slots(wishes, framework)
    if framework.implementation != "OpenMPI":
        yield f"  mpiImplementation: {framework.implementation}"
    if framework.as_user:
        yield f"  # The image's user is mpiuser ({_USER}), and sshd looks for its keys in that user's home."
        yield f"  sshAuthMountPath: {_HOME}/.ssh"
    yield "  runPolicy:"
    yield "    # At the end the workers go. The launcher stays, with its log."
    yield "    cleanPodPolicy: Running"
    yield "    # How often a launcher that failed is tried again."
    yield "    backoffLimit: 2"
    yield "  mpiReplicaSpecs:"
    yield from _launcher(wishes, framework)
    yield from _worker(wishes, framework)


def _slots(wishes: Wishes, framework: Framework) -> Iterator[str]:
    if framework.starter:
        yield "  # One rank on each worker: torchrun, which starts the processes there."
    else:
        yield f"  # Ranks on each worker{': one for each GPU' if wishes.gpus else ''}."
    yield f"  slotsPerWorker: {_each(wishes, framework)}"


def _each(wishes: Wishes, framework: Framework) -> int:
    """Ranks on a worker."""
    return 1 if framework.starter else max(wishes.gpus, 1)


def _launcher(wishes: Wishes, framework: Framework) -> Iterator[str]:
    yield "    # Starts mpirun, and runs no rank itself."
    yield from _head("Launcher", 1)
    yield f"              # It has {framework.needs}."
    yield f"              image: {_value(wishes.image)}"
    ranks = str(_each(wishes, framework) * wishes.workers)
    if framework.waits:
        yield "              # No command: the image's entry point waits until the workers can be reached."
        yield "              args:"
        yield "                - mpirun"
    else:
        yield "              command: [mpirun]"
        yield "              args:"
    if not framework.as_user:
        yield "                - --allow-run-as-root"
    yield "                # As many ranks as all workers have slots."
    yield f"                - {'-n' if framework.waits else '-np'}"
    yield f"                - {_value(ranks)}"
    if not framework.as_user:
        yield "                # Open MPI passes on to the ranks what -x names."
        yield from (f"                - {_value(word)}" for word in _OPEN_MPI)
    if framework.starter:
        yield "                # The processes find each other at the first worker."
        yield from (f"                - {_value(word)}" for word in _torchrun(wishes))
    yield "                # What each of them runs."
    yield from (f"                - {_value(word)}" for word in wishes.program)
    yield from _security(framework)
    yield from _resources({"cpu": "1", "memory": "2Gi" if wishes.gpus else "1Gi"})


def _torchrun(wishes: Wishes) -> list[str]:
    nodes, each = str(wishes.workers), str(max(wishes.gpus, 1))
    meet = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"{wishes.name}-worker-0.{wishes.name}:{_PORT}"]
    return ["torchrun", "--nnodes", nodes, "--nproc_per_node", each, *meet]


def _worker(wishes: Wishes, framework: Framework) -> Iterator[str]:
    yield from _head("Worker", wishes.workers)
    yield f"              image: {_value(wishes.image)}"
    if framework.as_user:
        yield f"              {'args' if framework.waits else 'command'}: [{', '.join(_SSHD)}]"
    else:
        yield "              # No command: the operator starts /usr/sbin/sshd -De, by which mpirun reaches the worker."
    if framework.waits:
        yield "              readinessProbe:"
        yield "                tcpSocket:"
        yield "                  port: 2222"
        yield "                initialDelaySeconds: 2"
    yield from _security(framework)
    amounts = {"cpu": str(max(4 * wishes.gpus, 1)), "memory": f"{max(16 * wishes.gpus, 1)}Gi"}
    if wishes.gpus:
        yield "              # GPUs: requests and limits are equal. The rest is a guess: see what the job uses."
        amounts[wishes.gpu_resource] = str(wishes.gpus)
    yield from _resources(amounts)


def _head(role: str, replicas: int) -> Iterator[str]:
    yield f"    {role}:"
    yield f"      replicas: {replicas}"
    yield "      template:"
    yield "        spec:"
    yield "          containers:"
    yield f"            - name: {role.lower()}"


def _security(framework: Framework) -> Iterator[str]:
    if framework.as_user:
        yield "              securityContext:"
        yield f"                runAsUser: {_USER}"


def _resources(amounts: dict[str, str]) -> Iterator[str]:
    yield "              resources:"
    for kind in ("requests", "limits"):
        yield f"                {kind}:"
        yield from (f"                  {name}: {_value(amount)}" for name, amount in amounts.items())


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _value(value: str) -> str:
    """A text, in quotes where YAML would take it for something else."""
    item = yaml.dump([value]).removeprefix("- ").rstrip("\n")
    return item if "\n" not in item else yaml.dump_inline(value)
