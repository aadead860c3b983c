"""The result of a check: a line of the report, and the fix."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How serious a diagnosis is."""

    OK = "ok"
    UNKNOWN = "unknown"
    """Not visible from here, or with these rights."""
    WARNING = "warning"
    """It works, but not as intended, or not for long."""
    PROBLEM = "problem"
    """Jobs are rejected, or pass unchecked, or will soon."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A line of the report."""

    severity: Severity
    id: str
    """The section in the runbook that explains it; empty if everything is fine."""
    text: str
    fix: str = ""
    """The command to run, or another remedy."""


@dataclass(frozen=True, slots=True)
class DiagnosisKind:
    """A kind of diagnosis: each check declares its kinds as constants of its module."""

    id: str
    severity: Severity

    def __call__(self, text: str, *, fix: str) -> Diagnosis:
        return Diagnosis(self.severity, self.id, text, fix)


def ok(text: str) -> Diagnosis:
    """The diagnosis without a problem."""
    return Diagnosis(Severity.OK, "", text)


NOT_KNOWN = DiagnosisKind("not-known", Severity.UNKNOWN)
"""The API server denied access; declared once for all checks."""


def not_known(what: str, reason: str) -> Diagnosis:
    """The diagnosis that `what` cannot be judged, and why."""
    return NOT_KNOWN(f"{what}: {reason}", fix="run it again as a user who may read all, such as a cluster-admin")
