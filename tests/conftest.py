"""For all tests."""

import signal

from hypothesis import HealthCheck, settings

# Its own deadline, 200 ms for an example, would hold a clock against the code wherever a test does not say otherwise.
settings.register_profile("no clock", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")


def pytest_configure() -> None:
    """Have Ctrl-C work in what the tests start, also where a shell started them in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
