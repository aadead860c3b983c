"""A first job for a framework, as YAML with comments: what `init` writes. The texts are in `first_jobs`."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pkgutil import get_data
from string import Template
from typing import Any, Final

from webhook.api import mpirun, yaml
from webhook.api.annotations import QUEUE, RDMA
from webhook.cli.terminal import counted

GPU: Final = "nvidia.com/gpu"
WORKERS: Final = 2
_PORT: Final = 29500
_PYTHON: Final = re.compile(r"python[0-9.]*")
_STARTERS: Final = mpirun.LAUNCHERS | mpirun.ON_EACH_NODE


def _text(name: str) -> str:
    return (get_data(__package__, f"first_jobs/{name}") or b"").decode()


FRAMEWORKS: Final = {row["name"]: row for row in csv.DictReader(_text("frameworks.csv").splitlines())}
"""What the image must have (`needs`), a published image that has it, its program, the file with the job; `starter`: one
process on each worker starts the others.
"""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of the new job."""

    framework: str
    name: str
    image: str
    program: Sequence[str]
    workers: int = 2
    gpus: int = 0
    namespace: str = ""
    queue: str = ""
    rdma: bool = False
    mpiuser: bool = False
    gpu_resource: str = GPU


def wish(said: Mapping[str, Any], program: Sequence[str], gpu_resource: str = GPU) -> Wishes:
    """The options of the user, and defaults; ValueError for one without a default."""
    name = said["framework"]
    framework = FRAMEWORKS[name]
    image = said["image"] or framework["image"]
    if not image:
        raise ValueError(f"--image: no published image with {framework['needs']} is known: name your image")
    if said["mpiuser"] and framework["user"] == "root" and image == framework["image"]:
        ours = "name your image with the user mpiuser (1000), see docs/openshift.md"
        raise ValueError(f"--image: {image} is made for root, which OpenShift rejects: {ours}")
    if framework["image"] and image != framework["image"] and not program:
        raise ValueError("PROGRAM: your image lacks the example: name the program that each rank runs in your image")
    return Wishes(
        framework=name,
        name=said["name"] or f"first-{name}",
        image=image,
        program=_started(tuple(program) or tuple(framework["program"].split()), framework["starter"]),
        workers=WORKERS if said["workers"] is None else said["workers"],
        gpus=int(framework["gpus"]) if said["gpus"] is None else said["gpus"],
        namespace=said["namespace"] or "",
        queue=said["queue"] or "",
        rdma=bool(said["rdma"]),
        mpiuser=bool(said["mpiuser"]) or framework["user"] == "mpiuser",
        gpu_resource=gpu_resource,
    )


def _started(program: Sequence[str], starter: str) -> Sequence[str]:
    """The program as mpirun or torchrun starts it: torchrun takes a script, mpirun what can be executed."""
    first = program[0].rpartition("/")[2]
    modules = {name for option, name in pairwise(program[:4]) if option == "-m"}
    for name in _STARTERS & {first, *modules}:
        raise ValueError(f"PROGRAM: name the program that each rank runs, without {name}: the job starts the ranks")
    script = program[0].endswith(".py") or program[0] == "-m"
    if not starter:
        return ("python", *program) if script else program
    interpreted = _PYTHON.fullmatch(first) and (program[1:2] == ("-m",) or (program[1:2] and program[1][:1] != "-"))
    return program[1:] if interpreted else program if script else ("--no_python", *program)


def text(wishes: Wishes) -> str:
    """The job in YAML."""
    framework = FRAMEWORKS[wishes.framework]
    slots = 1 if framework["starter"] else max(wishes.gpus, 1)
    values = {
        "title": framework["title"],
        "needs": framework["needs"],
        "implementation": framework["title"].partition(" ")[0],
        "name": _value(wishes.name),
        "image": _value(wishes.image),
        "workers": wishes.workers,
        "workers_in_words": counted(wishes.workers, "worker"),
        "with_gpus": f" with {counted(wishes.gpus, 'GPU')} each" if wishes.gpus else "",
        "slots": slots,
        "slots_comment": "One rank on each worker: torchrun, which starts the processes there."
        if framework["starter"]
        else f"Ranks on each worker{': one for each GPU' if wishes.gpus else ''}.",
        "ranks": slots * wishes.workers,
        "launcher_memory": "2Gi" if wishes.gpus else "1Gi",
        "cpus": max(4 * wishes.gpus, 1),
        "memory": f"{max(16 * wishes.gpus, 1)}Gi",
    }
    return "".join(
        f"{line}\n" for line in _lines(_text(f"{framework['text']}.txt"), values, _optional(wishes, framework))
    )


def _lines(template: str, values: Mapping[str, Any], optional: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The template with its values; a name on its own line stands for several lines, or for none."""
    for line in template.splitlines():
        name = line.strip().removeprefix("$")
        if name in optional:
            yield from (line.replace(f"${name}", each) for each in optional[name])
        else:
            yield Template(line).substitute(values)


def _optional(wishes: Wishes, framework: Mapping[str, str]) -> dict[str, Sequence[str]]:
    queue = "# The queue of Kueue in which it waits until there is room for all of it."
    rdma = "# Devices, networks and variables for RDMA, as the nodes and the platform's policy have them."
    gpus = "# GPUs: requests and limits are equal. The rest is a guess: see what the job uses."
    nodes, processes = str(wishes.workers), str(max(wishes.gpus, 1))
    meet = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"{wishes.name}-worker-0.{wishes.name}:{_PORT}"]
    passed_on = _items(
        ["-bind-to", "none", "-map-by", "slot", "-x", "PATH", "-x", "LD_LIBRARY_PATH", "-x", "NCCL_DEBUG=INFO"]
    )
    in_home = "# The image's user is mpiuser (1000), and sshd looks for its keys in that user's home."
    reached = "# No command: the operator starts /usr/sbin/sshd -De, by which mpirun reaches the worker."
    torchrun = _items(["torchrun", "--nnodes", nodes, "--nproc_per_node", processes, *meet])
    return {
        "namespace": [f"namespace: {_value(wishes.namespace)}"] if wishes.namespace else [],
        "queue": [queue, f"{QUEUE}: {_value(wishes.queue)}"] if wishes.queue else [],
        "rdma": [rdma, f'{RDMA}: "true"'] if wishes.rdma else [],
        "keys_in_home": [in_home, "sshAuthMountPath: /home/mpiuser/.ssh"] if wishes.mpiuser else [],
        "as_mpiuser": ["securityContext:", "  runAsUser: 1000"] if wishes.mpiuser else [],
        "sshd": ["command: [/usr/sbin/sshd, -De, -f, /home/mpiuser/.sshd_config]" if wishes.mpiuser else reached],
        "of_root": [] if wishes.mpiuser else ["- --allow-run-as-root"],
        "passed_on": ["# Open MPI passes on to the ranks what -x names.", *passed_on] if _uses_gpus(framework) else [],
        "torchrun": ["# The processes find each other at the first worker.", *torchrun] if framework["starter"] else [],
        "program": _items(wishes.program),
        "gpu_comment": [gpus] if wishes.gpus else [],
        "gpus": [f"{wishes.gpu_resource}: '{wishes.gpus}'"] if wishes.gpus else [],
    }


def _uses_gpus(framework: Mapping[str, str]) -> bool:
    return framework["gpus"] != "0"


def _items(words: Sequence[str]) -> list[str]:
    return [f"- {_value(word)}" for word in words]


def _value(value: str) -> str:
    """A text, quoted if YAML would read it as another type."""
    item = yaml.dump([value]).removeprefix("- ").rstrip("\n")
    return item if "\n" not in item else yaml.dump_inline(value)
