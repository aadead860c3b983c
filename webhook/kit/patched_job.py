"""The job with the fields that injections have added, for predictions."""

import msgspec
from msgspec import structs

from webhook.api import mpijob, untyped
from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context, Memo
from webhook.kit.patch import PatchBuilder


def patched_job(patch: PatchBuilder, ctx: Context) -> tuple[MPIJob, Context]:
    """The patched job, without the operator's defaults, and its context."""
    document = msgspec.Raw(msgspec.json.encode(patch.document))
    return mpijob.decode(document), structs.replace(ctx, document=document, memo=Memo())


def trial(patch: PatchBuilder) -> PatchBuilder:
    """A copy for additions that may be discarded."""
    copy = PatchBuilder(untyped.decode(msgspec.json.encode(patch.document)))
    copy.additions = [*patch.additions]
    return copy
