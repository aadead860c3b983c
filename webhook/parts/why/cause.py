"""A cause: one sentence about why a job does not run, its source, and the fix."""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from webhook.parts.why.limits import MAX_CAUSE_CHARACTERS


class Stage(IntEnum):
    """The stages of a job in order: the first that blocks it is the cause of all later problems."""

    DELETION = 1
    OPERATOR = 2
    """The operator does not look at it, or refuses it."""
    QUEUE = 3
    """Suspended, by its user or by Kueue."""
    CREATION = 4
    """Pods are not created."""
    SCHEDULING = 5
    """Pods have no node."""
    START = 6
    """Containers do not start, or not for long."""
    RUN = 7
    """The launcher fails."""
    END = 8
    """Its time is over."""
    ADMISSION = 9
    """Not reported by the cluster: the verdict of admission on the job now."""


class Cause(msgspec.Struct, frozen=True):
    """Why a job does not run."""

    id: str
    """For programs; the rule's id if only admission reports it."""
    stage: Stage
    text: str
    """The problem, in a sentence without its full stop."""
    where: str
    """The object, and what of it says so."""
    fix: str
    """The fix."""
    rules: frozenset[str] = frozenset()
    """The rules that report the same fault."""
    passes: bool = False
    """It may be over without anybody doing anything."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        fields = asdict(self) | {"stage": self.stage.name.lower()}
        del fields["rules"]
        return fields


def merged(found: Iterable[tuple[str, Cause]]) -> Iterator[Cause]:
    """Each cause once, with the names of the pods that have it."""
    same: dict[tuple[str, str], list[tuple[str, Cause]]] = {}
    for pod, cause in found:
        same.setdefault((cause.id, cause.text), []).append((pod, cause))
    for pods in same.values():
        yield replace(pods[0][1], text=f"{listed([pod for pod, _ in pods])}: {pods[0][1].text}")


def listed(names: Sequence[str]) -> str:
    """`train-worker-0`, `train-worker-0 and 3 more`."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def cut(text: str, longest: int = MAX_CAUSE_CHARACTERS) -> str:
    """The start of a component's message, on one line, without the full stop."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
