"""The stored inputs of fuzzing: a file for each input, named after its content, in the folder of its target."""

import hashlib
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
MOST_BYTES = 4096


def name_of(data: bytes) -> str:
    """The file name, as libFuzzer names its files."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def inputs(target: str) -> list[bytes]:
    """The stored inputs of a target, sorted by name."""
    return [path.read_bytes() for path in sorted((FOLDER / target).iterdir())]


def keep(target: str, data: bytes) -> Path:
    path = FOLDER / target / name_of(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
