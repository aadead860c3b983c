"""What became of the fields of a job that was converted."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Outcome(Enum):
    """What a note tells, in the words of the report."""

    MAPPED = "mapped"
    CHANGED = "changed in meaning"
    LOST = "lost"
    TO_DO = "to be done"


@dataclass(frozen=True, slots=True)
class Note:
    """What became of one field."""

    outcome: Outcome
    field: str
    """Where it was in the old job."""
    text: str


class ConversionError(ValueError):
    """A job cannot be converted; the message starts with the field that is the reason."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")


@dataclass(slots=True)
class Report:
    """All notes on a job."""

    notes: dict[Note, None] = field(default_factory=dict)
    """In their order, each once: one template of v1alpha1 becomes two."""

    def mapped(self, field: str, text: str) -> None:
        """It means what it meant, in another place or form."""
        self.notes[Note(Outcome.MAPPED, field, text)] = None

    def changed(self, field: str, text: str) -> None:
        """It is there, or its default is, and does something else than before."""
        self.notes[Note(Outcome.CHANGED, field, text)] = None

    def lost(self, field: str, text: str) -> None:
        """It is no longer there."""
        self.notes[Note(Outcome.LOST, field, text)] = None

    def to_do(self, field: str, text: str) -> None:
        """It is for the user to do."""
        self.notes[Note(Outcome.TO_DO, field, text)] = None

    def of(self, outcome: Outcome) -> Iterator[Note]:
        """Those that tell this."""
        return (note for note in self.notes if note.outcome is outcome)


@dataclass(frozen=True, slots=True)
class Converted:
    """A job of v2beta1, and what became of the fields of the one that it was made of."""

    document: dict[str, Any]
    report: Report
