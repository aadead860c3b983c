"""Rounds of a job: it is submitted, refused, changed as told, and submitted again."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from tests.support.mender import advice, places
from tests.support.mender.advice import Edit
from tests.support.mender.places import Json
from tests.support.mender.user import follow
from tests.support.mender.worlds import World
from webhook.cli import job_check
from webhook.cli.files import Manifest
from webhook.cli.job_world import JobWorld

MOST_ROUNDS: Final = 6

_CONTAINERS: Final = re.compile(r'containers ("[^"]*"(?:, "[^"]*")+)')


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing to mend: a cause of the refusal, or a warning by a rule."""

    rule: str
    path: str
    message: str
    fix: str
    denies: bool

    @property
    def same(self) -> tuple[str, str, str]:
        """What is equal where the same thing is wrong in two rounds."""
        return self.rule, self.path, re.sub(r'"[^"]*"|\([^)]*\)|\d+', "", self.message)

    def edits(self, job: Json) -> list[Edit]:
        """What it tells the user to write, for every container that the message names."""
        told = advice.read(self.path, self.fix)
        named = _CONTAINERS.search(self.message)
        if not named:
            return told
        return [each for edit in told for each in _everywhere(job, edit, named[1])]

    def __str__(self) -> str:
        return f"[{self.rule}] {self.path}: {self.message}. {self.fix}"


@dataclass(frozen=True, slots=True)
class Round:
    """The job as it was submitted, what was said to it, and what is done about it."""

    job: Json = field(repr=False)
    edits: Mapping[Cause, list[Edit]]
    """What each of the causes tells the user to write."""

    @property
    def causes(self) -> Sequence[Cause]:
        """Everything that is said."""
        return tuple(self.edits)

    @property
    def followed(self) -> Sequence[Cause]:
        """What the user does something about: first what refuses the job, and once it is admitted the warnings."""
        stated = [cause for cause, edits in self.edits.items() if edits]
        return [cause for cause in stated if cause.denies] or stated


def mend(job: Json, world: World) -> list[Round]:
    """Every round, until nothing is told any more that could be followed."""
    rounds: list[Round] = []
    for _ in range(MOST_ROUNDS):
        last = Round(job, {cause: cause.edits(job) for cause in ask(job, world)})
        rounds.append(last)
        if not last.followed:
            break
        job = follow(job, [edit for cause in last.followed for edit in last.edits[cause]])
    return rounds


def ask(job: Json, world: World) -> Iterator[Cause]:
    """What the webhook says of the job: it mutates, then it validates, as for the API server."""
    verdict = job_check.check(
        Manifest("job.yaml", msgspec.json.decode(msgspec.json.encode(job))),
        JobWorld(world.cluster, schema=world.schema, instead=world.policy),
        namespace=world.namespace,
    )
    for denies, findings in ((True, verdict.validation.denied), (False, verdict.validation.warned)):
        for finding in findings:
            violation = finding.violation
            yield Cause(finding.rule, violation.path, violation.message, violation.fix, denies)


def faults(rounds: list[Round]) -> Iterator[str]:
    """What is wrong with the advice of the first round: it was of no use, led to a refusal, or went round in circles.

    New warnings are no fault: they may be about the very value that was asked for.
    """
    first = rounds[0]
    if len(rounds) > 1:
        told = {cause.same for cause in first.causes}
        useless = {cause.same for cause in first.followed}
        for cause in rounds[1].causes:
            if cause.same in useless:
                yield f"still there: {cause}"
            elif cause.denies and cause.same not in told:
                yield f"new: {cause}"
    if rounds[-1].followed:
        yield f"no end: {rounds[-1].followed[0]}"


def _everywhere(job: Json, edit: Edit, names: str) -> Iterator[Edit]:
    """The edit in each container of the pod that is named."""
    kinds = {"containers", "initContainers"} & set(edit.path)
    if not kinds:
        yield edit
        return
    at = edit.path.index(kinds.pop())
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(places.get(job, (*edit.path[:at], kind)) or ()):
            if f'"{container.get("name")}"' in names:
                yield Edit(edit.verb, (*edit.path[:at], kind, str(index), *edit.path[at + 2 :]), edit.value)
