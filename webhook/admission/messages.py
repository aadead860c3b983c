"""The texts of rejections and warnings.

The API server drops warnings beyond 4,096 characters in total and cuts long ones (apiserver
`pkg/endpoints/filters/warning.go`).

A finding with `Violation.follows` has the same fix as the violation of another rule. It is listed after that violation,
and its label names the other rule. Findings that repeat a cause are left out:

- amounts that contradict each other and also violate a LimitRange: the fix for the LimitRange names both amounts;
- a violation of the API server's pod validation, if the Pod Security level forbids the same field;
- a finding about the init container of `launcher-wait` that repeats a finding about the launcher's first container.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from textwrap import indent
from typing import Final

from webhook import PROGRAM
from webhook.admission.limits import MAX_IDS_CHARACTERS, MAX_LISTED_FINDINGS, MAX_WARNING_CHARACTERS, MAX_WARNINGS
from webhook.api.mpijob import LAUNCHER, MPIJob, replica_path
from webhook.api.sshd import WAIT_CONTAINER
from webhook.api.text import visible, visible_lines
from webhook.kit.importance import Importance
from webhook.kit.settings import Action
from webhook.rules import REGISTRY, CauseReason, Violation

SCHEMA = "schema"
"""The rule id in findings about the schema."""

# Commands that show the injected fields and their reasons. The longest text that fits is used.
_WHERE = (f" (kubectl get mpijob NAME -o yaml; {PROGRAM} explain NAME)", f" ({PROGRAM} explain NAME)")

_PATH_PART = re.compile(r"\[[^\]]*\]?|[^\[][^.\[]*")
_IN_PARENTHESES = re.compile(r" \((.*\)|.*$)", re.DOTALL)
ROLE_DEPTH = 3  # spec, mpiReplicaSpecs and [Worker]


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation and its rule. Control characters in users' values become visible escapes."""

    rule: str
    violation: Violation
    cause: str = field(default="", compare=False)
    """The rule of the violation that causes this finding. A finding with a cause is not a problem of its own."""

    def __post_init__(self) -> None:
        """Every message is made from findings, so control characters are replaced here."""
        violation = self.violation
        escaped = visible_lines if violation.of_lines else visible
        path, message, fix = visible(violation.path), escaped(violation.message), escaped(violation.fix)
        if (path, message, fix) != (violation.path, violation.message, violation.fix):
            object.__setattr__(self, "violation", replace(violation, path=path, message=message, fix=fix))

    @property
    def importance(self) -> tuple[Importance, bool]:
        """The key for sorting, worst first: the rule's importance, then certain findings before likely findings."""
        rule = REGISTRY.get(self.rule)
        return rule.importance if rule is not None else Importance.HARMS, self.violation.advisory

    @property
    def label(self) -> str:
        return f"[{self.rule}, follows from {self.cause}]" if self.cause else f"[{self.rule}]"

    @property
    def sentence(self) -> str:
        """The problem and the fix, without the field."""
        if "\n" in self.violation.message:
            return f"{self.violation.message}\n\n{self.violation.fix}\n{self.label}"
        return f"{self.violation.message}. {self.violation.fix} {self.label}"

    @property
    def warning(self) -> str:
        """Field, fault and fix on one line.

        If the line is too long, these parts are left out in turn: the middle of the field's path, the parts of the
        fault in parentheses, the fix, the middle of the fault. If the fault has several lines, the first line is a
        heading, so the second line is shown.
        """
        path, fault = self.violation.path, self.violation.message
        heading, *lines = fault.split("\n")
        label = f"[{self.rule}]"
        room = MAX_WARNING_CHARACTERS - len(f":  {label}")
        if lines:
            fault = lines[0].removeprefix("Details: ").rstrip(".") or heading
        else:
            for text in (fault, _IN_PARENTHESES.sub("", fault)):
                advised = f"{text}. {self.violation.fix}"
                left = room - _length(advised)
                shown = _elided(path, left) if left > 0 else ""
                if _length(shown) <= left and (shown == path or "..." in shown):
                    return f"{shown}: {advised} {label}"
        if _length(path) + _length(fault) > room:
            fault = _IN_PARENTHESES.sub("", fault)
        path = _elided(path, room - _length(fault))
        return f"{path}: {_cut(fault, room - _length(path))} {label}"


def denial(name: str, findings: Sequence[Finding], kind: str = "MPIJob") -> str:
    """The text of a rejection.

    A fault of several lines is shown unchanged. It is indented if there are other violations.
    """
    problems = "1 problem" if len(findings) == 1 else f"{len(findings)} problems"
    lines = [f'{kind} "{visible(name)}" was rejected: {problems}']
    for number, finding in enumerate(findings[:MAX_LISTED_FINDINGS], start=1):
        violation = finding.violation
        if "\n" in violation.message:
            lines.append(f"{number}. {violation.path} {finding.label}")
            lines.append(indent(f"{violation.message}\n\n{violation.fix}", "" if len(findings) == 1 else "   "))
        else:
            lines.append(f"{number}. {violation.path}: {violation.message} {finding.label}")
            lines.append(f"   {violation.fix}")
    if len(findings) > MAX_LISTED_FINDINGS:
        lines.append(f"... and {len(findings) - MAX_LISTED_FINDINGS} more")
    return "\n".join(lines)


def first_of(text: str, number: int) -> str:
    """The text of the first cause with the number of further causes. The OpenShift console shows only this text."""
    return text if number < 2 else f"{text} (and {number - 1} more)"


def warnings(texts: Sequence[str]) -> list[str]:
    unique = list(dict.fromkeys(map(visible, texts)))
    shown = unique[:MAX_WARNINGS]
    if len(unique) > MAX_WARNINGS:
        shown[-1] = f"... and {len(unique) - MAX_WARNINGS + 1} more warnings"
    return shown


def injected(briefs: Mapping[str, str], hints: Iterable[str] = ()) -> str:
    """One line for all injections: their ids with their briefs, the command to read more, and hints.

    If the line is too long, the command is left out, then one brief after the other. A long list of ids is cut at the
    API server's limit. Hints always stay.
    """
    return _injected(tuple(briefs.items()), "".join(f"; {hint}" for hint in hints))


@lru_cache(maxsize=256)  # most jobs have the same ids and briefs
def _injected(told: tuple[tuple[str, str], ...], hints: str) -> str:
    briefs = dict(told)
    ids = sorted(briefs, key=lambda author: not briefs[author])
    whole = _listing(ids, briefs)
    for where in _WHERE:
        if _length(line := whole + where + hints) <= MAX_WARNING_CHARACTERS:
            return line
    for shown in range(len(ids), -1, -1):
        if _length(line := _listing(ids, {author: briefs[author] for author in ids[:shown]})) <= MAX_WARNING_CHARACTERS:
            return line + hints
    for listed in range(len(ids), 0, -1):
        more = f" and {len(ids) - listed} more" if listed < len(ids) else ""
        if _length(line := _listing(ids[:listed], briefs) + more + hints) <= MAX_IDS_CHARACTERS:
            return line
    return shorten(line)


def _listing(ids: Sequence[str], briefs: Mapping[str, str]) -> str:
    texts = [f"{author} {brief}".rstrip() if (brief := briefs.get(author)) else author for author in ids]
    return f"injected: {', '.join(texts)}"


def shorten(text: str) -> str:
    """`text` on one line, cut to the length of a warning."""
    return _cut(visible(" ".join(text.split())), MAX_WARNING_CHARACTERS)


def _length(text: str) -> int:
    """The length in bytes of UTF-8, as the API server measures it."""
    return len(text.encode(errors="replace"))


def _cut(text: str, room: int) -> str:
    """`text` without its middle, if it is too long. The end stays, because it is the most important part of a fault."""
    data = text.encode(errors="replace")
    if len(data) <= room:
        return text
    end = max(room - 3, 0) * 2 // 5
    kept = (data[: max(room - 3 - end, 0)], data[len(data) - end :])
    return "...".join(part.decode(errors="ignore") for part in kept)


def _elided(path: str, room: int) -> str:
    """`path` without its middle: the parts up to the job's role, and as many of the last parts as fit."""
    if _length(path) <= room:
        return path
    parts = _PATH_PART.findall(path)
    head = "".join(parts[:ROLE_DEPTH])
    end = ""
    for part in reversed(parts[ROLE_DEPTH + 1 :]):
        if _length(f"{head}...{part}{end}") > room + part.startswith("."):
            break
        end = part + end
    return f"{head}...{end.lstrip('.')}" if end else head


_BOUNDS: Final = "limit-range"
_LEVEL: Final = "pod-security"
_PODS: Final = "pod-template"
_OF_AMOUNTS: Final = frozenset({"pod-template", "gpus"})
# A resource name may contain many similar parts. The atomic group prevents backtracking.
_PAIR: Final = re.compile(r"(?>(.+?\.resources)\.(?:limits|requests)\[)(.+)\]", re.DOTALL)


def told_once(denied: Iterable[Finding]) -> list[Finding]:
    """`denied` without findings that are fixed together with another finding."""
    findings = list(denied)
    bounded = {_pair(finding) for finding in findings if finding.rule == _BOUNDS} - {None}
    of_level = {finding.violation.path for finding in findings if finding.rule == _LEVEL}
    return [
        finding
        for finding in findings
        if not (finding.rule == _PODS and finding.violation.path in of_level)
        and not (_of_amount(finding) and _pair(finding) in bounded)
    ]


def without_copies(findings: list[tuple[Finding, Action]], job: MPIJob) -> list[tuple[Finding, Action]]:
    """`findings` without those that repeat a finding about the launcher's first container.

    Repetitions are about the init container that `launcher-wait` makes as a copy of that container.
    """
    if not any("initContainers[" in finding.violation.path for finding, _ in findings):
        return findings
    init = job.launcher.template.init_containers if job.launcher else ()
    index = next((index for index, container in enumerate(init) if container.name == WAIT_CONTAINER), None)
    if index is None:
        return findings
    spec = f"{replica_path(LAUNCHER)}.template.spec"
    copy, original = f"{spec}.initContainers[{index}]", f"{spec}.containers[0]"
    reported = {(finding.rule, finding.violation.path, finding.violation.message) for finding, _ in findings}
    return [
        (finding, action)
        for finding, action in findings
        if not (path := finding.violation.path).startswith(copy)
        or (finding.rule, original + path.removeprefix(copy), finding.violation.message) not in reported
    ]


def _of_amount(finding: Finding) -> bool:
    """Whether the finding is about an amount, not about the choice of a resource."""
    return finding.rule in _OF_AMOUNTS and finding.violation.reason is not CauseReason.NOT_SUPPORTED


def _pair(finding: Finding) -> tuple[str, ...] | None:
    """(path of `resources`, resource name) of a finding about a request or limit; else None."""
    match = _PAIR.fullmatch(finding.violation.path)
    return match.groups() if match else None
