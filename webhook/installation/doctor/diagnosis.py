"""What a check finds: one line of the report, and what to do about it."""

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
    """A line of the report."""

    severity: Severity
    id: str
    """Of the section in the runbook that explains it; empty for what is fine."""
    text: str
    """What was found."""
    fix: str = ""
    """The command to run, or what else to do."""


@dataclass(frozen=True, slots=True)
class DiagnosisKind:
    """A kind of diagnosis: each check declares those that it makes as constants of its module."""

    id: str
    severity: Severity

    def __call__(self, text: str, *, fix: str) -> Diagnosis:
        """A diagnosis of this kind."""
        return Diagnosis(self.severity, self.id, text, fix)


def ok(text: str) -> Diagnosis:
    """The diagnosis where nothing is wrong."""
    return Diagnosis(Severity.OK, "", text)


NOT_KNOWN = DiagnosisKind("not-known", Severity.UNKNOWN)
"""The API server refuses to say; declared once for all checks."""


def not_known(what: str, reason: str) -> Diagnosis:
    """The diagnosis that `what` cannot be judged, and why."""
    return NOT_KNOWN(f"{what}: {reason}", fix="run it again as somebody who may read all, such as a cluster-admin")
