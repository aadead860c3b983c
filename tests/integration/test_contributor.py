"""Adds a rule by the steps in `docs/development.md`."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.rare import rare

# All development dependencies are installed a second time.
pytestmark = [pytest.mark.timeout(1800), rare]
FIRST_BREAK = "# The operator's own checks.\n"
FIRST_LEFT_OUT = "NOT_APPLIED = {\n"
END = '}\n"""A mistake for each rule'
OURS = ("CI", "MAKE", "MFLAGS", "MPIJOB_", "PYTEST", "PYTHON", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Step:
    text: str

    @property
    def file(self) -> str:
        """The file named at the start of the step."""
        return re.findall("`(.+?)`", self.text)[0]

    @property
    def block(self) -> str:
        """The step's code block, without indentation."""
        (shown,) = re.findall(r"^   ```\w+\n(.*?)^   ```$", self.text, re.MULTILINE | re.DOTALL)
        return re.sub(r"^   ", "", shown, flags=re.MULTILINE)

    @property
    def commands(self) -> list[str]:
        return re.findall(r"`((?:make|\.venv/bin/)[^`]*)`", self.text)


def steps(checkout: Path, title: str) -> list[Step]:
    section = (checkout / "docs" / "development.md").read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    numbered = section.partition("\n1. ")[2].partition("\n\nEdit nothing else")[0]
    return [Step(text) for text in re.split(r"\n\d\. ", numbered)]


def typed(checkout: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a new shell. Downloads are cached for the next run."""
    cache = os.environ.get("XDG_CACHE_HOME", Path("~/.cache").expanduser())
    env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    env |= {"PIP_CACHE_DIR": str(Path(cache) / "pip"), "PIP_NO_COMPILE": "1"}
    return subprocess.run(
        ["bash", "-c", line], cwd=checkout, env=env, capture_output=True, text=True, check=False, timeout=1500
    )


def insert(checkout: Path, step: Step, before: str, after: str) -> None:
    text = (checkout / step.file).read_text()
    assert text.count(before) == 1
    (checkout / step.file).write_text(text.replace(before, after))


def test_a_rule_is_added(tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", ROOT, tmp_path / "checkout"], check=True)
    checkout = tmp_path / "checkout"
    rule, tests, mistakes, breaks, selection, finish = steps(checkout, "Add a rule")
    (checkout / rule.file).write_text(rule.block)
    (checkout / tests.file).write_text(tests.block)
    insert(checkout, mistakes, END, mistakes.block + END)
    insert(checkout, breaks, FIRST_BREAK, FIRST_BREAK + breaks.block)
    insert(checkout, selection, FIRST_LEFT_OUT, FIRST_LEFT_OUT + selection.block)
    assert len(finish.commands) == 5
    for line in ["make install", *finish.commands]:
        done = typed(checkout, line)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    explained = typed(checkout, ".venv/bin/mpijob-webhook explain my-rule").stdout
    assert "A failing launcher is started again only a limited number of times." in explained
    changed = typed(checkout, "git diff --name-only").stdout.splitlines()
    assert {"docs/reference/rules.md", "docs/reference/policy.md"} <= set(changed)

    # A test fails for each omitted step.
    typed(checkout, "git checkout docs/reference/rules.md")
    assert "run `make docs`" in typed(checkout, ".venv/bin/pytest -q -n0 tests/unit/test_docs.py -k generated").stdout
    (checkout / tests.file).unlink()
    assert typed(checkout, ".venv/bin/pytest -q -n0 tests/unit/test_house.py -k its_test_file").returncode == 1
