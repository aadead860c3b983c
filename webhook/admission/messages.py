"""The words that users see around the violations and injections.

The API server drops warnings beyond 4,096 characters in total and cuts long ones, so they stay short and few (apiserver
`pkg/endpoints/filters/warning.go`).

One cause gives one message: if the fix of one rule also fixes another finding, that finding is left out. A finding
that the fix of another rule's violation fixes too (`Violation.follows`) is reported after that violation and is not
included in the number of problems.

- Amounts outside of a LimitRange that also contradict each other: the fix for the range names both amounts.
- A field that both the Pod Security level and the API server's check of a pod forbid.
- What the init container of `launcher-wait` copies from the launcher's first container.
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
"""Stands for the rule in findings about the schema."""

# Where to read what was injected and why, the longest text that fits.
_WHERE = (f" (kubectl get mpijob NAME -o yaml; {PROGRAM} explain NAME)", f" ({PROGRAM} explain NAME)")

_PATH_PART = re.compile(r"\[[^\]]*\]?|[^\[][^.\[]*")
_IN_PARENTHESES = re.compile(r" \((.*\)|.*$)", re.DOTALL)
ROLE_DEPTH = 3  # spec, mpiReplicaSpecs, [Worker]


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation and the rule that found it. Control characters in users' values are made visible here, for every
    rule.
    """

    rule: str
    violation: Violation
    cause: str = field(default="", compare=False)
    """The rule from whose violation this one follows; not included in the number of problems."""

    def __post_init__(self) -> None:
        """Every message is built from a finding, so this is the one place for it."""
        found = self.violation
        worded = visible_lines if found.of_lines else visible
        path, message, fix = visible(found.path), worded(found.message), worded(found.fix)
        if (path, message, fix) != (found.path, found.message, found.fix):
            object.__setattr__(self, "violation", replace(found, path=path, message=message, fix=fix))

    @property
    def importance(self) -> tuple[Importance, bool]:
        """For sorting, the worst first: the rule's importance, then certain before likely."""
        rule = REGISTRY.get(self.rule)
        return rule.importance if rule is not None else Importance.HARMS, self.violation.advisory

    @property
    def label(self) -> str:
        """The rule's id, as messages show it."""
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
        fault in parentheses, the fix, the middle of the fault. The rule stays, and so does the date from which it
        rejects. The first line of a long fault is a heading, so its second line represents the fault.
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
                shown = _elided(path, room - _length(advised))
                if _length(shown) + _length(advised) <= room and (shown == path or "..." in shown):
                    return f"{shown}: {advised} {label}"
        if _length(path) + _length(fault) > room:
            fault = _IN_PARENTHESES.sub("", fault)
        path = _elided(path, room - _length(fault))
        return f"{path}: {_cut(fault, room - _length(path))} {label}"


def denial(name: str, findings: Sequence[Finding], kind: str = "MPIJob") -> str:
    """The text of a rejection: every violation, numbered, with field, fault, fix and rule.

    A fault of several lines is kept as it is; it is indented only if there are other violations.
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
    """The first of several causes: the OpenShift console shows only that one."""
    return text if number < 2 else f"{text} (and {number - 1} more)"


def warnings(texts: Sequence[str]) -> list[str]:
    """At most ten warnings, in their order."""
    unique = list(dict.fromkeys(map(visible, texts)))
    kept = unique[:MAX_WARNINGS]
    if len(unique) > MAX_WARNINGS:
        kept[-1] = f"... and {len(unique) - MAX_WARNINGS + 1} more warnings"
    return kept


def injected(briefs: Mapping[str, str], hints: Iterable[str] = ()) -> str:
    """One line for all injections: their ids, each with its brief if it has one, where to read more, and hints.

    Injections with a brief come first. If the line is too long, the pointer to more is left out, then one brief after
    the other. A long list of ids is cut only where the API server would cut it. Hints stay.
    """
    return _injected(tuple(briefs.items()), "".join(f"; {hint}" for hint in hints))


@lru_cache(maxsize=256)  # the ids and briefs are the same for most jobs
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
    """In bytes of UTF-8, as the API server counts."""
    return len(text.encode(errors="replace"))


def _cut(text: str, room: int) -> str:
    """`text` without its middle: the end of a fault says what is wrong, after names of any length."""
    data = text.encode(errors="replace")
    if len(data) <= room:
        return text
    end = max(room - 3, 0) * 2 // 5
    kept = (data[: max(room - 3 - end, 0)], data[len(data) - end :])
    return "...".join(part.decode(errors="ignore") for part in kept)


def _elided(path: str, room: int) -> str:
    """`path` with the role of the job and as much of its end as fits."""
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
# The atomic group stops backtracking: the name of a resource may contain many such parts.
_PAIR: Final = re.compile(r"(?>(.+?\.resources)\.(?:limits|requests)\[)(.+)\]", re.DOTALL)


def told_once(denied: Iterable[Finding]) -> list[Finding]:
    """The findings that reject a job, without those that the fix of another one fixes."""
    found = list(denied)
    bounded = {_pair(each) for each in found if each.rule == _BOUNDS} - {None}
    of_level = {each.violation.path for each in found if each.rule == _LEVEL}
    left = [each for each in found if each.rule != _PODS or each.violation.path not in of_level]
    return [each for each in left if not _of_amount(each) or _pair(each) not in bounded]


def without_copies(found: list[tuple[Finding, Action]], job: MPIJob) -> list[tuple[Finding, Action]]:
    """The findings without those repeated in the waiting init container, which copies the launcher's first
    container.
    """
    init = job.launcher.template.init_containers if found and job.launcher else ()
    index = next((index for index, each in enumerate(init) if each.name == WAIT_CONTAINER), None)
    if index is None:
        return found
    spec = f"{replica_path(LAUNCHER)}.template.spec"
    copy, original = f"{spec}.initContainers[{index}]", f"{spec}.containers[0]"
    told = {(each.rule, each.violation.path, each.violation.message) for each, _ in found}
    return [
        (each, action)
        for each, action in found
        if not each.violation.path.startswith(copy)
        or (each.rule, original + each.violation.path.removeprefix(copy), each.violation.message) not in told
    ]


def _of_amount(finding: Finding) -> bool:
    """Whether it is about an amount, not about which resource is requested."""
    return finding.rule in _OF_AMOUNTS and finding.violation.reason is not CauseReason.NOT_SUPPORTED


def _pair(finding: Finding) -> tuple[str, ...] | None:
    """The path of the resources and the resource, if the finding is about a request or limit."""
    match = _PAIR.fullmatch(finding.violation.path)
    return match.groups() if match else None
