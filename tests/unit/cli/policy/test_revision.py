"""Policies of a git revision, with the real git."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.policies import HEADER
from webhook.cli.main import main
from webhook.cli.policy import revision
from webhook.cli.policy.revision import RevisionError

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """A repository with two commits. The first (tag v1) allows 8 workers. The second allows 4 and adds a file."""
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")

    def run(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", tmp_path, *who, *arguments], capture_output=True, check=True, text=True)
        return done.stdout.strip()

    run("init", "-q", "-b", "main")
    (folder := tmp_path / "policies").mkdir()
    (folder / "base.yaml").write_text(f"{HEADER}rules: {{worker-count: {{max: 8}}}}\n")
    (folder / "notes.md").write_text("not a policy")
    (folder / ".gitattributes").write_text("* export-ignore\n")
    run("add", "-A")
    run("commit", "-qm", "one")
    run("tag", "v1")
    (folder / "base.yaml").write_text(f"{HEADER}rules: {{worker-count: {{max: 4}}}}\n")
    (folder / "more.yaml").write_text(f"{HEADER}rules: {{gpus: {{max: 1}}}}\n")
    run("add", "-A")
    run("commit", "-qm", "two")
    (folder / "base.yaml").write_text("kind: MPIJobPolicy\nbroken")
    return run


def effective(folder: Path, at: str) -> Result:
    arguments = ["policy", "effective", "-n", "team-a", "--policy", str(folder), "--at", at]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.mark.parametrize(("at", "most"), [("v1", 8), ("HEAD", 4), ("HEAD~1", 8), ("main", 4), ("main@{0}", 4)])
def test_policies_are_read_from_the_revision(git: Git, tmp_path: Path, at: str, most: int) -> None:
    shown = effective(tmp_path / "policies", at)
    assert shown.exit_code == 0, shown.output
    (line,) = (line for line in shown.stdout.splitlines() if line.startswith("rules.worker-count.max "))
    assert line.split() == ["rules.worker-count.max", "base", str(most)]


def test_deleted_file_is_read_by_commit_hash(git: Git, tmp_path: Path) -> None:
    for file in (tmp_path / "policies").iterdir():
        file.unlink()
    (tmp_path / "policies").rmdir()
    commit = git("rev-parse", "v1")
    found, at = revision.load([str(tmp_path / "policies" / "base.yaml")], commit[:10])
    assert [(policy.title, policy.document is not None) for policy in found.policies] == [
        (f"{commit[:10]}:policies/base.yaml", True)
    ]
    assert at == commit[:10]


@pytest.mark.parametrize(
    ("at", "fault"),
    [
        ("v9", 'there is no revision "v9" in '),
        ("", 'there is no revision "" in '),
        ("--upload-pack=touch x", 'there is no revision "--upload-pack=touch x" in '),
        ("v1\nv2", "there is no revision "),
        ("v1:policies/base.yaml", 'there is no revision "v1:policies/base.yaml" in '),
    ],
)
def test_unknown_revision_is_rejected(git: Git, tmp_path: Path, at: str, fault: str) -> None:
    with pytest.raises(RevisionError, match=fault):
        revision.load([str(tmp_path / "policies")], at)
    assert not (tmp_path / "x").exists()


def test_faults_have_the_file_names_of_the_repository(git: Git, tmp_path: Path) -> None:
    git("commit", "-qam", "three")
    shown = effective(tmp_path / "policies", "HEAD")
    assert shown.exit_code == 2
    assert "HEAD:policies/base.yaml: " in shown.stderr
    assert "mpijob-policies-" not in shown.output


def test_path_without_policies_in_the_revision_is_rejected(
    git: Git, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    with pytest.raises(RevisionError, match="is not in a git repository that git reads for you"):
        revision.load([str(outside)], "v1")
    with pytest.raises(RevisionError, match=r"no file or folder with policies at v1 \("):
        revision.load([str(tmp_path / "policies" / "more.yaml")], "v1")
    with pytest.raises(RevisionError, match="standard input has no revisions"):
        revision.load(["-"], "v1")


def test_missing_git_is_reported(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RevisionError, match="git is not installed, or not in PATH"):
        revision.load([str(tmp_path / "policies")], "v1")


def test_revision_requires_policy_files() -> None:
    shown = CliRunner().invoke(main, ["policy", "effective", "-n", "a", "--at", "v1"])
    assert (shown.exit_code, shown.stderr) == (2, "error: --at is for the files of --policy: add --policy\n")
