"""Helpers for the tests of plug-ins. They run one rule or injection on one job, as the service does."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from webhook.api import mpijob
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.injections import REGISTRY as INJECTIONS
from webhook.kit.context import Context
from webhook.kit.patch import PatchBuilder
from webhook.rules import REGISTRY as RULES
from webhook.rules import Violation

Job = Mapping[str, Any]


def violations(
    check: Callable[..., Any],
    job: Job,
    settings: Mapping[str, Any] | None = None,
    *,
    old: Job | None = None,
    namespace: str = "team-a",
    view: ClusterView | None = None,
) -> list[Violation]:
    """The violations that a function with the decorator `@rule` finds in a job.

    `settings` are written as in a policy. With `old` the request is an UPDATE. Without `view` the cluster is unknown.
    """
    declared = RULES.offered(check)
    if declared is None:
        raise TypeError(f"{check!r} is not decorated with @rule")
    document = msgspec.json.encode(job)
    context = Context(
        operation="CREATE" if old is None else "UPDATE",
        namespace=namespace,
        old=None if old is None else _defaulted(msgspec.json.encode(old)),
        document=document,
        old_document=msgspec.json.encode(old or {}),
        view=view or NothingKnown(),
    )
    return list(check(_defaulted(document), declared.settings.model_validate(settings or {}), context))


def injected(
    inject: Callable[..., Any],
    job: Job,
    settings: Mapping[str, Any] | None = None,
    *,
    namespace: str = "team-a",
    view: ClusterView | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """(changed job, notes) of a function with the decorator `@injection`. The parameters are those of `violations`."""
    declared = INJECTIONS.offered(inject)
    if declared is None:
        raise TypeError(f"{inject!r} is not decorated with @injection")
    document = msgspec.json.encode(job)
    context = Context(namespace=namespace, document=document, view=view or NothingKnown())
    patch = PatchBuilder(msgspec.json.decode(document))
    notes = list(inject(mpijob.decode(document), declared.settings.model_validate(settings or {}), context, patch))
    return patch.document, notes


def _defaulted(document: bytes) -> mpijob.MPIJob:
    return mpijob.apply_operator_defaults(mpijob.decode(document))
