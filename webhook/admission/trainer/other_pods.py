"""Pods besides launcher and nodes: each of a runtime's other replicated jobs is judged by itself, as a launcher."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from msgspec import structs

from webhook.api import mpijob
from webhook.api.mpijob import LAUNCHER, MPIJob, replica_path
from webhook.api.shape import ShapeError
from webhook.kit.context import Context, Memo
from webhook.kit.settings import RuleSettings
from webhook.predict.trainer.shape import OtherPods, Shape
from webhook.rules import Rule, Violation, job_size

_AS_LAUNCHER: Final = replica_path(LAUNCHER)


def faults(shape: Shape, rule: Rule, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
    """What the rule finds in them; of those that are too large nothing but that."""
    for pods in shape.others:
        made = ctx.once(_read, pods)
        if isinstance(made, ShapeError):
            if rule.id == "pod-template":
                yield Violation(_moved(made.path, pods.path), made.message, fix="Correct the value.")
            continue
        job, own = made
        if rule.id != job_size.RULE and any(job_size.check(job, job_size.CEILING, own)):
            continue
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
