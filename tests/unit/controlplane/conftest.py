"""A fake `go` first on PATH, for the tests that build."""

from pathlib import Path

import pytest

from tests.support.fake_go import FakeGo, fake_go


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """A fake Go 1.26, first on PATH, and an empty cache."""
    made = fake_go(tmp_path / "fake")
    monkeypatch.setenv("PATH", str(made.home), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return made
