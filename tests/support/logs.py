"""A log that stores its lines."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Log:
    """Stores lines as (level, event, fields)."""

    lines: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def __getattr__(self, level: str) -> Callable[..., None]:
        return lambda event, **fields: self.lines.append((level, event, fields))

    def events(self, event: str) -> list[dict[str, Any]]:
        return [fields for _, name, fields in self.lines if name == event]

    @property
    def told(self) -> list[str]:
        return [event for _, event, _ in self.lines]
