"""Everything that keeps a job from running, the first cause first."""

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.kit.importance import Importance
from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut
from webhook.parts.why.causes import creation, deletion, disruption, launcher, operator, queue, scheduling, start
from webhook.parts.why.limits import MAX_LINE_CHARACTERS
from webhook.parts.why.sight import Judged, Sight
from webhook.parts.why.state import State, state

FAMILIES: Final[tuple[ModuleType, ...]] = (deletion, operator, queue, creation, scheduling, disruption, start, launcher)

# Rules whose findings name an object.
BY_NAME: Final = frozenset({"references", "priority", "child-names", "images"})
_QUOTED: Final = re.compile(r'"([^"]+)"')


class Diagnosis(msgspec.Struct, frozen=True):
    """The state of a job, and its causes."""

    state: State
    summary: str
    """The state and the main cause as a sentence without a subject."""
    causes: tuple[Cause, ...]
    """The causes, in the order of the stages."""

    def as_json(self) -> dict[str, Any]:
        causes = [cause.as_json() for cause in self.causes]
        return {"state": self.state.value, "text": self.summary, "causes": causes}


def diagnose(sight: Sight) -> Diagnosis:
    now, summary = state(sight)
    if now is State.SUCCEEDED:
        return Diagnosis(now, summary, ())
    observed = sorted((cause for family in FAMILIES for cause in family.causes(sight)), key=lambda cause: cause.stage)
    combined = [_with_finding(sight, cause) for cause in observed]
    used = {finding for _, finding in combined if finding is not None}
    judged = list(_judged([finding for finding in sight.findings if finding not in used]))
    causes = (*(cause for cause, _ in combined), *judged)
    if now is State.RUNS and _is_retried(sight, observed):
        return Diagnosis(now, f"{summary}; before that {cut(causes[0].text, MAX_LINE_CHARACTERS)}", causes)
    fatal = {finding.rule for finding in sight.findings if finding.importance is Importance.FAILS}
    blocking = next(iter(observed), None) or next((cause for cause in judged if cause.id in fatal), None)
    if blocking is not None and now is State.FAILED:
        summary = f"failed: {cut(blocking.text, MAX_LINE_CHARACTERS)}"
    elif blocking is not None and (observed or now is State.STARTS):
        now, summary = State.STUCK, f"does not run: {cut(blocking.text, MAX_LINE_CHARACTERS)}"
    return Diagnosis(now, summary, causes)


def _is_retried(sight: Sight, observed: list[Cause]) -> bool:
    """Whether the launcher's earlier failure is the only problem."""
    newest = loose.text(next(iter(sight.launchers), None), "status", "phase")
    return newest == "Running" and bool(observed) and all(cause.stage is Stage.RUN for cause in observed)


def _with_finding(sight: Sight, cause: Cause) -> tuple[Cause, Judged | None]:
    """The cause with the field and fix of a finding about the same problem, and the finding."""
    finding = sight.finding(cause.rules)
    if finding is None or not _same(finding, cause):
        return cause, None
    where = cause.where if finding.path in cause.where else f"{cause.where}; {finding.path}"
    return replace(cause, where=where, fix=finding.fix), finding


def _same(finding: Judged, cause: Cause) -> bool:
    """Whether both report the same problem. Findings of rules in BY_NAME must name the cause's object."""
    named = _QUOTED.search(finding.message)
    return finding.rule not in BY_NAME or named is None or named[1] in cause.text


def _judged(findings: list[Judged]) -> Iterator[Cause]:
    paths: dict[tuple[str, str, str, bool], list[str]] = {}
    for finding in sorted(findings, key=lambda finding: (not finding.refuses, finding.importance)):
        paths.setdefault((finding.rule, finding.message, finding.fix, finding.refuses), []).append(finding.path)
    for (rule, message, fix, refuses), fields in paths.items():
        verb = "refuse" if refuses else "warn"
        text = f"{message} (admission would {verb} now)"
        yield Cause(rule, Stage.ADMISSION, text, ", ".join(fields), fix, frozenset({rule}))
