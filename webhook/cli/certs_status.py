"""The report of `certs status`: a table of the certificates of an installation, and their problems."""

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
# Characters of a fingerprint. They are enough to distinguish certificates.
SHOWN: Final = 16
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

    found: Certificates
    status: TrustStatus
    unread: tuple[str, ...]
    """Sources that could not be read."""

    @classmethod
    def at(cls, now: datetime, found: Certificates) -> "CertsStatus":
        """The status at the time `now`, which comes from the clock of the API server."""
        unread = tuple(each.reason for each in (found.data, found.bundles) if isinstance(each, Unread))
        return cls(found, found.status(now), unread)

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Problems of the installation, then the problems of the certificates."""
        more = []
        if self.found.source == FILES and self.found.data is None:
            text = f"the Secret {self.found.secret} does not exist"
            more.append(Issue("error", text, "see cert-manager's Certificate, or the annotation for service-ca"))
        if not self.found.bundles and not isinstance(self.found.bundles, Unread):
            text = "no webhook configuration calls the Service"
            more.append(Issue("error", text, f"`{PROGRAM} doctor` says more"))
        return (*more, *self.status.issues)

    @property
    def origin(self) -> str:
        secret = f"{self.found.namespace}/{self.found.secret}"
        if self.found.source == SELF_MANAGED:
            phase = self.status.phase
            return f"Self-managed, CA in Secret {secret}" + (f": {phase} ({MEANING[phase]})" if phase else "")
        return f"From Secret {secret}, renewed by another tool" if self.found.source == FILES else "Of unknown origin"

    def as_text(self) -> Iterator[str]:
        """The table, and the problems below it."""
        yield heading(printable(self.origin))
        rows = [COLUMNS, *map(_row, self.status.certificates)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            yield printable("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        trust = {True: "trusts what is served", False: "does NOT trust what is served", None: "what is served: unknown"}
        for bundle in self.status.bundles:
            cas = ", ".join(each[:SHOWN] for each in bundle.fingerprints) or "nothing"
            yield printable(f"{bundle.name}: {trust[bundle.trusts_served]}; holds {cas}")
        for reason in self.unread:
            yield f"{faint('unknown')}: {printable(reason)}"
        if not self.found.served:
            finding = unseen(self.found)
            yield f"{faint('unknown')}: {printable(finding.text)}"
            yield f"  to do: {printable(finding.fix)}"
        for issue in self.issues:
            word = bad("error") if issue.severity == "error" else caution("warning")
            yield f"{word}: {printable(issue.text)}"
            yield f"  to do: {printable(issue.advice)}"
        if not self.issues and not self.unread:
            yield "nothing needs doing"

    def as_json(self) -> dict[str, Any]:
        """As JSON values. Times are RFC 3339."""
        return {
            "source": self.found.source,
            "secret": self.found.secret,
            "phase": self.status.phase,
            "certificates": [
                {
                    "role": each.role,
                    "subject": each.subject,
                    "issuer": each.issuer,
                    "hosts": list(each.hosts),
                    "sha256": each.fingerprint,
                    "notBefore": each.not_before.isoformat(),
                    "notAfter": each.not_after.isoformat(),
                    "remainingSeconds": int(each.remaining.total_seconds()),
                }
                for each in self.status.certificates
            ],
            "caBundles": [
                {"name": each.name, "sha256": list(each.fingerprints), "trustsServed": each.trusts_served}
                for each in self.status.bundles
            ],
            "served": [f"{host}:{port}" for host, port in self.found.served],
            "unknown": [*self.unread, *self.found.unreached],
            "issues": [{"severity": each.severity, "text": each.text, "fix": each.advice} for each in self.issues],
        }


def _row(certificate: Described) -> tuple[str, ...]:
    left = certificate.remaining
    words = f"{left / DAY:.0f} d" if abs(left) >= 2 * DAY else f"{left / timedelta(hours=1):.1f} h"
    return (
        certificate.role,
        certificate.subject or ", ".join(certificate.hosts[:1]),
        f"{certificate.not_after:%Y-%m-%d %H:%M}Z",
        "expired" if left <= timedelta(0) else words,
        certificate.fingerprint[:SHOWN],
    )
