"""Writes the licences of the service's packages: `python -m tools.release.licences docs/reference/licences.md`."""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path
from typing import Final

from tools.release import page_packages

LOCK: Final = Path(__file__).parents[2] / "requirements" / "run.txt"
ALLOWED: Final = frozenset({"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"})
"""Licences that may be distributed with the image, which is Apache-2.0. Packages under MPL-2.0 are unchanged."""
# SPDX expressions (https://spdx.org/licenses) for other texts that packages use.
_SAID: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "MIT License": "MIT",
}


def locked() -> list[str]:
    """The names of the packages in the lock file for the service."""
    return re.findall(r"^([\w.-]+)==", LOCK.read_text(encoding="utf-8"), re.MULTILINE)


def licence(found: PackageMetadata) -> str:
    """The SPDX expression of a package, or its licence text; empty if there is none."""
    said = next((found[field] for field in ("License-Expression", "License") if field in found), "")
    return _SAID.get(said, said)


def names(expression: str) -> set[str]:
    return set(re.split(r" AND | OR |[()]", expression)) - {""}


def table() -> Iterator[str]:
    yield "<!-- Written by `make docs` out of what is installed: changes here are lost. -->"
    yield "# Licences"
    yield ""
    yield "What the image has beside Debian's own packages. This project itself is under Apache-2.0."
    yield ""
    yield "| Package | Licence |"
    yield "| --- | --- |"
    for name in locked():
        try:
            yield f"| {name} | {licence(metadata(name))} |"
        except PackageNotFoundError:  # a package for a different Python version or platform
            continue
    yield ""
    yield "The page of `mpijob-webhook playground`, where it is built, has these packages of npm in it:"
    yield ""
    yield "| Package | Licence |"
    yield "| --- | --- |"
    yield from (f"| {package.name} | {package.licence} |" for package in page_packages.packages())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.release.licences FILE")
    Path(sys.argv[1]).write_text("\n".join(table()) + "\n", encoding="utf-8")
