"""Child processes: their readiness, their logs, and that none outlives its starter."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.process import (
    ControlPlaneError,
    Program,
    ends_in_words,
    free_port,
    responds,
    sigterm_interrupts,
    wait_for,
)

STARTER = """
import os, sys, time
from pathlib import Path
from tests.controlplane.process import Program
log = Path(sys.argv[1])
program = Program("sleeper", ["/bin/sh", "-c", "echo up; exec sleep 600"], log=log, env=os.environ)
program.wait_ready(lambda: "up" in log.read_text())
print(program.pid, flush=True)
time.sleep(600)
"""

PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def shell(script: str, log: Path) -> Program:
    return Program("part", ["/bin/sh", "-c", script], log=log, env=os.environ)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "part.log"


def test_ready_when_the_probe_says_so(log: Path) -> None:
    program = shell("echo up; exec sleep 600", log)
    assert program.wait_ready(lambda: "up" in log.read_text())
    program.stop()
    assert not program.running
    assert gone(program.pid)


def test_early_end_shows_the_end_of_the_log(log: Path) -> None:
    program = shell("seq 100; echo no such flag >&2; exit 3", log)
    with pytest.raises(ControlPlaneError) as error:
        program.wait_ready(lambda: False)
    text = str(error.value)
    assert text.startswith("part ended while starting\n--- part (exit code 3)")
    assert text.endswith("100\nno such flag")
    assert "\n1\n" not in text


def test_never_ready_shows_the_log_too(log: Path) -> None:
    program = shell("echo waiting for something; exec sleep 600", log)
    program.wait_ready(lambda: "waiting" in log.read_text())
    with pytest.raises(ControlPlaneError, match=r"waited 0 s for part to be ready(.|\n)*waiting for something"):
        program.wait_ready(lambda: False, timeout=0)
    program.stop()


@pytest.mark.parametrize(
    ("script", "code"),
    [("trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done", 7), ("trap '' TERM; echo up; exec sleep 600", -9)],
    ids=["obeys", "ignores"],
)
def test_grace_before_the_kill(log: Path, script: str, code: int) -> None:
    program = shell(script, log)
    program.wait_ready(lambda: "up" in log.read_text())
    program.stop(grace=30 if code > 0 else 0.1)
    assert f"exit code {code})" in program.tail()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_programs_end_with_their_starter(tmp_path: Path, end: signal.Signals) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as starter:
        assert starter.stdout
        pid = int(starter.stdout.readline())
        assert not gone(pid)
        starter.send_signal(end)
    wait_for("the program to be gone", lambda: gone(pid))


def test_wait_for_gives_the_value_and_retries_what_may_pass() -> None:
    outcomes: Iterator[object] = iter([OSError("refused"), ControlPlaneError("not found"), None, "", "there"])

    def probe() -> str | None:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if isinstance(outcome, str) else None

    assert wait_for("it", probe, every=0) == "there"


def test_wait_for_says_what_was_last_seen() -> None:
    with pytest.raises(TimeoutError, match=r"waited 0 s for the pods; last seen: \[\]\nmore"):
        wait_for("the pods", list, timeout=0, detail=lambda: "more")


def test_wait_for_lets_mistakes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_for("it", lambda: 1 // 0)


def test_free_port_is_free_and_below_the_outgoing_ones() -> None:
    port = free_port()
    assert 20000 <= port < 32768
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))


def test_no_two_processes_take_the_same_ports() -> None:
    """Not even one after the other has asked and before anybody listens."""
    ask = "from tests.controlplane.process import free_port; print(*(free_port() for _ in range(200))); input()"
    others = [subprocess.Popen([sys.executable, "-W", "error", "-c", ask], **PIPES) for _ in range(2)]
    first, second = ({*map(int, other.stdout.readline().split())} for other in others)
    assert [other.communicate("\n") for other in others] == [("", "")] * 2
    mine = {free_port() for _ in range(200)}
    assert min(map(len, (first, second, mine))) > 50
    assert len(first | second | mine) == len(first) + len(second) + len(mine)


def test_nobody_answers() -> None:
    with pytest.raises(OSError, match="refused"):
        responds(f"http://127.0.0.1:{free_port()}/readyz")


@pytest.fixture
def unhandled() -> Iterator[None]:
    """SIGTERM as it is in a new process, whatever a cluster of the same test run has made of it."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("unhandled")
def test_sigterm_becomes_keyboard_interrupt_for_a_while() -> None:
    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("unhandled")
@pytest.mark.parametrize(
    ("fault", "words"), [(ControlPlaneError("no etcd"), "no etcd"), (KeyboardInterrupt(), "\nStopped.")]
)
def test_a_program_ends_in_words(fault: BaseException, words: str) -> None:
    with pytest.raises(SystemExit) as ended, ends_in_words():
        raise fault
    assert ended.value.code == words


@pytest.mark.usefixtures("unhandled")
def test_a_handler_that_is_set_stays() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with sigterm_interrupts():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
