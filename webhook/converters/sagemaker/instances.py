"""What the machines of SageMaker's instance types have: a table, since no API tells it."""

import csv
from functools import cache
from pkgutil import get_data
from typing import Final, NamedTuple

from webhook.converters.report import ConversionError

GPU: Final = "nvidia.com/gpu"
NEURON: Final = "aws.amazon.com/neuron"


class Instance(NamedTuple):
    """A machine."""

    cpus: int
    memory: int
    """In GiB."""
    accelerators: int
    efa: int = 0
    """EFA adapters."""
    resource: str = GPU
    """What the accelerators are, by the name of their device plugin."""
    cores: int = 1
    """Of each accelerator, where processes run on those; 0 where that depends on how they are set up."""
    source: str = "--instance"


def parse(text: str) -> Instance:
    """An instance in the words of an option: `CPUS,GIB,GPUS` or `CPUS,GIB,GPUS,EFA`; ValueError for anything else."""
    parts = text.split(",")
    if len(parts) not in {3, 4} or not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts):
        raise ValueError("is not CPUS,GIB,GPUS or CPUS,GIB,GPUS,EFA, as 96,1152,8,4")
    cpus, memory, accelerators, efa = map(int, [*parts, "0"][:4])
    if not cpus or not memory:
        raise ValueError("has no CPU or no memory")
    return Instance(cpus, memory, accelerators, efa)


def find(name: str, field: str) -> Instance:
    """The instance of this type; ConversionError for one that is not in the table."""
    instance = _table().get(name.removeprefix("ml."))
    if instance is None:
        raise ConversionError(
            field,
            f'"{name[:60]}" is no instance type whose size is known: give it as --instance TYPE=CPUS,GIB,GPUS[,EFA]',
        )
    return instance


# `constants.py` in https://github.com/aws/sagemaker-hyperpod-cli/tree/v3.9.0/src/sagemaker/hyperpod/training, and, of
# types that it leaves out, https://aws.amazon.com/ec2/instance-types/.
@cache
def _table() -> dict[str, Instance]:
    text = (get_data(__package__, "instances.csv") or b"").decode()
    table = {}
    for name, cpus, memory, accelerators, efa, resource, cores, source in csv.reader(text.splitlines()[1:]):
        table[name] = Instance(int(cpus), int(memory), int(accelerators), int(efa), resource, int(cores), source)
    return table
