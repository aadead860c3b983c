"""The report on the fields of a converted job."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Outcome(Enum):
    MAPPED = "mapped"
    CHANGED = "changed in meaning"
    LOST = "lost"
    TO_DO = "to be done"


@dataclass(frozen=True, slots=True)
class Note:
    outcome: Outcome
    field: str
    """The path in the old job."""
    text: str


class ConversionError(ValueError):
    """A job cannot be converted. The message starts with the path of a field."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")


@dataclass(slots=True)
class Report:
    notes: dict[Note, None] = field(default_factory=dict)
    """An ordered set. The single template of v1alpha1 becomes two, so a converter may add the same note twice."""

    def mapped(self, field: str, text: str) -> None:
        """The field has the same meaning in a different place or form."""
        self.notes[Note(Outcome.MAPPED, field, text)] = None

    def changed(self, field: str, text: str) -> None:
        """The field or its default has a different effect in the new job."""
        self.notes[Note(Outcome.CHANGED, field, text)] = None

    def lost(self, field: str, text: str) -> None:
        self.notes[Note(Outcome.LOST, field, text)] = None

    def to_do(self, field: str, text: str) -> None:
        self.notes[Note(Outcome.TO_DO, field, text)] = None

    def of(self, outcome: Outcome) -> Iterator[Note]:
        return (note for note in self.notes if note.outcome is outcome)


@dataclass(frozen=True, slots=True)
class Converted:
    document: dict[str, Any]
    report: Report
