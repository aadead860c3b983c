"""What one part of the benchmarks found, as tables: on the terminal, in JSON, and from there in docs/benchmarks.md."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.bench import report


@dataclass(frozen=True, kw_only=True)
class Table:
    """The headings and the lines below; the first `left` columns are texts, the others numbers."""

    lines: Sequence[Sequence[str]]
    left: int = 1


@dataclass(frozen=True, kw_only=True)
class Section:
    """The tables of a part; `samples` are all its measurements, whatever their form, for programs."""

    tables: Sequence[Table]
    samples: Any = None
    problems: Sequence[str] = field(default_factory=list)
    """Why the figures should not be trusted."""
    failed: bool = False
    """Something answered wrongly: the figures mean nothing."""

    def text(self, *, markdown: bool) -> str:
        """All tables."""
        render = report.markdown if markdown else report.text
        return "\n\n".join(render(table.lines, left=table.left) for table in self.tables)
