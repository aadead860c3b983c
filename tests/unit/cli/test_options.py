"""Valid and invalid values of options."""

import click
import pytest

from tests.support.checking import run
from webhook.cli.options import host_and_port


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8443", ("127.0.0.1", 8443)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_valid_address_is_parsed(text: str, expected: tuple[str, int]) -> None:
    assert host_and_port(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("8443", "is not HOST:PORT, such as 127.0.0.1:8443 or [::1]:8443"),
        ("[]:80", "is not HOST:PORT, such as 127.0.0.1:8443 or [::1]:8443"),
        ("::1:80", "is ambiguous, write an IPv6 address in brackets: [::1]:80"),
        ("host:", "has no port from 0 to 65535 after its last colon"),
        ("host:65536", "has no port from 0 to 65535 after its last colon"),
        ("host:" + "9" * 5000, "has no port from 0 to 65535 after its last colon"),
        ("host:-1", "has no port from 0 to 65535 after its last colon"),
        ("host:\N{FULLWIDTH DIGIT EIGHT}", "has no port from 0 to 65535 after its last colon"),
    ],
)
def test_invalid_address_is_rejected(text: str, problem: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        host_and_port(text)
    assert caught.value.message.endswith(problem)
    result = run("serve", "--listen", text)
    assert result.exit_code == 2
    assert "Invalid value for '--listen'" in result.stderr
