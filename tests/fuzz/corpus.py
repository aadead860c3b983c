"""The stored inputs of fuzzing: a file for each input, named after its content, in the folder of its target."""

import hashlib
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
MOST_BYTES = 4096


def inputs(target: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((FOLDER / target).iterdir())]


def keep(target: str, data: bytes) -> Path:
    # libFuzzer also names its files by SHA-1.
    path = FOLDER / target / hashlib.sha1(data, usedforsecurity=False).hexdigest()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
