"""The machines of a training job as pods: their resources, their number, and how they reach each other.

A table lists the resources of SageMaker's instance types, because no API has them.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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


class Instance(NamedTuple):
    """A machine."""

    cpus: int
    memory: int
    """In GiB."""
    accelerators: int
    efa: int = 0
    """EFA adapters."""
    resource: str = GPU
    """The resource name of the accelerators, by their device plugin."""
    cores: int = 1
    """Cores of each accelerator, if processes run on those; 0 if it depends on their setup."""
    source: str = "--instance"

    @property
    def processes(self) -> int | None:
        """The default; None if it depends on the setup of the accelerators."""
        return max(self.accelerators * self.cores, 1) if self.cores else None


def parse(text: str) -> Instance:
    """An instance as an option describes it: `CPUS,GIB,GPUS` or `CPUS,GIB,GPUS,EFA`; ValueError for anything else."""
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
            f'"{name[:60]}" is not a known instance type: give its size as --instance TYPE=CPUS,GIB,GPUS[,EFA]',
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


@dataclass(frozen=True, slots=True)
class Options:
    """Options for all jobs."""

    claims: Mapping[str, str] = field(default_factory=dict)
    """Claims by their content: the name of a channel, or `code`, `model`, `checkpoints`. A folder may follow:
    `pvc/dir`.
    """
    s3_image: str | None = None
    """An image with the AWS CLI, whose init containers fetch the data without a claim; None for claims only."""
    s3_secret: str | None = None
    """The Secret with the credentials for the AWS CLI; None if the service account may read the bucket."""
    code_in_image: bool = False
    """The program is in /opt/ml/code of the image, so nothing is fetched or mounted there."""
    image: str | None = None
    """Replaces the image of the request."""
    instances: Mapping[str, Instance] = field(default_factory=dict)
    """Types that the table does not have, or that replace those of the table."""
    processes_per_host: int | None = None
    """The number if the request does not have one."""
    workers_per_instance: int = 1
    """The number of pods for each instance."""
    launcher_as_worker: bool = False
    """As many pods as SageMaker had machines, including the launcher."""
    network: str = "efa"
    """`efa`: the adapters of the instance type; `rdma`: the cluster's devices, by the annotation; `none`."""
    reserve: int = 7
    """Percent of an instance's CPUs and memory that are reserved for its node."""
    namespace: str | None = None
    pull_secret: str | None = None
    service_account: str | None = None


def machines(resources: Resources, options: Options, report: Report) -> tuple[Instance, int]:
    """The resources of each machine, and their number; ConversionError for machines of several types."""
    groups = resources.instance_groups or []
    types = {group.instance_type for group in groups}
    if len(types) > 1:
        raise ConversionError(
            _GROUPS,
            f"has several instance types ({', '.join(sorted(types))[:200]}): the workers of an MPIJob are alike, so"
            " make a job of the group that trains",
        )
    # If the request lists several types, SageMaker chooses one and reports it later.
    name = next(iter(types), None) or resources.instance_type or resources.selected_instance_type
    count = sum(group.instance_count for group in groups) or resources.instance_count
    count = count or resources.selected_instance_count
    if not name or count is None:
        raise ConversionError(_COUNT if name else _TYPE, "is not set, so the machines are not known: write it")
    where = _GROUPS if groups else _TYPE
    instance = options.instances.get(name) or options.instances.get(name.removeprefix("ml."))
    instance = instance or find(name, where)
    what = "GPUs" if instance.resource == GPU else instance.resource
    report.mapped(
        where,
        f"{name} has {instance.cpus} CPUs, {instance.memory} GiB and {instance.accelerators} {what}, as"
        f" {instance.source} says; a pod requests {options.reserve} % less CPU and memory, which its node needs",
    )
    report.mapped(_GROUPS if groups else _COUNT, _number_of_pods(count, options))
    return instance, count


def _number_of_pods(count: int, options: Options) -> str:
    pods = count * options.workers_per_instance
    divided = f", {options.workers_per_instance} on a machine" if options.workers_per_instance > 1 else ""
    if options.launcher_as_worker:
        return f"is the launcher and {pods - 1} workers{divided}"
    return f"is {pods} workers{divided}, and a small launcher, which runs no rank"


def divided(instance: Instance, count: int, how: Distribution, options: Options) -> tuple[int, Instance, Distribution]:
    """The number of pods, and the resources and processes of each."""
    parts = options.workers_per_instance
    if instance.accelerators % parts or how.processes % parts:
        raise ConversionError(
            _TYPE,
            f"has {instance.accelerators} accelerators for {how.processes} processes, which --workers-per-instance"
            f" {parts} does not divide",
        )
    each = instance._replace(
        cpus=max(instance.cpus // parts, 1),
        memory=max(instance.memory // parts, 1),
        accelerators=instance.accelerators // parts,
        efa=instance.efa // parts,
    )
    return count * parts, each, replace(how, processes=how.processes // parts)


def amounts(each: Instance, adapters: int, options: Options) -> dict[str, int | str]:
    """The requests and limits of a pod."""
    left = 100 - options.reserve
    resources: dict[str, int | str] = {
        "cpu": str(max(each.cpus * left // 100, 1)),
        "memory": f"{max(each.memory * 1024 * left // 100, 1)}Mi",
    }
    if each.accelerators:
        resources[each.resource] = each.accelerators
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


def network(each: Instance, how: Distribution, options: Options, report: Report) -> Network:
    """The network by the option; SageMaker gives EFA to every instance type that has it."""
    if options.network == "rdma":
        report.changed(_TYPE, "RDMA comes from the cluster, by the annotation training.openshift.io/rdma")
        return Network(annotations={RDMA: "true"})
    if not each.efa or options.network == "none":
        if each.efa:
            report.lost(_TYPE, "its EFA adapters are left out by --network none")
        return Network()
    report.mapped(
        _TYPE,
        f"{each.efa} EFA adapters are requested as {ADAPTERS}: elsewhere than on AWS, convert with --network"
        f" rdma or none",
    )
    # As the toolkit sets them for known types.
    variables = {"FI_PROVIDER": "efa", "NCCL_PROTO": "simple"} if how.way is not Way.EACH else {}
    return Network(each.efa, variables)
