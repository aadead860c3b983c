"""Checks that the job that will be stored has every injection that the policy requires.

Another mutating webhook may have removed an injection, or the API server may have failed to reach the mutating webhook.
Each required injection runs on the final object. A value counts as missing if the injection would still add it.

An update gets new injections only in a Launcher or Worker that it adds. On an update, a value therefore counts as
missing only if it belongs in an added Launcher or Worker, or if the stored job has the value.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from webhook.admission.messages import Finding
from webhook.api import document, mpijob
from webhook.api.mpijob import MPIJob
from webhook.injections import Injection
from webhook.kit.context import Context
from webhook.kit.patch import Addition, PatchBuilder, PatchConflict, Path
from webhook.kit.settings import Action, InjectionSettings
from webhook.policy.exemptions import REQUIRED_INJECTION
from webhook.policy.in_force import Policy
from webhook.rules import Violation

RULE = REQUIRED_INJECTION
_MISSING: Final = 'the injection "{}" is required and not in the job'
_REPLICAS: Final = ("spec", "mpiReplicaSpecs")
_FIX = "Submit it again; if that does not help, another webhook removes it: ask your administrator."
_FIX_CLAIMED = (
    "Nothing is injected into a job that is {}: write it into the job, or ask your administrator to exempt the user"
    " who creates such jobs from required-injection."
)


def missing(
    policy: Policy, ctx: Context, *, claimed: str = "", stored: msgspec.Raw | None = None
) -> Iterator[tuple[Finding, Action]]:
    """A finding for each required injection that would still add values.

    If the job itself states why it gets no injections, `claimed` is this reason. Otherwise `claimed` is empty. `stored`
    is the stored job of an update.
    """
    if not policy.required:
        return
    job = mpijob.decode(ctx.document)  # without the operator's defaults
    builder = PatchBuilder(document.object_of(ctx.document))
    before = None if stored is None else PatchBuilder(document.object_of(stored))
    fix = _FIX_CLAIMED.format(claimed) if claimed else _FIX
    for injection, settings in policy.required:
        action = settings.required.at_most(policy.document.ceiling)
        if injection.unmet is not None:
            if how := injection.unmet(job, settings, ctx):
                path = field(injection.forms[0].path)
                yield Finding(RULE, Violation(path, _MISSING.format(injection.id), fix=how)), action
            continue
        try:
            added = _additions(injection, settings, job, ctx, builder)
        except PatchConflict:
            return  # the API server's schema rejects the object
        if before is not None:
            added = [addition for addition in added if _had(before, addition)]
        if added:
            yield Finding(RULE, _violation(injection.id, added, fix)), action


def _additions(
    injection: Injection, settings: InjectionSettings, job: MPIJob, ctx: Context, builder: PatchBuilder
) -> list[Addition]:
    start = len(builder.additions)
    builder.author = injection.id
    for _ in injection.inject(job, settings, ctx, builder):
        pass  # the mutating webhook has shown the notes to the user
    return builder.additions[start:]


def _had(stored: PatchBuilder, addition: Addition) -> bool:
    """Whether the stored job has the missing value, or lacks the whole Launcher or Worker."""
    path = addition.path
    if path[:2] == _REPLICAS and stored.get(_REPLICAS) and stored.get(path[:3]) is None:
        return True
    value = stored.get(path)
    return addition.value in (value or ()) if addition.appended else value == addition.value


def _violation(injection_id: str, added: list[Addition], fix: str) -> Violation:
    more = f", and {len(added) - 1} other values of it are missing too" if len(added) > 1 else ""
    return Violation(field(added[0].path), _MISSING.format(injection_id) + more, fix=fix)


def field(path: Path) -> str:
    """The path in messages: `spec.mpiReplicaSpecs[Worker].template`."""
    shown = ""
    for depth, token in enumerate(path):
        in_brackets = isinstance(token, int) or not token.isalnum() or path[depth - 1] == "mpiReplicaSpecs"
        shown += f"[{token}]" if in_brackets else f".{token}"
    return shown.removeprefix(".")
