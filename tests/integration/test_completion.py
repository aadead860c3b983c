"""Completion in real zsh and fish. A shell that is not installed comes from Debian's package."""

import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import debian
from tests.support.rare import FULL

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(not FULL, reason="downloads packages: run `make test-long`")]
BIN = Path(sys.executable).parent
LINES = [
    ("mpijob-webhook comp", "mpijob-webhook completion "),
    ("mpijob-webhook check --fail-on w", "mpijob-webhook check --fail-on warn "),
    ("mpijob-webhook explain worker-c", "mpijob-webhook explain worker-count "),
    ("mpijob-webhook check tr", "mpijob-webhook check train.yaml "),
]
# The setup from the command's help, and a key binding that writes the completed line to the file `told`.
ZSHRC = """
autoload -Uz compinit && compinit -u
source <(mpijob-webhook completion zsh)
tell() { print -r -- "$BUFFER" > told }
zle -N tell
bindkey '^X' tell
zle-line-init() { print -r -- ready > told }
zle -N zle-line-init
"""
# For a zsh that is unpacked to a folder, not installed.
UNPACKED = """
module_path=({root}/usr/lib/*/zsh/*(/))
fpath=({root}/usr/share/zsh/functions/**/*(/))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The shell's working directory, with a file whose name is completed."""
    (tmp_path / "train.yaml").touch()
    return tmp_path


def environment(program: Path, folder: Path) -> dict[str, str]:
    given = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder), "ZDOTDIR": str(folder), "TERM": "vt100"}
    return debian.environment(program) | given


@pytest.mark.parametrize(("typed", "line"), LINES)
def test_completion_in_zsh(folder: Path, typed: str, line: str) -> None:
    zsh = debian.program("zsh", package="zsh", dependencies=True)
    root = debian.unpacked(zsh)
    (folder / ".zshenv").write_text(UNPACKED.format(root=root) if root else "")
    (folder / ".zshrc").write_text(ZSHRC)
    os.mkfifo(folder / "told")
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [zsh, "-i"], cwd=folder, env=environment(zsh, folder), stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True,
        ) as shell:  # fmt: skip
            try:
                assert (folder / "told").read_text() == "ready\n"
                os.write(ours, f"{typed}\t\x18".encode())
                assert (folder / "told").read_text() == f"{line}\n"
            finally:
                shell.kill()
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(("typed", "line"), LINES)
def test_completion_in_fish(folder: Path, typed: str, line: str) -> None:
    fish = debian.program("fish", package="fish", dependencies=True)
    functions = fish.parents[1] / "share" / "fish" / "functions"
    script = f"""
    set fish_function_path $fish_function_path {shlex.quote(str(functions))}
    mpijob-webhook completion fish | source
    complete --do-complete {shlex.quote(typed)}
    """
    done = subprocess.run(
        [fish, "--no-config", "-c", script],
        cwd=folder, env=environment(fish, folder), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    offered = [each.split("\t")[0] for each in done.stdout.splitlines()]
    assert offered == [line.rsplit(maxsplit=1)[-1]], done.stderr
