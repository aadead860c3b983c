"""A job without a cost centre gets that of its namespace.

The namespace's label of the same name says it. Of a namespace without one, or one of which nothing is known, nothing is
injected.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.plugins.api import (
    NAMESPACES,
    Context,
    InjectionSettings,
    MPIJob,
    Namespace,
    PatchBuilder,
    injection,
)


class Settings(InjectionSettings):
    """What the label is called."""

    label: str = Field("cost-centre", min_length=1, description="The label, on namespaces and on jobs.")


@injection("example-cost-centre-label", Settings, since="0.1")
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    """Copy the namespace's label to the job."""
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    value = namespace.labels.get(settings.label) if isinstance(namespace, Namespace) else None
    if value and patch.add(("metadata", "labels", settings.label), value):
        yield f"set the label {settings.label} to {value}, as the namespace has it"
