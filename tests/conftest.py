"""For all tests."""

import signal

from hypothesis import HealthCheck, settings

from tests.support.late_connections import close_late_connections

# Its own deadline, 200 ms for an example, would hold a clock against the code wherever a test does not say otherwise.
settings.register_profile("no clock", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")


def pytest_configure() -> None:
    """Leave no connection to the garbage collector, and have Ctrl-C work in what a shell's background started."""
    close_late_connections()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
