"""A job must have a label with an existing cost centre.

Accounting charges the cost centre in this label.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.plugins.api import CauseReason, Context, MPIJob, RuleSettings, Violation, rule


class Settings(RuleSettings):
    """The required label."""

    label: str = Field("cost-centre", min_length=1, description="The label that has the cost centre.")
    allowed: tuple[str, ...] = Field((), description="Allowed cost centres; [] for any.")


@rule("example-cost-centre", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Reports a missing label, or a label with a cost centre that is not allowed."""
    path = f"metadata.labels[{settings.label}]"
    value = (job.metadata.labels or {}).get(settings.label, "")
    if not value:
        yield Violation(path, "is missing: nobody pays for this job", fix="Add it.", reason=CauseReason.REQUIRED)
    elif settings.allowed and value not in settings.allowed:
        fix = f"Use one of {', '.join(settings.allowed)}."
        yield Violation(path, f'there is no cost centre "{value}"', fix=fix, reason=CauseReason.NOT_SUPPORTED)
