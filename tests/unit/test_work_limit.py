"""The limit on processor time, with real signals in a separate process."""

import re
import subprocess
import sys
import time
from textwrap import dedent

import pytest

from webhook import limits
from webhook.work_limit import limited

START = """
import threading, time
from webhook import work_limit
from webhook.work_limit import TooExpensive, limited

def busy(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    return "done"

def took(work):
    began = time.thread_time()
    try:
        ended = limited(work)
    except TooExpensive:
        ended = "too expensive"
    print(ended, round(1000 * (time.thread_time() - began)))

def caught(kind, *, again):
    def work():
        while True:
            try:
                busy(9)
            except kind:
                if not again:
                    return "swallowed"
    return work

work_limit.arm()
"""


def program(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START + dedent(text)], capture_output=True, text=True, check=True)


def run(text: str) -> list[tuple[str, int]]:
    """The outcome and the processor time in milliseconds of each call of `took` in the program."""
    lines = (line.rpartition(" ") for line in program(text).stdout.splitlines())
    return [(ended, int(milliseconds)) for ended, _, milliseconds in lines]


def test_no_limit_applies_in_a_process_that_has_not_armed_it() -> None:
    until = time.thread_time() + limits.MAX_DECISION_SECONDS + 0.1

    def work() -> str:
        while time.thread_time() < until:
            pass
        return "done"

    assert limited(work) == "done"


@pytest.mark.parametrize(
    "work",
    [
        pytest.param("lambda: busy(9)", id="python"),
        pytest.param("lambda: re.match('(a+)+$', 'a' * 60 + 'b')", id="regular expression"),
        pytest.param("lambda: 7 ** (10 ** 9)", id="large integers"),
        pytest.param("lambda: len(sorted(range(10 ** 6), key=lambda n: sum(range(200))))", id="callbacks from C"),
        pytest.param("caught(Exception, again=True)", id="repeatedly caught as an Exception"),
        pytest.param("caught(BaseException, again=False)", id="swallowed"),
    ],
)
def test_work_above_the_limit_is_interrupted(work: str) -> None:
    ((ended, milliseconds),) = run(f"import re; took({work})")
    assert ended == "too expensive"
    assert 240 <= milliseconds < 1000


def test_work_below_the_limit_is_done() -> None:
    assert [ended for ended, _ in run("for _ in range(3): took(lambda: busy(0.1))")] == ["done"] * 3


def test_no_exception_is_raised_after_a_decision() -> None:
    outcomes = run(
        """
        for n in range(100):
            took(lambda: busy(0.001))
            busy(0.002)
        took(lambda: busy(9))
        busy(1)
        took(lambda: busy(0.1))
        """
    )
    assert [ended for ended, _ in outcomes] == ["done"] * 100 + ["too expensive", "done"]


def test_time_of_other_threads_is_not_counted() -> None:
    ((ended, _),) = run(
        """
        import hashlib
        for _ in range(2):
            threading.Thread(
                target=lambda: hashlib.pbkdf2_hmac("sha512", b"", b"", 2_000_000), daemon=True
            ).start()
        took(lambda: busy(0.2))
        """
    )
    assert ended == "done"


def test_exception_lost_in_a_finalizer_is_raised_again() -> None:
    text = """
        class Slow:
            def __del__(self):
                busy(0.4)

        def work():
            Slow()
            return busy(9)

        took(work)
        """
    done = program(text)
    assert "Exception ignored" in done.stderr
    assert re.fullmatch(r"too expensive [2-9]\d\d\n", done.stdout)


def test_uncounted_work_is_not_limited() -> None:
    """`uncounted` is for work that is done once, such as deriving a cached value. The limit ignores this work."""
    outcomes = run(
        """
        from webhook.cluster.contents import Group
        from webhook.work_limit import uncounted

        def slow(group):
            uncounted(lambda: busy(0.1))
            busy(0.3)
            return slow

        group = Group()
        took(lambda: group.derived(slow) is slow and busy(0.1))
        took(lambda: group.derived(slow) is slow and busy(0.1))
        took(lambda: (uncounted(lambda: busy(0.3)), busy(9)))
        took(lambda: busy(9))
        """
    )
    assert [ended for ended, _ in outcomes] == ["done", "done", "too expensive", "too expensive"]
    assert outcomes[0][1] >= 390
    assert 540 <= outcomes[2][1] < 2000
