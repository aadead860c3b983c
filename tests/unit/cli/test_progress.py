"""How far long work is: on a terminal, and nowhere else."""

import io
import sys

import pytest

from webhook.cli.progress import Progress, counted_off


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    progress = Progress(iter([1.0, 1.05, 1.2]).__next__)
    for text in ("one", "too soon", "two"):
        progress.show(text)
    progress.clear()
    progress.clear()
    assert terminal.getvalue() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"


def test_counted_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert [*counted_off("abc", "jobs", 3)] == ["a", "b", "c"]
    assert terminal.getvalue().startswith("\r\x1b[K1 of 3 jobs")
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_nothing_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())
    assert [*counted_off("abc", "jobs", 3)] == ["a", "b", "c"]
    assert file.getvalue() == ""
