"""Settings for all tests."""

import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.support.late_connections import close_late_connections

# Hypothesis' default deadline of 200 ms for an example would make tests fail on a busy machine.
settings.register_profile("no clock", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

TRIED_AGAIN = 3


def pytest_configure() -> None:
    """Close late connections, and let Ctrl-C end a run that a shell started in the background."""
    close_late_connections()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which more than `TRIED_AGAIN` tests passed only at their second try."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and len(reporter.stats.get("rerun", ())) > TRIED_AGAIN:
        reporter.write_line(f"\n{len(reporter.stats['rerun'])} tests were tried again, which is too many.")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
