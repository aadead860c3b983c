"""The start of the program."""

import os
import subprocess
import sys


def test_unnamed_packages_are_not_searched_for_plugins() -> None:
    """pydantic would read the metadata of every package for them, in each start of the command."""
    read = "import webhook.kit.settings; from pydantic.plugin import _loader; print(_loader._plugins)"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYDANTIC_")}
    shown = subprocess.run([sys.executable, "-c", read], env=clean, capture_output=True, text=True, check=True)
    assert shown.stdout == "None\n"
