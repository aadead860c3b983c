from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import PROPERTY
from webhook.api.networks import Network, NetworksError, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ", []),
        ("ib", [Network("", "ib")]),
        ("ib, net/roce@net1 ,ib@net2", [Network("", "ib"), Network("net", "roce"), Network("", "ib")]),
        ('[{"name": "ib", "interface": "ib0"}]', [Network("", "ib")]),
        ('[{"name": "ib", "namespace": "net", "ips": ["10.0.0.1/24"]}]', [Network("net", "ib")]),
        ('[{"name": "ib", "namespace": null}]', [Network("", "ib")]),
        ("[]", []),
    ],
)
def test_networks(text: str, expected: list[Network]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["a/b/c", "a@b@c", "a,", ",", "/a", "a/", "@if", "a@"])
def test_a_list_that_cannot_be_read(text: str) -> None:
    with pytest.raises(NetworksError, match="with commas between"):
        parse(text)


@pytest.mark.parametrize(
    "text", ['{"name": "ib"}', "[", '["ib"]', '[{"name": 1}]', "[{}]", '"ib"', '[{"name":"\ud800"}]']
)
def test_json_that_cannot_be_read(text: str) -> None:
    with pytest.raises(NetworksError, match="in JSON"):
        parse(text)


@PROPERTY
@given(st.text())
def test_any_text_gives_networks_or_the_error(text: str) -> None:
    with suppress(NetworksError):
        assert all(network.name for network in parse(text))
