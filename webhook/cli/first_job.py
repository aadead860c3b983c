"""Writes a first job for a framework as YAML with comments. The folder `first_jobs` has the templates."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pkgutil import get_data
from string import Template
from typing import Any, Final

from webhook.api import mpirun, shell, yaml
from webhook.api.annotations import QUEUE, RDMA
from webhook.cli.terminal import counted

GPU: Final = "nvidia.com/gpu"
WORKERS: Final = 2
_PORT: Final = 29500
_PYTHON: Final = re.compile(r"python[0-9.]*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_STARTERS: Final = mpirun.LAUNCHERS | mpirun.ON_EACH_NODE | mpirun.OF_SCHEDULERS


def _text(name: str) -> str:
    return (get_data(__package__, f"first_jobs/{name}") or b"").decode()


FRAMEWORKS: Final = {row["name"]: row for row in csv.DictReader(_text("frameworks.csv").splitlines())}
"""The rows of frameworks.csv by name.

`needs` is the software in the image, `text` the template of the job, and `starter` the program that starts the ranks of
a worker (torchrun). `image` and `starter` may be empty.
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


def wish(options: Mapping[str, Any], program: Sequence[str], gpu_resource: str = GPU) -> Wishes:
    """The options with their defaults; ValueError for an unusable image or program."""
    name = options["framework"]
    framework = FRAMEWORKS[name]
    image = options["image"] or framework["image"]
    if not image:
        raise ValueError(f"--image: no published image with {framework['needs']} is known: name your image")
    if options["mpiuser"] and framework["user"] == "root" and image == framework["image"]:
        ours = "name your image with the user mpiuser (1000), see docs/openshift.md"
        raise ValueError(f"--image: {image} is made for root, which OpenShift rejects: {ours}")
    if framework["image"] and image != framework["image"] and not program:
        raise ValueError("PROGRAM: your image lacks the example: name the program that each rank runs in your image")
    return Wishes(
        framework=name,
        name=options["name"] or f"first-{name}",
        image=image,
        program=_started(tuple(program) or tuple(framework["program"].split()), framework["starter"]),
        workers=WORKERS if options["workers"] is None else options["workers"],
        gpus=int(framework["gpus"]) if options["gpus"] is None else options["gpus"],
        namespace=options["namespace"] or "",
        queue=options["queue"] or "",
        rdma=bool(options["rdma"]),
        mpiuser=bool(options["mpiuser"]) or framework["user"] == "mpiuser",
        gpu_resource=gpu_resource,
    )


def _started(program: Sequence[str], starter: str) -> Sequence[str]:
    if len(program) == 1:
        program = shell.word_list(program[0]) if program[0].strip() else ()
    assigned = [*takewhile(_ASSIGNMENT.fullmatch, program)]
    if len(program) == len(assigned):
        raise ValueError("PROGRAM: name the program that each rank runs")
    if assigned:
        program = ("env", *assigned, *_started(program[len(assigned) :], ""))
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
        "slots_comment": "One rank per worker: torchrun, which starts the worker's processes."
        if framework["starter"]
        else f"Ranks per worker{': one per GPU' if wishes.gpus else ''}.",
        "ranks": slots * wishes.workers,
        "launcher_memory": "2Gi" if wishes.gpus else "1Gi",
        "cpus": max(4 * wishes.gpus, 1),
        "memory": f"{max(16 * wishes.gpus, 1)}Gi",
    }
    return "".join(
        f"{line}\n" for line in _lines(_text(f"{framework['text']}.txt"), values, _optional(wishes, framework))
    )


def _lines(template: str, values: Mapping[str, Any], optional: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The filled template. A line that consists of a key of `optional` is replaced by the lines under this key."""
    for line in template.splitlines():
        name = line.strip().removeprefix("$")
        if name in optional:
            yield from (line.replace(f"${name}", text) for text in optional[name])
        else:
            yield Template(line).substitute(values)


def _optional(wishes: Wishes, framework: Mapping[str, str]) -> dict[str, Sequence[str]]:
    queue_comment = "# The Kueue queue (LocalQueue). The job starts when the queue has quota for all of its pods."
    rdma_comment = "# Requests RDMA devices, networks and variables. The platform's policy decides which are injected."
    gpu_comment = "# GPU requests and limits must be equal. CPU and memory are guesses: adjust them to your program."
    nodes, processes = str(wishes.workers), str(max(wishes.gpus, 1))
    rendezvous = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"{wishes.name}-worker-0.{wishes.name}:{_PORT}"]
    passed_on = [
        *_items(["-bind-to", "none", "-map-by", "slot"]),
        "# Each -x passes an environment variable to the ranks.",
        *_items(["-x", "PATH", "-x", "LD_LIBRARY_PATH", "-x", "NCCL_DEBUG=INFO"]),
    ]
    keys_comment = "# The pods run as mpiuser (user ID 1000), so the SSH keys are mounted in its home directory."
    sshd_comment = "# No command: the operator starts sshd, through which mpirun reaches the worker."
    torchrun = [
        "# torchrun starts the processes. They connect to each other through the first worker.",
        *_items(["torchrun", "--nnodes", nodes, "--nproc_per_node", processes, *rendezvous]),
    ]
    return {
        "namespace": [f"namespace: {_value(wishes.namespace)}"] if wishes.namespace else [],
        "queue": [queue_comment, f"{QUEUE}: {_value(wishes.queue)}"] if wishes.queue else [],
        "rdma": [rdma_comment, f'{RDMA}: "true"'] if wishes.rdma else [],
        "keys_in_home": [keys_comment, "sshAuthMountPath: /home/mpiuser/.ssh"] if wishes.mpiuser else [],
        "as_mpiuser": ["securityContext:", "  runAsUser: 1000"] if wishes.mpiuser else [],
        "sshd": ["command: [/usr/sbin/sshd, -De, -f, /home/mpiuser/.sshd_config]" if wishes.mpiuser else sshd_comment],
        "allow_root": [] if wishes.mpiuser else ["- --allow-run-as-root"],
        "passed_on": passed_on if framework["gpus"] != "0" else [],
        "torchrun": torchrun if framework["starter"] else [],
        "program": _items(wishes.program),
        "gpu_comment": [gpu_comment] if wishes.gpus else [],
        "gpus": [f"{wishes.gpu_resource}: '{wishes.gpus}'"] if wishes.gpus else [],
    }


def _items(words: Sequence[str]) -> list[str]:
    return [f"- {_value(word)}" for word in words]


def _value(value: str) -> str:
    item = yaml.dump([value]).removeprefix("- ").rstrip("\n")
    return item if "\n" not in item else yaml.dump_inline(value)
