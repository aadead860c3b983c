"""Certificates: stored, trusted by the caBundles, served."""

from collections.abc import Iterator
from typing import Final

from webhook import PROGRAM
from webhook.installation.doctor.certificates import FILES, Certificates
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, Unread, not_known, ok
from webhook.installation.doctor.facts import Facts

CERTIFICATE_BROKEN: Final = DiagnosisKind("certificate-broken", Severity.PROBLEM)
CERTIFICATE_ATTENTION: Final = DiagnosisKind("certificate-attention", Severity.WARNING)
CERTIFICATE_SECRET_MISSING: Final = DiagnosisKind("certificate-secret-missing", Severity.PROBLEM)
CERTIFICATE_UNSEEN: Final = DiagnosisKind("certificate-unseen", Severity.UNKNOWN)


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Say what `certs status` says, by the clock of the API server: that is who checks certificates."""
    found = facts.certificates
    yield from _stored(found)
    if isinstance(found.bundles, Unread):
        yield not_known("the caBundles", found.bundles.reason)
    status = found.status(facts.server_time or facts.now)
    log = f"kubectl -n {found.namespace} logs -l app.kubernetes.io/name={PROGRAM} --tail=100"
    for issue in status.issues:
        if found.data is None and found.secret and "Secret" in issue.text:
            continue  # said above
        kind = CERTIFICATE_BROKEN if issue.severity == "error" else CERTIFICATE_ATTENTION
        yield kind(issue.text, fix=f"{issue.advice} ({log})")
    if not found.served:
        yield unseen(found)
        return
    until = min(each.not_after for each in status.certificates if each.role == "served")
    plural = "" if len(found.served) == 1 else "es"
    phase = f"; CA {status.phase}" if status.phase else ""
    yield ok(f"valid until {until:%Y-%m-%d}, trusted, seen at {len(found.served)} address{plural}{phase}")


def unseen(found: Certificates) -> Diagnosis:
    """No replica was reached to look at its certificate: why, and how to reach one."""
    why = "; ".join(found.unreached) or "no endpoints are known"
    stand_in = ", the mounted Secret is judged in its place" if found.stored else ""
    return CERTIFICATE_UNSEEN(
        f"the certificate that is served cannot be seen from here{stand_in} ({why})",
        fix=f"kubectl -n {found.namespace} port-forward deployment/{PROGRAM} 8443, and beside it this command "
        "with --address 127.0.0.1:8443",
    )


def _stored(found: Certificates) -> Iterator[Diagnosis]:
    if isinstance(found.data, Unread):
        yield not_known(f"the Secret {found.secret}", found.data.reason)
    elif found.secret and found.data is None:
        again = "apply the manifests again, they ship it empty: kubectl apply -k manifests/overlays/default"
        issuer = f"kubectl -n {found.namespace} describe certificates.cert-manager.io; with OpenShift see that the "
        issuer += "Service has the annotation service.beta.openshift.io/serving-cert-secret-name"
        text = f"the Secret {found.secret} does not exist in {found.namespace}: " + (
            "no replica can start" if found.source == FILES else "certificates are not renewed"
        )
        yield CERTIFICATE_SECRET_MISSING(text, fix=issuer if found.source == FILES else again)
