"""Which rules are asked of TrainJobs and of runtimes, why others are not, and what stands in their place."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from msgspec import structs

from webhook.admission.trainer import job_sets, other_pods, upstream
from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.settings import RangeRuleSettings, RuleSettings
from webhook.policy.in_force import Policy
from webhook.predict.trainer.shape import Shape
from webhook.rules import Rule, Violation

ShapeOf = Callable[[Context], Shape]
"""The shape of the object that a context is about: the new one, or the stored one."""

OF_TEMPLATES: Final = frozenset(
    (
        "command-line",
        "gpus",
        "idle-workers",
        "images",
        "job-size",
        "mpi-implementation",
        "pod-security",
        "pod-template",
        "rank-environment",
        "slots",
        "ssh-paths",
        "upstream-contract",
        "worker-count",
    )
)
"""Asked of runtimes: what follows from the templates alone, whatever a TrainJob adds."""
OF_JOBS: Final = OF_TEMPLATES | {
    "accelerator-available",
    "child-names",
    "compliance",
    "ever-fits",
    "job-timeout",
    "limit-range",
    "local-queue",
    "name-length",
    "priority",
    "references",
    "resource-quota",
    "tier",
}
"""Asked of TrainJobs."""
OF_OTHER_PODS: Final = frozenset(("images", "job-size", "limit-range", "pod-security", "pod-template", "references"))
"""Asked of pods besides launcher and nodes too, such as those that fetch a dataset."""
LEFT_OUT: Final = MappingProxyType(
    {
        "api-access": "what it finds is mended by an injection, and nothing is injected here",
        "clean-pod-policy": "JobSet decides which pods stay",
        "gang": "the runtime's podGroupPolicy has the place of schedulingPolicy",
        "host-network": "the port of sshd is the runtime's",
        "network-policy": "NetworkPolicies are made for MPIJobs alone",
        "retention": "the time is the runtime's, and JobSet runs nothing twice",
        "update-safety": "the API server itself refuses such changes",
        "volcano-queue": "the queue is the runtime's, in its podGroupPolicy",
    }
)
"""Rules that are not asked, and why."""

Instead = Callable[[Shape, Context], Iterator[Violation]]
INSTEAD: Final[Mapping[str, Instead]] = MappingProxyType(
    {
        "child-names": upstream.taken_names,
        "name-length": upstream.longest_name,
        "upstream-contract": job_sets.faults,
    }
)
BESIDES: Final = MappingProxyType(
    {"worker-count": upstream.nodes, "images": upstream.other_image, "ssh-paths": upstream.key}
)


def selected(policy: Policy, shape_of: ShapeOf, *, runtime: bool) -> Policy:
    """The policy with the rules for TrainJobs, or for a `runtime`: that leaves least numbers to its TrainJobs."""
    wanted = OF_TEMPLATES if runtime else OF_JOBS
    rules = []
    for rule, chosen, action in policy.rules:
        if rule.id in wanted:
            open_below = runtime and isinstance(chosen, RangeRuleSettings)
            settings = chosen.model_copy(update={"min": 0}) if open_below else chosen
            rules.append((_fitted(rule, shape_of), settings, action))
    return replace(policy, rules=tuple(rules), injections=())


def _fitted(rule: Rule, shape_of: ShapeOf) -> Rule:
    fitted = _besides(rule, shape_of)

    def with_others(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        yield from fitted.check(job, settings, ctx)
        yield from other_pods.faults(shape_of(ctx), rule, settings, ctx)

    return structs.replace(rule, check=with_others) if rule.id in OF_OTHER_PODS else fitted


def _besides(rule: Rule, shape_of: ShapeOf) -> Rule:
    def instead(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        return INSTEAD[rule.id](shape_of(ctx), ctx)

    def besides(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        shape = shape_of(ctx)
        yield from BESIDES[rule.id](shape)
        # What the rule says of root's key holds for the way in which mpi-operator mounts it.
        if rule.id == "ssh-paths" and upstream.user_of_launcher(shape) == 0:
            return
        left_out = upstream.left_to_jobs(shape) if rule.id == "images" else ()
        yield from (found for found in rule.check(job, settings, ctx) if found.path not in left_out)

    if rule.id in INSTEAD:
        return structs.replace(rule, check=instead)
    return structs.replace(rule, check=besides) if rule.id in BESIDES else rule
