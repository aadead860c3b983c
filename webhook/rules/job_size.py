"""A job has no more bytes than the policy allows.

The size is the number of bytes of the object as JSON, including `metadata.managedFields` and the status. A policy
cannot change two further limits. First, an object that etcd could not store (1.5 MiB), or with more than 20,000
mappings and lists, is rejected without other checks. Second, a job whose checks take more than 250 ms of processor time
is rejected, because other jobs would have to wait. With `mode` `warn` or `audit`, jobs above these two limits are
admitted unchecked and without injections; a job that takes too much time still gets the injections `created-by` and
`job-timeout`.

An update that leaves spec, labels and annotations unchanged is always admitted. In a cluster with Kueue, an update by
one of the policy's `controllers` may also change the fields that Kueue changes when it starts and stops a job.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from webhook.api.limits import MAX_OBJECT_BYTES
from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.rules import CauseReason, Degree, Violation, rule

RULE: Final = "job-size"


class Settings(RuleSettings):
    """The maximum size of a job."""

    max_bytes: int = Field(1024 * 1024, ge=1, le=MAX_OBJECT_BYTES, description="Bytes of the job as JSON.")


@rule(RULE, Settings, since="0.1", importance=Importance.FAILS)
def check(_: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    size = len(memoryview(ctx.document))
    if size > settings.max_bytes:
        yield Violation(
            "spec",
            f"too large: {size:,} bytes, at most {settings.max_bytes:,}",
            fix=f"Stay within that, or ask your administrator about maxBytes of the rule {RULE}.",
            reason=CauseReason.NOT_SUPPORTED,
            degree=Degree("bytes", size),
        )
