"""The hook for SSH keys, which must never keep any other Secret from being stored."""

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.client.objects import KubernetesObject
from webhook.installation import registration
from webhook.installation.doctor.checks.configurations import GUARDED
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import Facts, configuration, hooks
from webhook.installation.doctor.unread import Unread

SECRET_HOOK_UNGUARDED: Final = DiagnosisKind("secret-hook-unguarded", Severity.PROBLEM)
SECRET_HOOK_WIDE: Final = DiagnosisKind("secret-hook-wide", Severity.WARNING)
SECRET_HOOK_FAILS_OPEN: Final = DiagnosisKind("secret-hook-fails-open", Severity.WARNING)

LEGACY: Final = "manifests/components/legacy-no-match-conditions"


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Say whether its failurePolicy suits the conditions that narrow it."""
    if isinstance(facts.mutating, Unread):
        yield not_known("the hook for SSH keys", facts.mutating.reason)
        return
    yield from unguarded(facts.mutating)
    hook = _find(facts.mutating)
    if hook is None:
        return
    guarded = bool(hook.get("matchConditions"))
    knows = bool(facts.kubernetes and facts.kubernetes >= registration.MATCH_CONDITIONS_SINCE)
    if knows and not guarded and hook["failurePolicy"] == "Ignore":
        text = "the hook for SSH keys has no matchConditions: it sees every Secret with an `app` label"
        fix = f"take {LEGACY} out of your overlay, then {facts.again}"
        yield SECRET_HOOK_WIDE(text, fix=fix)
    if guarded and hook["failurePolicy"] == "Ignore":
        text = "the hook for SSH keys has failurePolicy Ignore: jobs made while no replica answers get weaker keys"
        yield SECRET_HOOK_FAILS_OPEN(text, fix=f"fine in an emergency; else {facts.again}")
    fails = "closed" if hook["failurePolicy"] == "Fail" else "open"
    yield ok(f"narrowed by {'matchConditions' if guarded else 'label'}, fails {fails}")


def unguarded(mutating: Sequence[KubernetesObject]) -> Iterator[Diagnosis]:
    """A hook that can hold up any Secret. Only the stored configuration counts: older API servers drop conditions."""
    hook = _find(mutating)
    if hook and hook["failurePolicy"] == "Fail" and not hook.get("matchConditions"):
        yield SECRET_HOOK_UNGUARDED(
            "the hook for SSH keys has failurePolicy Fail and no matchConditions: "
            "while no replica answers, no Secret with an `app` label can be stored",
            fix=f"apply your overlay again; on Kubernetes before 1.28 with the component {LEGACY}",
        )


def _find(mutating: Sequence[KubernetesObject]) -> KubernetesObject | None:
    ours = configuration(mutating)
    return next((hook for hook in hooks(ours or {}) if hook["name"] == GUARDED), None)
