"""A job, created as a dry run: it goes through every hook, and is not stored."""

from collections.abc import Iterator
from typing import Final

from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, ok
from webhook.installation.doctor.facts import Facts, configuration, hooks
from webhook.installation.doctor.unread import Unread
from webhook.installation.registration import DOMAIN

PROBE_FAILED: Final = DiagnosisKind("probe-failed", Severity.PROBLEM)
PROBE_UNKNOWN: Final = DiagnosisKind("probe-unknown", Severity.UNKNOWN)
HOOK: Final = f"validate.{DOMAIN}"


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Say whether the API server reaches the service; nothing if no probe was asked for."""
    if facts.probe is None:
        return
    refusal, where = facts.probe.refusal, f"the dry run in {facts.probe.namespace}"
    closed = _closed(facts)
    if f'"{HOOK}" denied' in refusal or (not refusal and closed):
        yield ok(f"the API server reached the service ({where}; nothing was stored)")
    elif "failed calling webhook" in refusal and DOMAIN in refusal:
        fix = "see the findings on certificates and replicas; a NetworkPolicy or firewall may keep the API server out"
        yield PROBE_FAILED(f"the API server does not reach the service: {refusal}", fix=fix)
    elif refusal:
        fix = "name a namespace in which you may create MPIJobs: kubectl auth can-i create mpijobs -n NAMESPACE"
        yield PROBE_UNKNOWN(f"{where} tells nothing: {refusal}", fix=fix)
    else:
        fix = "see the findings on the webhook configurations"
        yield PROBE_UNKNOWN(f"{where} was accepted, but without the service it would be too", fix=fix)


def _closed(facts: Facts) -> bool:
    """Whether no job is stored unless the service answers."""
    ours = None if isinstance(facts.validating, Unread) else configuration(facts.validating)
    return any(hook["name"] == HOOK and hook["failurePolicy"] == "Fail" for hook in hooks(ours or {}))
