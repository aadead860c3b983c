"""Whether what the policy requires to be injected is in the job that will be stored.

Mutating webhooks that run after this service's may take out what it injected, and where it was not reached nothing was.
The injection itself is asked: it is run on the final object, and what it would still add is missing. What the job has
by record is of no account here, because its user may have written that. Of an update only what the stored job has and
the new one lacks is missing: an update injects nothing new.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from webhook.admission import places
from webhook.admission.messages import Finding
from webhook.admission.places import Lists
from webhook.api import document, mpijob
from webhook.kit.context import Context
from webhook.kit.patch import Addition, PatchBuilder, PatchConflict, Path
from webhook.kit.settings import Action
from webhook.policy.exemptions import REQUIRED_INJECTION
from webhook.policy.in_force import Policy
from webhook.rules import Violation

RULE = REQUIRED_INJECTION
_FIX = "Submit it again; if that does not help, another webhook takes it out, so ask your administrator."
_FIX_CLAIMED = (
    "Nothing is injected into a job that is {}, so write it into the job, or ask your administrator to exempt the user"
    " who creates such jobs from required-injection."
)


def missing(
    policy: Policy, ctx: Context, *, claimed: str = "", stored: bytes | msgspec.Raw | None = None
) -> Iterator[tuple[Finding, Action]]:
    """What the required injections would still add to the job of `ctx`, one finding for each of them.

    `claimed` is why nothing was injected into it, by its own account. Of an update only what the `stored` job has
    counts.
    """
    if not policy.required:
        return
    job = mpijob.decode(ctx.document)  # as it is: without the operator's defaults
    builder = PatchBuilder(document.object_of(ctx.document))
    before: Any = None if stored is None else msgspec.json.decode(stored)
    fix = _FIX_CLAIMED.format(claimed) if claimed else _FIX
    lists = Lists()
    for injection, settings in policy.required:
        start = len(builder.additions)
        try:
            for _ in injection.inject(job, settings, ctx, builder):
                pass  # what it says was told when the job was mutated
        except PatchConflict:
            return  # the API server's schema has the words for it
        added = builder.additions[start:]
        if stored is not None:
            added = [each for each in added if _is_in(before, each, builder.document, lists)]
        if added:
            finding = Finding(RULE, _violation(injection.id, added, fix))
            yield finding, settings.required.at_most(policy.document.ceiling)


def _is_in(document: Any, addition: Addition, made: Any, lists: Lists) -> bool:
    """Whether `document` has, in the same place, what was added to `made`."""
    return any(lists.value(document, place) is not None for place in places.of([addition], made))


def _violation(injection_id: str, added: list[Addition], fix: str) -> Violation:
    more = f", and {len(added) - 1} more of its values are missing too" if len(added) > 1 else ""
    return Violation(
        field(added[0].path), f'the injection "{injection_id}" is required and not in the job{more}', fix=fix
    )


def field(path: Path) -> str:
    """The path as it stands in messages: `spec.mpiReplicaSpecs[Worker].template`."""
    shown = ""
    for depth, token in enumerate(path):
        in_brackets = isinstance(token, int) or not token.isalnum() or path[depth - 1] == "mpiReplicaSpecs"
        shown += f"[{token}]" if in_brackets else f".{token}"
    return shown.removeprefix(".")
