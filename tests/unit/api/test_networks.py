from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import PROPERTY
from webhook.api.networks import Network, NetworksError, extended, extends, parse, parse_strictly


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("ib", [Network("", "ib")]),
        ("ib, net/roce@net1 ,ib@net2", [Network("", "ib"), Network("net", "roce", "net1"), Network("", "ib", "net2")]),
        ('[{"name": "ib", "namespace": "net", "ips": ["10.0.0.1/24"]}]', [Network("net", "ib")]),
        ('[{"name": "ib", "namespace": null}]', [Network("", "ib")]),
        ("[]", []),
    ],
)
def test_networks_are_parsed_in_both_notations(text: str, expected: list[Network]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["a/b/c", "a@b@c", "a,", "/a", "a/", "@if", "a@"])
def test_invalid_list_is_an_error(text: str) -> None:
    with pytest.raises(NetworksError, match="with commas between"):
        parse(text)


@pytest.mark.parametrize("text", ['{"name": "ib"}', '["ib"]', '[{"name": 1}]', "[{}]", '[{"name":"\ud800"}]'])
def test_invalid_json_is_an_error(text: str) -> None:
    with pytest.raises(NetworksError, match="in JSON"):
        parse(text)


@PROPERTY
@given(st.text())
def test_any_text_gives_networks_or_a_networks_error(text: str) -> None:
    with suppress(NetworksError):
        assert all(network.name for network in parse(text))


MORE = [Network("net", "roce", "net1"), Network("", "ib")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "net/roce@net1, ib"),
        (" ", "net/roce@net1, ib"),
        (" a,b@c ", " a,b@c, net/roce@net1, ib"),
        ("[]", '[{"namespace":"net","name":"roce","interface":"net1"}, {"name":"ib"}]'),
        (
            ' [ {"name": "a", "mac": 1e400, "x": {}}\n]\n',
            ' [ {"name": "a", "mac": 1e400, "x": {}}, '
            '{"namespace":"net","name":"roce","interface":"net1"}, {"name":"ib"}]',
        ),
    ],
)
def test_existing_networks_stay_as_written(text: str, expected: str) -> None:
    assert extended(text, MORE) == expected
    assert parse(expected) == parse(text) + MORE
    assert extends(expected, text)


@pytest.mark.parametrize(
    ("text", "original"), [("a, b", "b"), ("ab, c", "a"), ('[{"name":"a"}]', '[{"name":"b"}]'), ("", "a")]
)
def test_text_with_other_networks_is_not_an_extension(text: str, original: str) -> None:
    assert not extends(text, original)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "with commas between"),
        ("a,", "with commas between"),
        ("a b", 'has a name that contains " "'),
        ("Net/a", 'has a name that contains "N"'),
        ("a.b", 'has a name that contains "."'),
        ("-a", "has a name that must start"),
        ("a@seventeen-letters", "has an interface of more than 15 characters"),
    ],
)
def test_strict_parser_rejects_an_invalid_name(text: str, problem: str) -> None:
    with pytest.raises(NetworksError, match=problem):
        parse_strictly(text)


def test_strict_parser_reads_valid_names() -> None:
    assert parse_strictly("net/roce@net1, ib") == MORE
    assert ", ".join(map(str, MORE)) == "net/roce@net1, ib"
    assert parse_strictly(" ") == []
