"""The start of the command `mpijob-webhook`."""

import os
import subprocess
import sys


def test_pydantic_does_not_search_for_plugins() -> None:
    """The search would read the metadata of all installed packages at each start."""
    read = "import webhook.kit.settings; from pydantic.plugin import _loader; print(_loader._plugins)"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYDANTIC_")}
    shown = subprocess.run([sys.executable, "-c", read], env=clean, capture_output=True, text=True, check=True)
    assert shown.stdout == "None\n"
