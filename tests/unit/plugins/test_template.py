"""The tests build the template in examples/plugin as a wheel, unpack the wheel, and run commands with the plug-in."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.jobs import GOOD
from tests.support.paths import ROOT
from tests.support.policies import HEADER

TEMPLATE = ROOT / "examples" / "plugin"
NAME = "example-mpijob-plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the unpacked wheel."""
    built, folder = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(build, cwd=TEMPLATE, check=True, capture_output=True)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(
    site: Path, *arguments: str, status: int = 0, module: str = "webhook", cwd: Path = ROOT, named: str = NAME
) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site), "MPIJOB_WEBHOOK_PLUGINS": named}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_plugins_command_lists_the_template(site: Path) -> None:
    plugin = {
        "name": NAME,
        "version": "0.1.0",
        "state": "in force",
        "rules": ["example-cost-centre"],
        "injections": ["example-cost-centre-label"],
        "faults": [],
    }
    assert json.loads(run(site, "plugins", "-o", "json")) == {"plugins": [plugin]}
    assert json.loads(run(site, "plugins", "-o", "json", named="")) == {"plugins": [{**plugin, "state": "unused"}]}
    assert "(plug-in example-mpijob-plugin)" in run(site, "rules")


def test_check_and_policies_use_the_template(site: Path, tmp_path: Path) -> None:
    job, policy = tmp_path / "job.json", tmp_path / "policy.yaml"
    job.write_text(json.dumps(GOOD))
    policy.write_text(f"{HEADER}rules: {{example-cost-centre: {{allowed: ['4711']}}}}\n")
    checked = run(site, "check", "--policy", str(policy), str(job), status=1)
    assert "nobody pays for this job [example-cost-centre]" in checked
    run(site, "policy", "validate", str(policy))
    assert "example-cost-centre" in run(site, "policy", "validate", str(policy), status=1, named="")


def test_reference_includes_the_template(site: Path, tmp_path: Path) -> None:
    run(site, str(tmp_path), module="tools.reference")
    rules = (tmp_path / "reference" / "rules.md").read_text()
    assert "## example-cost-centre\n" in rules
    assert "Since 0.1 of the plug-in example-mpijob-plugin." in rules


def test_tests_of_the_template_pass(site: Path) -> None:
    run(site, "-q", "-p", "no:cacheprovider", "-c", os.devnull, "tests", module="pytest", cwd=TEMPLATE)
