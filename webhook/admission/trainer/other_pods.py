"""Pods besides launcher and nodes: each of a runtime's other replicated jobs is judged by itself, as a launcher."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from msgspec import structs

from webhook.api import mpijob, written
from webhook.api.mpijob import LAUNCHER, replica_path
from webhook.api.shape import ShapeError
from webhook.kit import written_templates
from webhook.kit.context import Context
from webhook.kit.settings import RuleSettings
from webhook.predict.trainer.shape import Shape
from webhook.rules import Rule, Violation, job_size

_AS_LAUNCHER: Final = replica_path(LAUNCHER)


def faults(shape: Shape, rule: Rule, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
    """What the rule finds in them; of those that are too large nothing but that."""
    for pods in shape.others:
        try:
            job, templates = written.decode(pods.document)
        except ShapeError as error:
            if rule.id == "pod-template":
                yield Violation(_moved(error.path, pods.path), error.message, fix="Correct the value.")
            continue
        job = mpijob.apply_operator_defaults(job)
        own = structs.replace(ctx, document=pods.document, old=None, memo={})
        written_templates.remember(templates, own)
        if rule.id != job_size.RULE and any(job_size.check(job, job_size.CEILING, own)):
            continue
        for found in rule.check(job, settings, own):
            path, message, fix = (_moved(text, pods.path) for text in (found.path, found.message, found.fix))
            yield replace(found, path=path, message=message, fix=fix)


def _moved(text: str, path: str) -> str:
    return text.replace(_AS_LAUNCHER, path)
