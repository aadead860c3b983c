"""The rules that apply to TrainJobs and to runtimes, and the checks that replace or complement rules.

Every replicated job other than the launcher and the nodes is judged as if it were the launcher of an MPIJob.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from msgspec import structs

from webhook.api import mpijob
from webhook.api.mpijob import LAUNCHER, MPIJob, replica_path
from webhook.api.shape import ShapeError
from webhook.kit.context import Context, Memo
from webhook.kit.settings import RangeRuleSettings, RuleSettings
from webhook.parts.trainer import job_sets, upstream
from webhook.parts.trainer.shape import OtherPods, Shape
from webhook.policy.in_force import Policy
from webhook.rules import Rule, Violation, pod_template

_AS_LAUNCHER: Final = replica_path(LAUNCHER)


def faults(shape: Shape, rule: Rule, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
    """Findings in replicated jobs other than the launcher and the nodes."""
    for pods in shape.others:
        decoded = ctx.once(_decoded, pods)
        if isinstance(decoded, ShapeError):
            if rule.id == "pod-template":
                yield Violation(_moved(decoded.path, pods.path), decoded.message, fix="Correct the value.")
            continue
        job, job_context = decoded
        for violation in rule.check(job, settings, job_context):
            texts = (violation.path, violation.message, violation.fix)
            path, message, fix = (_moved(text, pods.path) for text in texts)
            yield replace(violation, path=path, message=message, fix=fix)


def _decoded(pods: OtherPods, ctx: Context) -> tuple[MPIJob, Context] | ShapeError:
    try:
        job = mpijob.apply_operator_defaults(mpijob.decode(pods.document))
    except ShapeError as error:
        return error
    return job, structs.replace(ctx, document=pods.document, old=None, memo=Memo())


def _moved(text: str, path: str) -> str:
    return text.replace(_AS_LAUNCHER, path)


ShapeOf = Callable[[Context], Shape]
"""Returns the shape of a context's object."""

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
        "scc",
        "slots",
        "ssh-paths",
        "upstream-contract",
        "worker-count",
    )
)
"""Rules for runtimes. They depend only on pod templates. A TrainJob cannot fix a fault of its runtime's templates."""
OF_JOBS: Final = OF_TEMPLATES | {
    "accelerator-available", "child-names", "compliance", "ever-fits", "job-timeout", "limit-range", "local-queue",
    "name-length", "priority", "references", "resource-quota", "tier",
}  # fmt: skip
"""Rules for TrainJobs."""
OF_OTHER_PODS: Final = frozenset(
    ("images", "job-size", "limit-range", "pod-security", "pod-template", "references", "scc")
)
"""Rules that also apply to pods other than the launcher and the nodes."""

# Checks that replace the rule with this id.
Instead = Callable[[Shape, Context], Iterator[Violation]]
INSTEAD: Final[Mapping[str, Instead]] = MappingProxyType(
    {
        "child-names": upstream.taken_names,
        "name-length": upstream.longest_name,
        "upstream-contract": job_sets.faults,
    }
)
# Checks that run in addition to the rule with this id.
BESIDES: Final = MappingProxyType(
    {"worker-count": upstream.nodes, "images": upstream.other_image, "ssh-paths": upstream.key}
)


def selected(policy: Policy, shape_of: ShapeOf, *, runtime: bool) -> Policy:
    """The policy with the rules that apply to a TrainJob or a runtime.

    Minimum numbers do not apply to a runtime: its TrainJobs can set higher numbers.
    """
    rule_ids = OF_TEMPLATES if runtime else OF_JOBS
    rules = []
    for rule, chosen, action in policy.rules:
        if rule.id in rule_ids:
            without_minimum = runtime and isinstance(chosen, RangeRuleSettings)
            settings = chosen.model_copy(update={"min": 0}) if without_minimum else chosen
            rules.append((_fitted(rule, shape_of), settings, action))
    return replace(policy, rules=tuple(rules), injections=())


def _fitted(rule: Rule, shape_of: ShapeOf) -> Rule:
    if rule.id in INSTEAD:
        return structs.replace(rule, check=lambda job, settings, ctx: INSTEAD[rule.id](shape_of(ctx), ctx))
    if rule.id == "pod-template":  # the shape has the volumes that Trainer adds
        rule = structs.replace(rule, check=lambda job, _, ctx: pod_template.violations(job, ctx, added={}))

    def check(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        shape = shape_of(ctx)
        if rule.id in BESIDES:
            yield from BESIDES[rule.id](shape)
        # The rule's message about root describes mpi-operator's mount of the key, so it would be wrong for Trainer.
        if rule.id != "ssh-paths" or upstream.user_of_launcher(shape) != 0:
            left_out = upstream.left_to_jobs(shape) if rule.id == "images" else ()
            yield from (violation for violation in rule.check(job, settings, ctx) if violation.path not in left_out)
        if rule.id in OF_OTHER_PODS:
            yield from faults(shape, rule, settings, ctx)

    return structs.replace(rule, check=check) if rule.id in OF_OTHER_PODS | BESIDES.keys() else rule
