"""Adds requests for devices to the first container of a template, if the job could get the devices."""

from collections.abc import Mapping
from typing import Any, Final

from webhook.api import mpijob, quantity
from webhook.api.accelerators import DEFAULT_ACCELERATORS, is_accelerator
from webhook.api.kueue import QUEUE_NAME
from webhook.cluster.resources.nodes import NodeShape
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, in_templates
from webhook.kit.patch import PatchBuilder, Path, template_path
from webhook.kit.patched_job import patched_job, trial
from webhook.predict.job_pods import JobPods
from webhook.predict.kueue.coverage import not_covered
from webhook.predict.never import never_has
from webhook.predict.nodes import node_shapes
from webhook.predict.rdma_devices import holding


def _is_device(name: str, amount: Any) -> bool:
    extended = "/" in name or name.startswith("hugepages-")
    return extended and isinstance(amount, str) and not is_accelerator(name, DEFAULT_ACCELERATORS)


FORMS: Final = tuple(
    form
    for field in ("limits", "requests")
    for form in in_templates(
        "spec", "containers", ITEM, "resources", field, ITEM, holds=_is_device, when=ComesBack.SAME_FILE
    )
)
Amounts = Mapping[str, str]
"""Amounts by the name of the resource."""
QUEUE: Final[Path] = ("metadata", "labels", QUEUE_NAME)


def add_requests(role: str, amounts: Amounts, patch: PatchBuilder) -> None:
    """Write the amounts as requests and limits. Replace amounts of other injections, but not those of the user."""
    resources = (*template_path(role), "spec", "containers", 0, "resources")
    injected = {addition.path for addition in patch.additions}
    for name, amount in amounts.items():
        for field in ("limits", "requests"):
            path = (*resources, field, name)
            patch.add(path, amount, over=patch.get(path) if path in injected else None)


def obstacle(amounts_by_role: Mapping[str, Amounts], resources: set[str], ctx: Context, patch: PatchBuilder) -> str:
    """The reason why the job, with these amounts, would be rejected or wait for ever; empty if there is none.

    Only quotas of `resources` are evaluated.
    """
    if not resources:
        return ""
    queue = patch.get(QUEUE)
    if problem := not_covered(ctx.view, ctx.namespace, queue, resources):
        return problem
    tried = trial(patch)
    for role, amounts in amounts_by_role.items():
        add_requests(role, amounts, tried)
    job, tried_context = patched_job(tried, ctx)
    return never_has(mpijob.apply_operator_defaults(job), tried_context, resources, label=queue)


def on_no_node(pods: JobPods, amounts: Amounts, ctx: Context) -> str:
    """The message about an amount that no node has; empty if there is no such amount, or if the nodes are unknown."""
    shapes = shapes_for(pods, ctx)
    for name, amount in amounts.items():
        if shapes and all(shape.allocatable.get(name, 0) < quantity.parse(amount) for shape in shapes):
            return f"no node that could hold the pods has {amount} {name}"
    return ""


def shapes_for(pods: JobPods, ctx: Context) -> list[NodeShape]:
    """The shapes of nodes that could hold the pods; empty if the nodes are unknown."""
    return holding(pods, node_shapes(ctx.view))
