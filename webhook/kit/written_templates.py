"""The JSON of a job's pod templates, found once per review."""

import msgspec

from webhook.api import written
from webhook.api.written import Templates
from webhook.kit.context import Context


def written_templates(ctx: Context) -> Templates:
    """The templates in `ctx.document`, by the key of their replica specs."""
    return ctx.once(_read, ctx.document)


def _read(document: bytes | msgspec.Raw, _: Context) -> Templates:
    return written.templates(document)
