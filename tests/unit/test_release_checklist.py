"""Each check of the release checklist, with a checkout that passes and a checkout that fails."""

import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.release import checklist

VERSION = "1.2.3"
BASE = """\
images: [{{name: mpijob-webhook, newTag: {tag}}}]
labels: [{{pairs: {{app.kubernetes.io/version: {label}}}}}]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {VERSION} - 2026-01-31\n\n## 1.2.2 - 2026-01-01\n")
    (tmp_path / "manifests" / "base").mkdir(parents=True)
    (tmp_path / "manifests/base/kustomization.yaml").write_text(BASE.format(tag=VERSION, label=VERSION))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


@pytest.mark.parametrize("check", [checklist.committed, checklist.untagged, checklist.described, checklist.deployed])
def test_clean_checkout_passes_the_check(check: checklist.Check, checkout: Path) -> None:
    assert check(checkout, VERSION) == ""


def test_uncommitted_file_is_reported(checkout: Path) -> None:
    (checkout / "new").touch()
    assert checklist.committed(checkout, VERSION) == "commit or remove what `git status` lists, 1 in all: ?? new"


def test_released_version_is_reported(checkout: Path) -> None:
    git(checkout, "tag", f"v{VERSION}")
    assert checklist.untagged(checkout, VERSION) == "v1.2.3 is a tag already: raise the version"


@pytest.mark.parametrize(
    "title", ["Unreleased", f"Unreleased ({VERSION})", "1.2.30 - 2026-01-31", VERSION, "1x2x3 - 2026-01-31"]
)
def test_changelog_of_a_different_version_is_reported(title: str, checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text(f"## {title}\n")
    expected = f"it begins with '{title}': rename it to '1.2.3 - YEAR-MONTH-DAY'"
    assert checklist.described(checkout, VERSION) == expected


@pytest.mark.parametrize(("tag", "label"), [("1.2.2", VERSION), (VERSION, "1.2.2")])
def test_manifests_of_a_different_version_are_reported(tag: str, label: str, checkout: Path) -> None:
    (checkout / "manifests/base/kustomization.yaml").write_text(BASE.format(tag=tag, label=label))
    assert checklist.deployed(checkout, VERSION).endswith("is 1.2.2: write 1.2.3")


def test_missing_page_is_reported(checkout: Path) -> None:
    assert checklist.paged(checkout, VERSION).endswith("run `make page`")
    page = checkout / "webhook/parts/playground/page/index.html"
    page.parent.mkdir(parents=True)
    page.touch()
    assert checklist.paged(checkout, VERSION) == ""


def test_stale_generated_files_are_reported(checkout: Path) -> None:
    assert checklist.generated(ROOT, VERSION) == ""
    assert checklist.generated(checkout, VERSION).endswith("is not what the code says: run `make docs`")


def test_output_has_a_line_for_each_check(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {"tag": checklist.untagged, "CHANGELOG.md": checklist.described}
    monkeypatch.setattr(checklist, "CHECKS", chosen)
    assert checklist.main(checkout, VERSION) == 0
    assert checklist.main(checkout, "1.2.4") == 1
    assert capsys.readouterr().out.splitlines() == [
        "tag: ok",
        "CHANGELOG.md: ok",
        "tag: ok",
        "CHANGELOG.md: it begins with '1.2.3 - 2026-01-31': rename it to '1.2.4 - YEAR-MONTH-DAY'",
    ]
