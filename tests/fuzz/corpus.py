"""Inputs that are kept: one file each, named after its content, in the folder of its target."""

import hashlib
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

FOLDER = Path(__file__).parent / "corpus"
MOST_BYTES = 4096


def name_of(data: bytes) -> str:
    """As libFuzzer names its files."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def inputs(target: str) -> list[bytes]:
    """Those that are kept for a target, in the order of their names."""
    return [path.read_bytes() for path in sorted((FOLDER / target).iterdir())]


def keep(target: str, data: bytes) -> Path:
    """Keep an input."""
    path = FOLDER / target / name_of(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def grow(target: str, run: Callable[[bytes], object], found: Iterable[bytes]) -> int:
    """Keep those of the inputs found that reach a line of `webhook` that no other reaches; how many."""
    known: set[tuple[str, int]] = set()
    for data in inputs(target):
        known |= lines_of(run, data)
    kept = 0
    for data in sorted(found, key=len):
        reached = lines_of(run, data) if len(data) <= MOST_BYTES else set()
        if reached - known:
            known |= reached
            keep(target, data)
            kept += 1
    return kept


def lines_of(run: Callable[[bytes], object], data: bytes) -> set[tuple[str, int]]:
    """The lines of `webhook` that an input reaches, whatever becomes of it."""
    reached: set[tuple[str, int]] = set()

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if "/webhook/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        with suppress(Exception):
            run(data)
    finally:
        sys.settrace(before)
    return reached
