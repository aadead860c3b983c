"""Runs the installation in docs/command.md exactly, with a checkout, Python and pipx."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import DOCS, ROOT
from tests.support.rare import rare
from tools.sessions.comparing import same
from tools.sessions.page import Step, parts

pytestmark = [rare, pytest.mark.timeout(900)]


@pytest.mark.parametrize("title", ["With pipx", "From a wheel"])
def test_the_command_is_installed_as_the_page_says(title: str, tmp_path: Path) -> None:
    checkout, home = tmp_path / "checkout", tmp_path / "home"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "tests", "docs")
    shutil.copytree(ROOT, checkout, ignore=left_out)
    home.mkdir()
    own = Path(sys.executable).parent
    env = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{own}:{os.environ['PATH']}",
        "PIPX_DEFAULT_PYTHON": sys.executable,
    }
    # Downloads are cached for the next run, and Python files that run once are not compiled.
    cache = os.environ.get("XDG_CACHE_HOME", Path("~/.cache").expanduser())
    env |= {"PIP_CACHE_DIR": str(Path(cache) / "pip"), "PIP_NO_COMPILE": "1"}
    text = (DOCS / "command.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    steps = [part for part in parts(section) if isinstance(part, Step)]
    assert len(steps) >= 2
    for step in steps:
        done = subprocess.run(
            ["bash", "-c", step.line], cwd=checkout, env=env, capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode == 0, f"{step.line}\n{done.stdout}{done.stderr}"
        assert not step.shown or same(step.shown, done.stdout)
    assert steps[-1].shown.startswith("mpijob-webhook ")
