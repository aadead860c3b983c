"""The machines of a training job as pods: their number, what each asks for, and how they reach each other."""

from dataclasses import dataclass, field, replace
from typing import Final

from webhook.api.annotations import RDMA
from webhook.converters.report import ConversionError, Report
from webhook.converters.sagemaker import instances
from webhook.converters.sagemaker import options as choices
from webhook.converters.sagemaker.distribution import Distribution, Way
from webhook.converters.sagemaker.instances import Instance
from webhook.converters.sagemaker.options import Options
from webhook.converters.sagemaker.request import Resources

EFA: Final = "vpc.amazonaws.com/efa"
_TYPE: Final = "ResourceConfig.InstanceType"
_COUNT: Final = "ResourceConfig.InstanceCount"
_GROUPS: Final = "ResourceConfig.InstanceGroups"


def machines(resources: Resources, options: Options, report: Report) -> tuple[Instance, int]:
    """What each has, and how many there are; ConversionError for machines of several types."""
    groups = resources.instance_groups or []
    types = {group.instance_type for group in groups}
    if len(types) > 1:
        raise ConversionError(
            _GROUPS,
            f"has several instance types ({', '.join(sorted(types))[:200]}): the workers of an MPIJob are alike, so"
            " make a job of the group that trains",
        )
    # With a list of types that would do, SageMaker chooses, and tells afterwards.
    name = next(iter(types), None) or resources.instance_type or resources.selected_instance_type
    count = sum(group.instance_count for group in groups) or resources.instance_count
    count = count or resources.selected_instance_count
    if not name or count is None:
        raise ConversionError(_COUNT if name else _TYPE, "is not set, so the machines are not known: write it")
    where = _GROUPS if groups else _TYPE
    instance = options.instances.get(name) or options.instances.get(name.removeprefix("ml."))
    instance = instance or instances.find(name, where)
    what = "GPUs" if instance.resource == instances.GPU else instance.resource
    report.mapped(
        where,
        f"{name} has {instance.cpus} CPUs, {instance.memory} GiB and {instance.accelerators} {what}, as"
        f" {instance.source} says; a pod asks for {options.reserve} % less CPU and memory, which its node needs",
    )
    report.mapped(_GROUPS if groups else _COUNT, _number_of_pods(count, options))
    return instance, count


def _number_of_pods(count: int, options: Options) -> str:
    pods = count * options.workers_per_instance
    divided = f", {options.workers_per_instance} on a machine" if options.workers_per_instance > 1 else ""
    if options.launcher_as_worker:
        return f"is the launcher and {pods - 1} workers{divided}"
    return f"is {pods} workers{divided}, and a small launcher beside them, which runs no rank"


def divided(instance: Instance, count: int, how: Distribution, options: Options) -> tuple[int, Instance, Distribution]:
    """How many pods there are, and what each has and runs."""
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
    """What a pod asks for, and is limited to."""
    left = 100 - options.reserve
    found: dict[str, int | str] = {
        "cpu": str(max(each.cpus * left // 100, 1)),
        "memory": f"{max(each.memory * 1024 * left // 100, 1)}Mi",
    }
    if each.accelerators:
        found[each.resource] = each.accelerators
    if adapters:
        found[EFA] = adapters
    return found


@dataclass(frozen=True, slots=True)
class Network:
    """How ranks reach each other."""

    adapters: int = 0
    """Of EFA, for each pod."""
    variables: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


def network(each: Instance, how: Distribution, options: Options, report: Report) -> Network:
    """By the option; SageMaker gives EFA to every instance type that has it."""
    if options.network == choices.RDMA:
        report.changed(_TYPE, "RDMA comes from the cluster, by the annotation training.openshift.io/rdma")
        return Network(annotations={RDMA: "true"})
    if not each.efa or options.network == choices.NONE:
        if each.efa:
            report.lost(_TYPE, f"its EFA adapters are left out by --network {choices.NONE}")
        return Network()
    report.mapped(
        _TYPE,
        f"{each.efa} EFA adapters are asked for as {EFA}: elsewhere than on AWS, convert with --network"
        f" {choices.RDMA} or {choices.NONE}",
    )
    # As the toolkit sets them for the types that it knows.
    variables = {"FI_PROVIDER": "efa", "NCCL_PROTO": "simple"} if how.way is not Way.EACH else {}
    return Network(each.efa, variables)
