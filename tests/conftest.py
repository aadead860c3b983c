"""For all tests."""

import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.support.late_connections import close_late_connections

# Its own deadline, 200 ms for an example, would hold a clock against the code wherever a test does not say otherwise.
settings.register_profile("no clock", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

TRIED_AGAIN = 3


def pytest_configure() -> None:
    """Leave no connection to the garbage collector, and have Ctrl-C work in what a shell's background started."""
    close_late_connections()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which more than `TRIED_AGAIN` tests passed at their second try only."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and len(reporter.stats.get("rerun", ())) > TRIED_AGAIN:
        reporter.write_line(f"\n{len(reporter.stats['rerun'])} tests were tried again, which is too many.")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
