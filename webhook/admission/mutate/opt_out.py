"""The injections that a job skips with its annotation `training.openshift.io/skip: topology,rdma`."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from webhook import PROGRAM, injections, rules
from webhook.admission.limits import MAX_SKIP_CHARACTERS, MAX_UNKNOWN_SHOWN
from webhook.api import annotations
from webhook.api.mpijob import MPIJob
from webhook.api.names import closest_name
from webhook.injections import Caution
from webhook.kit.settings import Action
from webhook.policy import exemptions
from webhook.policy.in_force import Policy

# The shortest name for which similar names are suggested: one or two characters are part of many names.
SHORTEST = 3


class Kind(NamedTuple):
    """The kind of ids in an annotation: injections or rules."""

    article: str
    noun: str
    known: Collection[str]
    annotation: str


INJECTIONS: Final = Kind("an", "injection", injections.REGISTRY, annotations.SKIP)
RULES: Final = Kind("a", "rule", rules.REGISTRY, exemptions.EXEMPT)


def asked(job: MPIJob) -> tuple[str, ...]:
    """The ids in the annotation, without duplicates."""
    text = job.annotations.get(annotations.SKIP)
    if not text:
        return ()
    parts = text[:MAX_SKIP_CHARACTERS].split(",")
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def honoured(job: MPIJob, policy: Policy) -> frozenset[str]:
    """The injections in the annotation, except injections that cannot be skipped."""
    ids = asked(job)
    return frozenset(ids).difference(_kept(policy)) if ids else frozenset()


def cautions(job: MPIJob, policy: Policy) -> Iterator[Caution]:
    """Warnings about entries of the annotation that have no effect."""
    ids = asked(job)
    if not ids:
        return
    yield from misplaced([entry for entry in ids if entry not in INJECTIONS.known], INJECTIONS, RULES)
    kept = _kept(policy)
    if refused := [entry for entry in ids if entry in kept]:
        yield Caution(f"{_shown(refused)} cannot be skipped")


def _kept(policy: Policy) -> frozenset[str]:
    return frozenset(
        injection.id
        for injection, settings in policy.injections
        if injection.unskippable or settings.required is not Action.OFF
    )


def misplaced(entries: Sequence[str], kind: Kind, other: Kind) -> Iterator[Caution]:
    """Cautions about entries that are not ids of `kind`. An id of `other` belongs in the annotation of `other`."""
    if of_other := [entry for entry in entries if entry in other.known]:
        what = f"is {other.article} {other.noun}" if len(of_other) == 1 else f"are {other.noun}s"
        yield Caution(f"{_shown(of_other)} {what}; use the annotation {other.annotation}")
    if unknown := [entry for entry in entries if entry not in of_other]:
        yield Caution(f"no {kind.noun} is called {_unknown(unknown, kind.known)}")


def _unknown(names: Sequence[str], known: Iterable[str]) -> str:
    """The first few names, with similar names or the command that lists all names."""
    known = tuple(known)
    shown = names[:MAX_UNKNOWN_SHOWN]
    near = [closest_name(name, known) if len(name) >= SHORTEST else None for name in shown]
    meant = " and ".join(dict.fromkeys(name for name in near if name))
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    hints = [f"did you mean {meant}?"] if meant else []
    hints += [] if all(near) else [f"`{PROGRAM} rules` lists them"]
    return f"{', '.join(map(annotations.quoted, shown))}{more}; {' '.join(hints)}"


def _shown(ids: Sequence[str]) -> str:
    quoted = ", ".join(annotations.quoted(entry) for entry in ids[:MAX_UNKNOWN_SHOWN])
    return f"{quoted} and {len(ids) - MAX_UNKNOWN_SHOWN} more" if len(ids) > MAX_UNKNOWN_SHOWN else quoted
