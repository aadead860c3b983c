"""Writes the commit into sdists and wheels that are built from it, if it is known."""

import json
import os
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "webhook/build.json"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling for each sdist and wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file, unless it came with the sdist that a wheel is made of."""
        known = commit(Path(self.root))
        if version == "editable" or not known or Path(self.root, FILE).exists():
            return
        written = Path(mkdtemp(), "build.json")
        written.write_text(json.dumps({"commit": known}) + "\n", encoding="utf-8")
        build_data["force_include"][str(written)] = FILE


def commit(root: Path) -> str:
    """The commit in SOURCE_COMMIT, else the commit of the checkout whose top folder is `root`; "" if there is neither.

    The checkout's commit ends with `-dirty` if files were changed.
    """
    if told := os.environ.get("SOURCE_COMMIT"):
        return told
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
