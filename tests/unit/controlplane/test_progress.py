"""Progress lines on a terminal and elsewhere."""

import io

import pytest

from tests.controlplane import progress
from tests.controlplane.progress import Progress, clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (9.9, "0:09"), (65.2, "1:05"), (3600, "60:00")])
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_terminal_line_is_renewed_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    with Progress(stream).step("[1/2] kubectl") as step:
        step.update("k8s.io/a/very/long/package/name")
        assert stream.getvalue() == "\r\x1b[K[1/2] kubectl  0:00  k8s.io/a"
    assert stream.getvalue().endswith("\r\x1b[K[1/2] kubectl: done after 0:00\n")


def test_elsewhere_plain_lines_and_now_and_then_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with Progress(stream).step("[1/2] kubectl") as step:
        step.update("k8s.io/api")
        assert stream.getvalue() == "[1/2] kubectl ...\n"
        monkeypatch.setattr(progress, "QUIET_SECONDS", 0)
        step.update("k8s.io/api")
    assert stream.getvalue().splitlines()[1:] == [
        "[1/2] kubectl: still at it after 0:00  k8s.io/api",
        "[1/2] kubectl: done after 0:00",
    ]


def test_failure_shows() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyError), Progress(stream).step("[1/2] kubectl"):
        raise KeyError
    assert stream.getvalue().endswith("kubectl: failed after 0:00\n")
