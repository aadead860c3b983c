"""The report on the fields of a converted job."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Outcome(Enum):
    """The kinds of notes, in the words of the report."""

    MAPPED = "mapped"
    CHANGED = "changed in meaning"
    LOST = "lost"
    TO_DO = "to be done"


@dataclass(frozen=True, slots=True)
class Note:
    """The outcome for one field."""

    outcome: Outcome
    field: str
    """Its path in the old job."""
    text: str


class ConversionError(ValueError):
    """A job cannot be converted; the message starts with the field that is the reason."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")


@dataclass(slots=True)
class Report:
    """All notes on a job."""

    notes: dict[Note, None] = field(default_factory=dict)
    """In their order, without duplicates: one template of v1alpha1 becomes two."""

    def mapped(self, field: str, text: str) -> None:
        """The field has the same meaning, in another place or form."""
        self.notes[Note(Outcome.MAPPED, field, text)] = None

    def changed(self, field: str, text: str) -> None:
        """The field or its default has another effect than before."""
        self.notes[Note(Outcome.CHANGED, field, text)] = None

    def lost(self, field: str, text: str) -> None:
        """The field is dropped."""
        self.notes[Note(Outcome.LOST, field, text)] = None

    def to_do(self, field: str, text: str) -> None:
        """The user has to do something about the field."""
        self.notes[Note(Outcome.TO_DO, field, text)] = None

    def of(self, outcome: Outcome) -> Iterator[Note]:
        return (note for note in self.notes if note.outcome is outcome)


@dataclass(frozen=True, slots=True)
class Converted:
    """A job of v2beta1, and the report on the fields of the original."""

    document: dict[str, Any]
    report: Report
