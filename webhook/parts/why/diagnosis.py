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

BY_NAME: Final = frozenset({"references", "priority", "child-names", "images"})
_QUOTED: Final = re.compile(r'"([^"]+)"')


class Diagnosis(msgspec.Struct, frozen=True):
    """The state of a job, and its causes."""

    state: State
    told: str
    """The state in a sentence without its subject, with the cause if there is one."""
    causes: tuple[Cause, ...]
    """The first explains the state. Causes from admission come last, the worst first."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        causes = [cause.as_json() for cause in self.causes]
        return {"state": self.state.value, "text": self.told, "causes": causes}


def diagnose(sight: Sight) -> Diagnosis:
    """The diagnosis of a job."""
    now, told = state(sight)
    if now is State.SUCCEEDED:
        return Diagnosis(now, told, ())
    seen = sorted((cause for family in FAMILIES for cause in family.causes(sight)), key=lambda cause: cause.stage)
    mended = [_mend(sight, cause) for cause in seen]
    used = {found for _, found in mended if found is not None}
    judged = list(_judged([each for each in sight.findings if each not in used]))
    causes = (*(cause for cause, _ in mended), *judged)
    if now is State.RUNS and _tried_again(sight, seen):
        return Diagnosis(now, f"{told}; before that {cut(causes[0].text, MAX_LINE_CHARACTERS)}", causes)
    fatal = {each.rule for each in sight.findings if each.importance is Importance.FAILS}
    # If no visible object blocks the job, the verdict of admission is the best guess.
    blocking = next(iter(seen), None) or next((cause for cause in judged if cause.id in fatal), None)
    if blocking is not None and now is State.FAILED:
        told = f"failed: {cut(blocking.text, MAX_LINE_CHARACTERS)}"
    elif blocking is not None and (seen or now is State.STARTS):
        now, told = State.STUCK, f"does not run: {cut(blocking.text, MAX_LINE_CHARACTERS)}"
    return Diagnosis(now, told, causes)


def _tried_again(sight: Sight, seen: list[Cause]) -> bool:
    """Whether the launcher runs now, and its earlier failure is the only problem."""
    newest = loose.text(next(iter(sight.launchers), None), "status", "phase")
    return newest == "Running" and bool(seen) and all(cause.stage is Stage.RUN for cause in seen)


def _mend(sight: Sight, cause: Cause) -> tuple[Cause, Judged | None]:
    """The cause with the field and fix of a rule that reports the same fault, and that finding."""
    found = sight.finding(cause.rules)
    if found is None or not _same(found, cause):
        return cause, None
    where = cause.where if found.path in cause.where else f"{cause.where}; {found.path}"
    return replace(cause, where=where, fix=found.fix), found


def _same(found: Judged, cause: Cause) -> bool:
    """Whether both are about the same object, if the rule looks up objects by name."""
    named = _QUOTED.search(found.message)
    return found.rule not in BY_NAME or named is None or named[1] in cause.text


def _judged(findings: list[Judged]) -> Iterator[Cause]:
    """Causes that only admission reports, rejections first; a finding about several fields is one cause."""
    paths: dict[tuple[str, str, str, bool], list[str]] = {}
    for each in sorted(findings, key=lambda each: (not each.refuses, each.importance)):
        paths.setdefault((each.rule, each.message, each.fix, each.refuses), []).append(each.path)
    for (rule, message, fix, refuses), found in paths.items():
        verb = "refuse" if refuses else "warn"
        text = f"{message} (admission would {verb} now)"
        yield Cause(rule, Stage.ADMISSION, text, ", ".join(found), fix, frozenset({rule}))
