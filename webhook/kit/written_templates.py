"""The JSON of a job's pod templates, found once in a review."""

from webhook.api import written
from webhook.api.written import Templates
from webhook.kit.context import Context


def written_templates(ctx: Context) -> Templates:
    """The templates in `ctx.document`, by the key of their replica specs."""
    known: Templates | None = ctx.memo.get(_key(ctx))
    if known is None:
        known = ctx.memo[_key(ctx)] = written.templates(ctx.document)
    return known


def remember(found: Templates, ctx: Context) -> None:
    """Spare the search where the job was decoded together with its templates."""
    ctx.memo[_key(ctx)] = found


def _key(ctx: Context) -> tuple[str, int]:
    return "written_templates", id(ctx.document)
