"""The injections that a job skips, by its annotation `training.openshift.io/skip: topology,rdma`."""

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

# Shortest id that is searched for in other names: shorter ones are part of many.
SHORTEST = 3


class Kind(NamedTuple):
    """What an annotation names: injections or rules."""

    article: str
    noun: str
    known: Collection[str]
    annotation: str


INJECTIONS: Final = Kind("an", "injection", injections.REGISTRY, annotations.SKIP)
RULES: Final = Kind("a", "rule", rules.REGISTRY, exemptions.ASKED)


def asked(job: MPIJob) -> tuple[str, ...]:
    """The ids in the job's annotation, without duplicates."""
    text = job.annotations.get(annotations.SKIP)
    if not text:
        return ()
    parts = text[:MAX_SKIP_CHARACTERS].split(",")
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def honoured(job: MPIJob, policy: Policy) -> frozenset[str]:
    """The injections that the job skips: those that it names, except those that no job can skip."""
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
    """Cautions about entries that are not a `kind`. Some may be an `other`, which has an annotation of its own."""
    if others := [entry for entry in entries if entry in other.known]:
        told = f"no {kind.noun}, but {other.article} {other.noun}: {_shown(others)}"
        yield Caution(f"{told}; {other.annotation} is for {other.noun}s")
    if unknown := [entry for entry in entries if entry not in others]:
        yield Caution(f"no {kind.noun} is called {_unknown_names(unknown, kind.known)}")


def _unknown_names(unknown: Sequence[str], known: Iterable[str]) -> str:
    """The first few names, each with the likely intended one. If there is none, the command that lists the names."""
    known = tuple(known)
    near = {
        entry: closest_name(entry, known) if len(entry) >= SHORTEST else None for entry in unknown[:MAX_UNKNOWN_SHOWN]
    }
    shown = [
        f"{annotations.quoted(entry)}, but {name}" if name else annotations.quoted(entry)
        for entry, name in near.items()
    ]
    more = f" and {len(unknown) - MAX_UNKNOWN_SHOWN} more" if len(unknown) > MAX_UNKNOWN_SHOWN else ""
    return f"{'; '.join(shown)}{more}" + ("" if all(near.values()) else f"; `{PROGRAM} rules` lists them")


def _shown(ids: Sequence[str]) -> str:
    quoted = ", ".join(annotations.quoted(entry) for entry in ids[:MAX_UNKNOWN_SHOWN])
    return f"{quoted} and {len(ids) - MAX_UNKNOWN_SHOWN} more" if len(ids) > MAX_UNKNOWN_SHOWN else quoted
