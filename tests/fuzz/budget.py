"""What a piece of work costs, counted and not timed: lines of Python, and bytes of memory at its peak."""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple


class OverBudget(BaseException):
    """More than allowed. No Exception: what is tested must not swallow it."""


class Budget(NamedTuple):
    """What an input may cost: so much in any case, and so much more for each of its bytes."""

    lines: int
    lines_per_byte: int
    memory: int = 8 * 2**20
    memory_per_byte: int = 2_000

    def spend(self, work: Callable[[bytes], object], data: bytes) -> int:
        """Do the work, and give the lines that it took; OverBudget at once when they are too many."""
        allowed = self.lines + self.lines_per_byte * len(data)
        spent = 0

        def line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal spent
            spent += event == "line"
            if spent > allowed:
                name = frame.f_code.co_qualname
                raise OverBudget(f"more than {allowed:,} lines for {len(data):,} bytes, in {name}")
            return line

        before = sys.gettrace()
        tracemalloc.start()
        sys.settrace(line)
        try:
            work(data)
        finally:
            sys.settrace(before)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        most = self.memory + self.memory_per_byte * len(data)
        if peak > most:
            raise OverBudget(f"{peak:,} bytes of memory for {len(data):,} bytes, more than {most:,}")
        return spent
