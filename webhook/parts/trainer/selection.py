"""The rules for TrainJobs and for runtimes, and the checks that replace other rules.

Each of a runtime's replicated jobs except launcher and nodes is judged alone, as a launcher.
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
    """The rule's findings in them."""
    for pods in shape.others:
        made = ctx.once(_read, pods)
        if isinstance(made, ShapeError):
            if rule.id == "pod-template":
                yield Violation(_moved(made.path, pods.path), made.message, fix="Correct the value.")
            continue
        job, own = made
        for found in rule.check(job, settings, own):
            path, message, fix = (_moved(text, pods.path) for text in (found.path, found.message, found.fix))
            yield replace(found, path=path, message=message, fix=fix)


def _read(pods: OtherPods, ctx: Context) -> tuple[MPIJob, Context] | ShapeError:
    """Their job with a context of its own."""
    try:
        job = mpijob.apply_operator_defaults(mpijob.decode(pods.document))
    except ShapeError as error:
        return error
    return job, structs.replace(ctx, document=pods.document, old=None, memo=Memo())


def _moved(text: str, path: str) -> str:
    return text.replace(_AS_LAUNCHER, path)


ShapeOf = Callable[[Context], Shape]
"""The shape of a context's object: the new one, or the stored one."""

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
"""Rules for runtimes: those that depend only on the templates, whatever a TrainJob adds."""
OF_JOBS: Final = OF_TEMPLATES | {
    "accelerator-available", "child-names", "compliance", "ever-fits", "job-timeout", "limit-range", "local-queue",
    "name-length", "priority", "references", "resource-quota", "tier",
}  # fmt: skip
"""Rules for TrainJobs."""
OF_OTHER_PODS: Final = frozenset(
    ("images", "job-size", "limit-range", "pod-security", "pod-template", "references", "scc")
)
"""Rules that also apply to pods other than launcher and nodes, such as those that fetch a dataset."""

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
    """The policy with the rules for TrainJobs, or for a `runtime`, which leaves minimum numbers to its TrainJobs."""
    wanted = OF_TEMPLATES if runtime else OF_JOBS
    rules = []
    for rule, chosen, action in policy.rules:
        if rule.id in wanted:
            open_below = runtime and isinstance(chosen, RangeRuleSettings)
            settings = chosen.model_copy(update={"min": 0}) if open_below else chosen
            rules.append((_fitted(rule, shape_of), settings, action))
    return replace(policy, rules=tuple(rules), injections=())


def _fitted(rule: Rule, shape_of: ShapeOf) -> Rule:
    if rule.id == "pod-template":  # the shape has the volumes that Trainer adds
        rule = structs.replace(rule, check=lambda job, _, ctx: pod_template.violations(job, ctx, added={}))
    fitted = _besides(rule, shape_of)

    def with_others(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        yield from fitted.check(job, settings, ctx)
        yield from faults(shape_of(ctx), rule, settings, ctx)

    return structs.replace(rule, check=with_others) if rule.id in OF_OTHER_PODS else fitted


def _besides(rule: Rule, shape_of: ShapeOf) -> Rule:
    def instead(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        return INSTEAD[rule.id](shape_of(ctx), ctx)

    def besides(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        shape = shape_of(ctx)
        yield from BESIDES[rule.id](shape)
        # The rule's text about root's key is true for mpi-operator's way of mounting it.
        if rule.id == "ssh-paths" and upstream.user_of_launcher(shape) == 0:
            return
        left_out = upstream.left_to_jobs(shape) if rule.id == "images" else ()
        yield from (found for found in rule.check(job, settings, ctx) if found.path not in left_out)

    if rule.id in INSTEAD:
        return structs.replace(rule, check=instead)
    return structs.replace(rule, check=besides) if rule.id in BESIDES else rule
