"""Inputs that are kept: one file each, named after its content, in the folder of its target."""

import hashlib
from pathlib import Path

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
