"""The platform allows the job's `cleanPodPolicy`, which says what happens to the pods when the job ends.

`Running` deletes pods that still run, and `All` deletes all pods. With `None`, the operator's default, the workers keep
running, and keep their GPUs, until the job is deleted.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from webhook.api.mpijob import CLEAN_POD_POLICIES, MPIJob
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.rules import Violation, not_allowed, rule


class Settings(RuleSettings):
    """The policies that jobs may choose."""

    allowed: tuple[Literal["All", "Running", "None"], ...] = Field(
        ("All", "Running", "None"), min_length=1, description="The values a job may choose."
    )


@rule("clean-pod-policy", Settings, since="0.1", importance=Importance.MINOR)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """The rule `upstream-contract` reports unknown values."""
    value = job.run_policy.clean_pod_policy
    if value in CLEAN_POD_POLICIES and value not in settings.allowed:
        yield not_allowed("spec.runPolicy.cleanPodPolicy", value, settings.allowed, default="None")
