"""Writes the source commit into sdists and wheels."""

import json
import os
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "webhook/build.json"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls this hook for each sdist and wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add `webhook/build.json`. A wheel that is built from an sdist already has this file."""
        source_commit = commit(Path(self.root))
        if version == "editable" or not source_commit or Path(self.root, FILE).exists():
            return
        path = Path(mkdtemp(), "build.json")
        path.write_text(json.dumps({"commit": source_commit}) + "\n", encoding="utf-8")
        build_data["force_include"][str(path)] = FILE


def commit(root: Path) -> str:
    """The environment variable SOURCE_COMMIT, or the commit of the Git checkout in `root`; empty if neither exists.

    The checkout's commit ends with `-dirty` if files were changed.
    """
    if source_commit := os.environ.get("SOURCE_COMMIT"):
        return source_commit
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
