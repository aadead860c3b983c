"""This repository's hook, which the real pre-commit installs and runs in a user's repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.jobs import GOOD, changed
from tests.support.paths import ROOT
from tests.support.rare import rare
from webhook.api import yaml

pytestmark = [rare, pytest.mark.timeout(900)]


def test_hook_accepts_valid_jobs_and_rejects_invalid_jobs(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    cache = os.environ.get("XDG_CACHE_HOME", Path("~/.cache").expanduser())
    env = {
        **os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home"), "PIP_CACHE_DIR": str(Path(cache) / "pip"),
        "GIT_CONFIG_GLOBAL": os.devnull, "PIP_NO_COMPILE": "1",
    }  # fmt: skip

    def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=600)

    def made(folder: Path) -> None:
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
            who = ["-c", "user.name=tests", "-c", "user.email=tests@example.com"]
            done = run("git", *who, *arguments, folder=folder)
            assert done.returncode == 0, done.stderr

    # The copy contains uncommitted changes.
    shutil.copytree(
        ROOT, ours, ignore=shutil.ignore_patterns(".git", ".venv", ".*cache", "__pycache__", "tests", "docs")
    )
    made(ours)
    theirs.mkdir()
    (theirs / "good.yaml").write_text(yaml.dump(GOOD))
    (theirs / "package.json").write_text("{}")
    at = run("git", "rev-parse", "HEAD", folder=ours).stdout.strip()
    repos = [{"repo": str(ours), "rev": at, "hooks": [{"id": "mpijob-check"}]}]
    (theirs / ".pre-commit-config.yaml").write_text(yaml.dump({"repos": repos}))
    made(theirs)
    hook = [str(Path(sys.executable).with_name("pre-commit")), "run", "--all-files"]
    passed = run(*hook, folder=theirs)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "check MPIJobs" in passed.stdout
    bad = yaml.dump(changed({"Worker.replicas": 1}))
    for name in ("bad.yaml", "--policy=bad.yaml"):
        (theirs / name).write_text(bad)
    made(theirs)
    refused = run(*hook, folder=theirs)
    assert refused.returncode == 1
    assert "\nbad.yaml: team-a/train: rejected" in refused.stdout
    assert "\n--policy=bad.yaml: team-a/train: rejected" in refused.stdout
