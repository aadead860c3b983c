"""A job without a cost centre gets the cost centre of its namespace.

The injection copies the namespace's label of the same name.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.plugins.api import (
    ITEM,
    NAMESPACES,
    ComesBack,
    Context,
    Form,
    InjectionSettings,
    MPIJob,
    Namespace,
    PatchBuilder,
    a_text,
    injection,
)


class Settings(InjectionSettings):
    """The label to copy."""

    label: str = Field("cost-centre", min_length=1, description="The label, on namespaces and on jobs.")


# If an update drops the label, the service restores the label from the namespace.
FORMS = (Form(("metadata", "labels", ITEM), a_text, ComesBack.WRITTEN_TODAY),)


@injection("example-cost-centre-label", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    """Adds the label if the namespace is known and has the label."""
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    value = namespace.labels.get(settings.label) if isinstance(namespace, Namespace) else None
    if value and patch.add(("metadata", "labels", settings.label), value):
        yield f"set the label {settings.label} to {value}, the value of the namespace's label"
