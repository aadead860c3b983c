"""What a check says: one line of the report, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    UNKNOWN = "unknown"
    """It cannot be seen from here, or with these rights."""
    WARNING = "warning"
    """It works, but not as it should, or not for long."""
    PROBLEM = "problem"
    """Jobs are refused, or pass unchecked, or will soon."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`id` is what the runbook explains, empty for what is fine; `fix` is the command to run, or what to see to."""

    severity: Severity
    id: str
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class DiagnosisKind:
    """Something that can be found; a check declares what it can find as constants of its module."""

    id: str
    severity: Severity

    def __call__(self, text: str, *, fix: str) -> Diagnosis:
        """The finding that says so."""
        return Diagnosis(self.severity, self.id, text, fix)


def ok(text: str) -> Diagnosis:
    """All is well."""
    return Diagnosis(Severity.OK, "", text)


NOT_KNOWN = DiagnosisKind("not-known", Severity.UNKNOWN)
"""The API server does not say; declared once for all checks."""


def not_known(what: str, reason: str) -> Diagnosis:
    """`what` cannot be judged because of `reason`."""
    return NOT_KNOWN(f"{what}: {reason}", fix="run it again as somebody who may read all, such as a cluster-admin")
