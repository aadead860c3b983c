"""The platform supports the job's `cleanPodPolicy`, the treatment of its pods at the end.

`Running` removes pods that still run, `All` removes all of them, `None` keeps them, and the GPUs of the workers with
them, until the job is deleted. A job without a policy gets `None` from the operator.
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
    """The policy against `allowed`; `upstream-contract` rejects values that the operator does not know."""
    value = job.run_policy.clean_pod_policy
    if value in CLEAN_POD_POLICIES and value not in settings.allowed:
        yield not_allowed("spec.runPolicy.cleanPodPolicy", value, settings.allowed, default="None")
