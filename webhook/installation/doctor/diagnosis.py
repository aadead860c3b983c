"""The results of checks."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    OK = "ok"
    UNKNOWN = "unknown"
    """The check could not be done, for example because of missing rights."""
    WARNING = "warning"
    """The installation does not work as intended, or will soon stop working."""
    PROBLEM = "problem"
    """Jobs are rejected or not checked, now or soon."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A line of the report, with its fix."""

    severity: Severity
    id: str
    """The section of the runbook that explains the diagnosis; empty for OK."""
    text: str
    fix: str = ""
    """A command or an instruction."""


@dataclass(frozen=True, slots=True)
class DiagnosisKind:
    """Makes diagnoses of one id and severity. Each kind is a constant in the module of its check."""

    id: str
    severity: Severity

    def __call__(self, text: str, *, fix: str) -> Diagnosis:
        return Diagnosis(self.severity, self.id, text, fix)


def ok(text: str) -> Diagnosis:
    return Diagnosis(Severity.OK, "", text)


NOT_KNOWN = DiagnosisKind("not-known", Severity.UNKNOWN)
"""A fact could not be read, in most cases because the API server denied access. All checks use this kind."""


def not_known(subject: str, reason: str) -> Diagnosis:
    return NOT_KNOWN(f"{subject}: {reason}", fix="run it again as a user who may read all, such as a cluster-admin")
