"""The report of `certs status`."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from certs.status import Described, Issue, TrustStatus
from webhook import PROGRAM
from webhook.cli.terminal import bad, caution, faint, heading, printable
from webhook.installation.doctor.certificates import FILES, SELF_MANAGED, Certificates
from webhook.installation.doctor.checks.installed import unseen
from webhook.installation.doctor.unread import Unread

COLUMNS: Final = ("CERTIFICATE", "SUBJECT", "EXPIRES", "LEFT", "SHA-256")
FINGERPRINT_CHARACTERS: Final = 16
DAY: Final = timedelta(days=1)
MEANING: Final = {
    "missing": "there is no Secret",
    "publishing": "a new CA is on its way into the caBundles",
    "waiting": "a new CA is in every caBundle, and signs in a moment",
    "retiring": "a new CA signs, the old one is still trusted",
    "steady": "one CA, which signs",
}


@dataclass(frozen=True, slots=True)
class CertsStatus:
    """The certificates of an installation, and their status."""

    certificates: Certificates
    status: TrustStatus
    unread: tuple[str, ...]

    @classmethod
    def at(cls, now: datetime, certificates: Certificates) -> "CertsStatus":
        sources = (certificates.data, certificates.bundles)
        unread = tuple(source.reason for source in sources if isinstance(source, Unread))
        return cls(certificates, certificates.status(now), unread)

    @property
    def issues(self) -> tuple[Issue, ...]:
        more = []
        if self.certificates.source == FILES and self.certificates.data is None:
            text = f"the Secret {self.certificates.secret} does not exist"
            more.append(Issue("error", text, "see cert-manager's Certificate, or the annotation for service-ca"))
        if not self.certificates.bundles and not isinstance(self.certificates.bundles, Unread):
            text = "no webhook configuration calls the Service"
            more.append(Issue("error", text, f"`{PROGRAM} doctor` says more"))
        return (*more, *self.status.issues)

    @property
    def origin(self) -> str:
        secret = f"{self.certificates.namespace}/{self.certificates.secret}"
        if self.certificates.source == SELF_MANAGED:
            phase = self.status.phase
            return f"Self-managed, CA in Secret {secret}" + (f": {phase} ({MEANING[phase]})" if phase else "")
        if self.certificates.source == FILES:
            return f"From Secret {secret}, renewed by another tool"
        return "Of unknown origin"

    def as_text(self) -> Iterator[str]:
        yield heading(printable(self.origin))
        rows = [COLUMNS, *map(_row, self.status.certificates)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            yield printable("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        trust = {True: "trusts what is served", False: "does NOT trust what is served", None: "what is served: unknown"}
        for bundle in self.status.bundles:
            cas = ", ".join(sha256[:FINGERPRINT_CHARACTERS] for sha256 in bundle.fingerprints) or "nothing"
            yield printable(f"{bundle.name}: {trust[bundle.trusts_served]}; holds {cas}")
        for reason in self.unread:
            yield f"{faint('unknown')}: {printable(reason)}"
        if not self.certificates.served:
            finding = unseen(self.certificates)
            yield f"{faint('unknown')}: {printable(finding.text)}"
            yield f"  to do: {printable(finding.fix)}"
        for issue in self.issues:
            word = bad("error") if issue.severity == "error" else caution("warning")
            yield f"{word}: {printable(issue.text)}"
            yield f"  to do: {printable(issue.advice)}"
        if not self.issues and not self.unread:
            yield "nothing needs doing"

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.certificates.source,
            "secret": self.certificates.secret,
            "phase": self.status.phase,
            "certificates": [
                {
                    "role": certificate.role,
                    "subject": certificate.subject,
                    "issuer": certificate.issuer,
                    "hosts": list(certificate.hosts),
                    "sha256": certificate.fingerprint,
                    "notBefore": certificate.not_before.isoformat(),
                    "notAfter": certificate.not_after.isoformat(),
                    "remainingSeconds": int(certificate.remaining.total_seconds()),
                }
                for certificate in self.status.certificates
            ],
            "caBundles": [
                {"name": bundle.name, "sha256": list(bundle.fingerprints), "trustsServed": bundle.trusts_served}
                for bundle in self.status.bundles
            ],
            "served": [f"{host}:{port}" for host, port in self.certificates.served],
            "unknown": [*self.unread, *self.certificates.unreached],
            "issues": [{"severity": issue.severity, "text": issue.text, "fix": issue.advice} for issue in self.issues],
        }


def _row(certificate: Described) -> tuple[str, ...]:
    left = certificate.remaining
    words = f"{left / DAY:.0f} d" if abs(left) >= 2 * DAY else f"{left / timedelta(hours=1):.1f} h"
    return (
        certificate.role,
        certificate.subject or ", ".join(certificate.hosts[:1]),
        f"{certificate.not_after:%Y-%m-%d %H:%M}Z",
        "expired" if left <= timedelta(0) else words,
        certificate.fingerprint[:FINGERPRINT_CHARACTERS],
    )
