"""Whether what the policy requires to be injected is in the job that will be stored.

Mutating webhooks that run after this service's may take out what it injected, and where it was not reached nothing was.
The injection itself is asked: it is run on the final object, and what it would still add is missing. What the job has
by record is of no account here, because its user may have written that.
"""

from collections.abc import Iterator

import msgspec

from webhook.admission.messages import Finding
from webhook.api import mpijob
from webhook.kit.context import Context
from webhook.kit.patch import Addition, PatchBuilder, PatchConflict, Path
from webhook.kit.settings import Action
from webhook.policy.in_force import Policy
from webhook.rules import Violation

RULE = "required-injection"
_FIX = "Submit it again; if that does not help, another webhook takes it out, so ask your administrator."


def missing(policy: Policy, ctx: Context) -> Iterator[tuple[Finding, Action]]:
    """What the required injections would still add to the job of `ctx`, one finding for each of them."""
    required = [(injection, settings) for injection, settings in policy.injections if settings.required != Action.OFF]
    if not required:
        return
    job = mpijob.decode(ctx.document)  # as it is: without the operator's defaults
    builder = PatchBuilder(msgspec.json.decode(ctx.document))
    for injection, settings in required:
        before = len(builder.additions)
        try:
            for _ in injection.inject(job, settings, ctx, builder):
                pass  # what it says was told when the job was mutated
        except PatchConflict:
            return  # the API server's schema has the words for it
        if added := builder.additions[before:]:
            finding = Finding(RULE, _violation(injection.id, added))
            yield finding, settings.required.at_most(policy.document.ceiling)


def _violation(injection_id: str, added: list[Addition]) -> Violation:
    more = f", and {len(added) - 1} more of its values are missing too" if len(added) > 1 else ""
    return Violation(
        field(added[0].path), f'the injection "{injection_id}" is required and not in the job{more}', fix=_FIX
    )


def field(path: Path) -> str:
    """The path as it stands in messages: `spec.mpiReplicaSpecs[Worker].template`."""
    shown = ""
    for depth, token in enumerate(path):
        in_brackets = isinstance(token, int) or not token.isalnum() or path[depth - 1] == "mpiReplicaSpecs"
        shown += f"[{token}]" if in_brackets else f".{token}"
    return shown.removeprefix(".")
