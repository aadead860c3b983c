"""What the doctor found, for people and for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.doctor.finding import Finding, Severity
from webhook.terminal import bad, caution, faint, good, heading, printable

PAINT: Final = {Severity.OK: good, Severity.UNKNOWN: faint, Severity.WARNING: caution, Severity.PROBLEM: bad}
WIDTH: Final = max(map(len, Severity))


@dataclass(frozen=True, slots=True)
class Report:
    """`findings` with the name of their check."""

    host: str
    namespace: str
    findings: Sequence[tuple[str, Finding]]

    @property
    def good(self) -> bool:
        """Whether there is no problem."""
        return not any(finding.severity is Severity.PROBLEM for _, finding in self.findings)

    def as_text(self) -> Iterator[str]:
        """A line for each finding, and one below it for what to do."""
        yield heading(printable(f"mpijob-webhook in namespace {self.namespace} of the cluster at {self.host}"))
        width = max(len(name) for name, _ in self.findings)
        told = ""  # what many unknown things have in common is said once
        for name, finding in self.findings:
            severity = PAINT[finding.severity](f"{finding.severity:<{WIDTH}}")
            id_ = faint(f" [{finding.id}]") if finding.id else ""
            yield f"{severity}  {name:<{width}}  {printable(finding.text)}{id_}"
            if finding.fix and finding.fix != told:
                yield f"{'':{WIDTH + width + 4}}to do: {printable(finding.fix)}"
            told = finding.fix if finding.severity is Severity.UNKNOWN else told
        counts = Counter(finding.severity for _, finding in self.findings)
        words = [_count(counts[each], each) for each in reversed(Severity) if counts[each]]
        yield ", ".join(words)

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "cluster": self.host,
            "namespace": self.namespace,
            "good": self.good,
            "findings": [
                {"check": name, "severity": each.severity.value, "id": each.id, "text": each.text, "fix": each.fix}
                for name, each in self.findings
            ],
        }


def _count(number: int, severity: Severity) -> str:
    plural = "s" if number > 1 and severity in {Severity.PROBLEM, Severity.WARNING} else ""
    return f"{number} {severity}{plural}"
