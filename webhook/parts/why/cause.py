"""The causes why a job does not run. Each has the object that reports the problem, and the fix."""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from webhook.parts.why.limits import MAX_CAUSE_CHARACTERS


class Stage(IntEnum):
    """The stages of a job. A problem in one stage can cause problems in later stages."""

    DELETION = 1
    OPERATOR = 2
    QUEUE = 3
    CREATION = 4
    SCHEDULING = 5
    START = 6
    RUN = 7
    END = 8
    ADMISSION = 9
    """The rules would now reject the job or warn about it."""


class Cause(msgspec.Struct, frozen=True):
    """A reason why a job does not run."""

    id: str
    """A fixed id for programs, or the rule's id for a cause from admission."""
    stage: Stage
    text: str
    """A sentence without a full stop."""
    where: str
    """The object that reports the problem, and its field or container."""
    fix: str
    rules: frozenset[str] = frozenset()
    """Rules that report the same problem."""
    passes: bool = False
    """Whether the problem may end without any action."""

    def as_json(self) -> dict[str, Any]:
        fields = asdict(self) | {"stage": self.stage.name.lower()}
        del fields["rules"]
        return fields


def merged(causes_by_pod: Iterable[tuple[str, Cause]]) -> Iterator[Cause]:
    """Merges equal causes of several pods."""
    groups: dict[tuple[str, str], list[tuple[str, Cause]]] = {}
    for pod, cause in causes_by_pod:
        groups.setdefault((cause.id, cause.text), []).append((pod, cause))
    for group in groups.values():
        yield replace(group[0][1], text=f"{listed([pod for pod, _ in group])}: {group[0][1].text}")


def listed(names: Sequence[str]) -> str:
    """A text such as `train-worker-0 and 3 more`."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def cut(text: str, longest: int = MAX_CAUSE_CHARACTERS) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
