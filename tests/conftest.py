"""For all tests."""

import signal


def pytest_configure() -> None:
    """Have Ctrl-C work in what the tests start, also where a shell started them in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
