"""What the machines of SageMaker's instance types have: a table, since no API tells it."""

from functools import cache
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


@cache
def _table() -> dict[str, Instance]:
    table = {}
    for source, kind, rows in _SOURCES:
        for row in rows.split("\n"):
            if row.strip():
                name, *numbers = row.split()
                cpus, accelerators, memory, efa, cores = map(int, [*numbers, "1"][:5])
                table[name] = Instance(cpus, memory, accelerators, efa, kind, cores, source)
    return table


# vCPUs, accelerators, GiB, EFA adapters, and of Neuron devices the cores (0: by the setting of logical cores).
_HYPERPOD_GPU: Final = """
p4d.24xlarge 96 8 1152 4
p4de.24xlarge 96 8 1152 4
p5.4xlarge 16 1 256 1
p5.48xlarge 192 8 2048 32
p5e.48xlarge 192 8 2048 32
p5en.48xlarge 192 8 2048 16
p6-b200.48xlarge 192 8 2048 8
p6-b300.48xlarge 192 8 4096 16
p6e-gb200.36xlarge 144 4 960 0
g5.xlarge 4 1 16 0
g5.2xlarge 8 1 32 0
g5.4xlarge 16 1 64 0
g5.8xlarge 32 1 128 1
g5.12xlarge 48 4 192 1
g5.16xlarge 64 1 256 1
g5.24xlarge 96 4 384 1
g5.48xlarge 192 8 768 1
g6.xlarge 4 1 16 0
g6.2xlarge 8 1 32 0
g6.4xlarge 16 1 64 0
g6.8xlarge 32 1 128 1
g6.12xlarge 48 4 192 1
g6.16xlarge 64 1 256 1
g6.24xlarge 96 4 384 1
g6.48xlarge 192 8 768 1
gr6.4xlarge 16 1 128 0
gr6.8xlarge 32 1 256 1
g6e.xlarge 4 1 32 0
g6e.2xlarge 8 1 64 0
g6e.4xlarge 16 1 128 0
g6e.8xlarge 32 1 256 1
g6e.12xlarge 48 4 384 1
g6e.16xlarge 64 1 512 1
g6e.24xlarge 96 4 768 2
g6e.48xlarge 192 8 1536 4
g7e.2xlarge 8 1 64 0
g7e.4xlarge 16 1 128 0
g7e.8xlarge 32 1 256 1
g7e.12xlarge 48 2 512 1
g7e.24xlarge 96 4 1024 2
g7e.48xlarge 192 8 2048 4
c5.large 2 0 4 0
c5.xlarge 4 0 8 0
c5.2xlarge 8 0 16 0
c5.4xlarge 16 0 32 0
c5.9xlarge 36 0 72 0
c5.12xlarge 48 0 96 0
c5.18xlarge 72 0 144 0
c5.24xlarge 96 0 192 0
c5n.large 2 0 5 0
c5n.2xlarge 8 0 21 0
c5n.4xlarge 16 0 42 0
c5n.9xlarge 36 0 96 1
c5n.18xlarge 72 0 192 1
c6i.large 2 0 4 0
c6i.xlarge 4 0 8 0
c6i.2xlarge 8 0 16 0
c6i.4xlarge 16 0 32 0
c6i.8xlarge 32 0 64 0
c6i.12xlarge 48 0 96 0
c6i.16xlarge 64 0 128 0
c6i.24xlarge 96 0 192 0
c6i.32xlarge 128 0 256 1
m5.large 2 0 8 0
m5.xlarge 4 0 16 0
m5.2xlarge 8 0 32 0
m5.4xlarge 16 0 64 0
m5.8xlarge 32 0 128 0
m5.12xlarge 48 0 192 0
m5.16xlarge 64 0 256 0
m5.24xlarge 96 0 384 0
m6i.large 2 0 8 0
m6i.xlarge 4 0 16 0
m6i.2xlarge 8 0 32 0
m6i.4xlarge 16 0 64 0
m6i.8xlarge 32 0 128 0
m6i.12xlarge 48 0 192 0
m6i.16xlarge 64 0 256 0
m6i.24xlarge 96 0 384 0
m6i.32xlarge 128 0 512 1
m7i.large 2 0 8 0
m7i.xlarge 4 0 16 0
m7i.2xlarge 8 0 32 0
m7i.4xlarge 16 0 64 0
m7i.8xlarge 32 0 128 0
m7i.12xlarge 48 0 192 0
m7i.16xlarge 64 0 256 0
m7i.24xlarge 96 0 384 0
m7i.48xlarge 192 0 768 1
r6i.large 2 0 16 0
r6i.xlarge 4 0 32 0
r6i.2xlarge 8 0 64 0
r6i.4xlarge 16 0 128 0
r6i.8xlarge 32 0 256 0
r6i.12xlarge 48 0 384 0
r6i.16xlarge 64 0 512 0
r6i.24xlarge 96 0 768 0
r6i.32xlarge 128 0 1024 1
r7i.large 2 0 16 0
r7i.xlarge 4 0 32 0
r7i.2xlarge 8 0 64 0
r7i.4xlarge 16 0 128 0
r7i.8xlarge 32 0 256 0
r7i.12xlarge 48 0 384 0
r7i.16xlarge 64 0 512 0
r7i.24xlarge 96 0 768 0
r7i.48xlarge 192 0 1536 1
i3en.large 2 0 16 0
i3en.xlarge 4 0 32 0
i3en.2xlarge 8 0 64 0
i3en.3xlarge 12 0 96 0
i3en.6xlarge 24 0 192 0
i3en.12xlarge 48 0 384 1
i3en.24xlarge 96 0 768 1
t3.medium 2 0 4 0
t3.large 2 0 8 0
t3.xlarge 4 0 16 0
t3.2xlarge 8 0 32 0
"""
_HYPERPOD_NEURON: Final = """
trn1.32xlarge 128 16 512 8 2
trn1n.32xlarge 128 16 512 16 2
trn2.3xlarge 12 1 128 1 0
trn2.48xlarge 192 16 2048 16 0
"""
_EC2: Final = """
p3.2xlarge 8 1 61 0
p3.8xlarge 32 4 244 0
p3.16xlarge 64 8 488 0
p3dn.24xlarge 96 8 768 1
g4dn.xlarge 4 1 16 0
g4dn.2xlarge 8 1 32 0
g4dn.4xlarge 16 1 64 0
g4dn.8xlarge 32 1 128 1
g4dn.12xlarge 48 4 192 1
g4dn.16xlarge 64 1 256 1
"""
_HYPERPOD: Final = "HyperPod's command line"
# `constants.py` in https://github.com/aws/sagemaker-hyperpod-cli/tree/v3.9.0/src/sagemaker/hyperpod/training, and, of
# types that it leaves out, https://aws.amazon.com/ec2/instance-types/. What both have is the first's.
_SOURCES: Final = (
    ("EC2's list of instance types", GPU, _EC2),
    (_HYPERPOD, GPU, _HYPERPOD_GPU),
    (_HYPERPOD, NEURON, _HYPERPOD_NEURON),
)
