"""`playground --open` hides the page's address from other users of the machine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from webhook.parts.playground.command import opened

# The program with which a desktop opens files. It saves its arguments and a copy of the file.
OPENER = """#!/bin/sh
printf '%s\\n' "$@" > "$HOME/arguments"
cp --preserve=mode "$1" "$HOME/shown.html"
: > "$HOME/done"
"""
URL = "http://127.0.0.1:7/a-secret/"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of a user with a desktop."""
    folder = tmp_path / "home"
    (tmp_path / "bin").mkdir()
    folder.mkdir()
    (tmp_path / "bin" / "xdg-open").write_text(OPENER)
    (tmp_path / "bin" / "xdg-open").chmod(0o755)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return folder


def test_browser_gets_a_file_that_only_the_user_may_read(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.mkdir()
    for name in ("index.html", "loopback.js"):
        (page / name).touch()
    os.mkfifo(home / "done")
    command = [sys.executable, "-m", "webhook", "playground", "--open", "--page", str(page)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split(" ")[0]
        (home / "done").read_text()
        (file,) = (home / "arguments").read_text().splitlines()
        assert url not in file
        assert Path(file).parent == home
        assert f'content="0; url={url}"' in (home / "shown.html").read_text()
        assert (home / "shown.html").stat().st_mode & 0o777 == 0o600
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert not Path(file).exists()


def test_missing_browser_is_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    with opened(URL):
        pass
    assert capsys.readouterr().err == "no browser was found: open the address yourself\n"
    assert [*home.iterdir()] == []
