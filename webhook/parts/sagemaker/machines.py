"""The pods that replace the machines of a training job: their resources, number and network.

No API returns the resources of instance types. Sources of instances.csv: `constants.py` in
https://github.com/aws/sagemaker-hyperpod-cli/tree/v3.9.0/src/sagemaker/hyperpod/training, and
https://aws.amazon.com/ec2/instance-types/.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pkgutil import get_data
from typing import Final, NamedTuple

from webhook.api.annotations import RDMA
from webhook.converters.report import ConversionError, Report
from webhook.parts.sagemaker.distribution import Distribution, Way
from webhook.parts.sagemaker.request import Resources

GPU: Final = "nvidia.com/gpu"
NEURON: Final = "aws.amazon.com/neuron"
ADAPTERS: Final = "vpc.amazonaws.com/efa"
_TYPE: Final = "ResourceConfig.InstanceType"
_COUNT: Final = "ResourceConfig.InstanceCount"
_GROUPS: Final = "ResourceConfig.InstanceGroups"
# Percentage of CPUs and memory that is reserved for the node.
_RESERVED: Final = 7


class Instance(NamedTuple):
    """The resources of a machine, or of a pod."""

    cpus: int
    memory: int
    """GiB."""
    accelerators: int
    efa: int = 0
    """EFA adapters."""
    resource: str = GPU
    cores: int = 1
    """Processes for each accelerator; 0 if the number depends on a Neuron device's setting."""
    source: str = "--instance"

    @property
    def processes(self) -> int | None:
        """The default number of processes; None if it depends on the setting of the devices."""
        return max(self.accelerators * self.cores, 1) if self.cores else None


def parse(text: str) -> Instance:
    """The instance in the option --instance. The message of a ValueError continues a sentence about `text`."""
    parts = text.split(",")
    if len(parts) not in {3, 4} or not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts):
        raise ValueError("is not CPUS,GIB,GPUS or CPUS,GIB,GPUS,EFA, such as 96,1152,8,4")
    cpus, memory, accelerators, efa = map(int, [*parts, "0"][:4])
    if not cpus or not memory:
        raise ValueError("has no CPU or no memory")
    return Instance(cpus, memory, accelerators, efa)


@cache
def _table() -> dict[str, Instance]:
    text = (get_data(__package__, "instances.csv") or b"").decode()
    table = {}
    for name, cpus, memory, accelerators, efa, resource, cores, source in csv.reader(text.splitlines()[1:]):
        table[name] = Instance(int(cpus), int(memory), int(accelerators), int(efa), resource, int(cores), source)
    return table


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `convert sagemaker`."""

    claims: Mapping[str, str] = field(default_factory=dict)
    """The claim for each channel, and for `code`, `model` and `checkpoints`. A claim may have a folder: `pvc/dir`."""
    s3_image: str | None = None
    """An image with the AWS CLI, for init containers that fetch data without a claim."""
    s3_secret: str | None = None
    """The credentials for the AWS CLI; None if the service account may read the bucket."""
    code_in_image: bool = False
    """Whether /opt/ml/code of the image has the program."""
    image: str | None = None
    instances: Mapping[str, Instance] = field(default_factory=dict)
    """The resources of each instance type. They replace the values of the table."""
    processes_per_host: int | None = None
    network: str = "efa"
    """`efa` (adapters of the instance type), `rdma` (the cluster's devices) or `none`."""
    namespace: str | None = None


def machines(resources: Resources, options: Options, report: Report) -> tuple[Instance, int]:
    """A machine and the number of machines; ConversionError if they have several types."""
    groups = resources.instance_groups or []
    types = {group.instance_type for group in groups}
    if len(types) > 1:
        raise ConversionError(
            _GROUPS,
            f"has several instance types ({', '.join(sorted(types))[:200]}): the workers of an MPIJob are equal, so"
            " create a job for the group that trains",
        )
    # SageMaker reports the selected type if the request lists several types.
    name = next(iter(types), None) or resources.instance_type or resources.selected_instance_type
    count = sum(group.instance_count for group in groups) or resources.instance_count
    count = count or resources.selected_instance_count
    if not name or count is None:
        raise ConversionError(_COUNT if name else _TYPE, "is not set, so the machines are unknown: set it")
    where = _GROUPS if groups else _TYPE
    short = name.removeprefix("ml.")
    instance = options.instances.get(name) or options.instances.get(short) or _table().get(short)
    if instance is None:
        raise ConversionError(
            where,
            f'"{name[:60]}" is not a known instance type: set its size with --instance TYPE=CPUS,GIB,GPUS[,EFA]',
        )
    accelerators = "GPUs" if instance.resource == GPU else instance.resource
    report.mapped(
        where,
        f"{name} has {instance.cpus} CPUs, {instance.memory} GiB and {instance.accelerators} {accelerators},"
        f" from {instance.source}; a pod requests {_RESERVED} % less CPU and memory, reserved for its node",
    )
    report.mapped(_GROUPS if groups else _COUNT, f"is {count} workers, and a small launcher without ranks")
    return instance, count


def amounts(instance: Instance, adapters: int) -> dict[str, int | str]:
    share = 100 - _RESERVED
    resources: dict[str, int | str] = {
        "cpu": str(max(instance.cpus * share // 100, 1)),
        "memory": f"{max(instance.memory * 1024 * share // 100, 1)}Mi",
    }
    if instance.accelerators:
        resources[instance.resource] = instance.accelerators
    if adapters:
        resources[ADAPTERS] = adapters
    return resources


@dataclass(frozen=True, slots=True)
class Network:
    """The network between ranks."""

    adapters: int = 0
    """EFA adapters of each pod."""
    variables: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


def network(instance: Instance, how: Distribution, options: Options, report: Report) -> Network:
    if options.network == "rdma":
        report.changed(_TYPE, "RDMA comes from the cluster, by the annotation training.openshift.io/rdma")
        return Network(annotations={RDMA: "true"})
    if not instance.efa or options.network == "none":
        if instance.efa:
            report.lost(_TYPE, "its EFA adapters are left out by --network none")
        return Network()
    report.mapped(
        _TYPE,
        f"{instance.efa} EFA adapters are requested as {ADAPTERS}: outside AWS, convert with --network rdma or none",
    )
    # SageMaker's toolkit sets these variables.
    variables = {"FI_PROVIDER": "efa", "NCCL_PROTO": "simple"} if how.way is not Way.EACH else {}
    return Network(instance.efa, variables)
