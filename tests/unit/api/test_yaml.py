"""YAML is read as kubectl reads it: scalars, keys, aliases and limits. All faults raise YamlError."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import PROPERTY, json_values
from webhook.api import yaml


def one(text: str | bytes) -> Any:
    documents = yaml.load_all(text)
    assert len(documents) == 1
    return documents[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text", "text"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("1", 1),
        ("+7", 7),
        ("-0", 0),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("0777", 511),
        ("09", 9),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551616", 2**64),
        ("+18446744073709551615", 2**64),
        ("1e20", 10**20),
        ("1e21", 1e21),
        ("1e-4", 0.0001),
        ("2.0", 2),
        (".5", 0.5),
        ("5.", 5),
        ("1e30", 1e30),
        ("1e400", "1e400"),
        ("9" * 5000, "9" * 5000),
        ("!!float 3", 3),
        ("y", True),
        ("No", False),
        ("off", False),
        ("True", True),
        ("tRUE", "tRUE"),
        ("10:30", "10:30"),
        ("2026-01-31", "2026-01-31"),
        ("1.2.3", "1.2.3"),
        ("+", "+"),
        ("..", ".."),
        ("/x", "/x"),
        (r'"\/"', "/"),
        ('"\\u00e9"', "é"),
    ],
)
def test_scalars_are_read_as_by_kubectl(text: str, expected: object) -> None:
    value = one(f"a: {text}")["a"]
    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize("text", ["", "~", "null", "Null"])
def test_null_values(text: str) -> None:
    assert one(f"a: {text}") == {"a": None}


def test_keys_are_converted_to_text() -> None:
    assert one("{1: a, true: b, 1.5: c, off: d}") == {"1": "a", "true": "b", "1.5": "c", "false": "d"}


def test_documents_without_content_are_left_out() -> None:
    assert yaml.load_all("# only a comment\n---\na: 1\n---\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]
    assert yaml.load_all("") == []


def test_aliases_and_merge_keys() -> None:
    text = """
    base: &base {a: 1, b: 2}
    one: {<<: *base, b: 3}
    two: {<<: [*base, {b: 9, c: 4}]}
    three: *base
    four: {"<<": text}
    """
    assert one(text) == {
        "base": {"a": 1, "b": 2},
        "one": {"a": 1, "b": 3},
        "two": {"a": 1, "b": 2, "c": 4},
        "three": {"a": 1, "b": 2},
        "four": {"<<": "text"},
    }


def test_json_is_read() -> None:
    text = '{\n\t"a": "\\ud83d\\ude00", "b": "\\\\ud83d\\\\ude00", "c":[1,2.5e3,null,true]}'
    assert one(text) == {"a": "\N{GRINNING FACE}", "b": "\\ud83d\\ude00", "c": [1, 2500, None, True]}


@pytest.mark.parametrize("text", [b"\xef\xbb\xbfa: 1", "\ufeffa: 1"])
def test_byte_order_mark_is_ignored(text: str | bytes) -> None:
    assert one(text) == {"a": 1}


NO_KEY = "this line is neither a key with `: ` nor the continuation of a text"
OR_COMMA = "or a comma between its entries"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", 'line 3, column 1: the key "a" is there twice, first in line 1: remove one of them'),
        ("a: [1]\na: [2]", 'line 2, column 1: the key "a" is there twice, first in line 1: merge both lists into one'),
        ("{1: a, '1': b}", 'line 1, column 8: the key "1" is there twice, first in line 1: remove one of them'),
        ("a: .nan", "line 1, column 4: .nan is a number that JSON does not have"),
        ("a: -.inf", "line 1, column 4: -.inf is a number that JSON does not have"),
        ("? [a]\n: b", "line 1, column 3: a key must be text"),
        ("~: b", "line 1, column 1: a key must be text"),
        ("<<: 3", "line 1, column 1: << takes a mapping or a list of mappings"),
        ("a: &a [*a]", "line 1, column 8: the alias *a refers to nothing before it, or to itself"),
        ("a: *b", "line 1, column 4: the alias *b refers to nothing before it, or to itself"),
        ("!foo x", 'line 1, column 1: "x" cannot be read as !foo'),
        ("!!int x", 'line 1, column 1: "x" cannot be read as tag:yaml.org,2002:int'),
        ("!!binary aGk=", 'line 1, column 1: "aGk=" cannot be read as tag:yaml.org,2002:binary'),
        ("!!set {a}", "line 1, column 1: the tag tag:yaml.org,2002:set has no meaning here"),
        (
            "a: b: c",
            "line 1, column 5: a colon is not allowed here: indent the line like its neighbours, write a blank"
            ' after the colon of each key, and put text with ": " in quotes',
        ),
        ("a:\n  b: 1\n  c 3\n  d: 2", f"line 3, column 3: {NO_KEY}"),
        ("a:\n  - b\n  -c\n  - d", f"line 3, column 3: {NO_KEY}"),
        ('a: 1\nb: "x\nc: 3\nd: 4', "line 2, column 4: quotes are not closed"),
        ("a: 1\nb: [1, 2\nc: 3", f"line 2, column 4: a list in brackets is not closed: write ], {OR_COMMA}"),
        ("a: 1\nb: {c: 1\nd: 3", f"line 2, column 4: a mapping in braces is not closed: write }}, {OR_COMMA}"),
        ("a: [", "line 2, column 1: did not find expected node content"),
        ('"\\ud800"', "line 1, column 4: found invalid Unicode character escape code"),
        ('{"a": "\\ud800"}', "line 1, column 10: found invalid Unicode character escape code"),
        (b"\xff\xfea\x00", "is not text in UTF-8"),
        ("\ud800", "is not text in UTF-8"),
        (b"\x00\x01", "is not text: control characters are not allowed at position 0"),
        ("[" * 300 + "]" * 300, "line 1, column 201: nested deeper than 200 levels"),
        ("- " * 300 + "a", "line 1, column 401: nested deeper than 200 levels"),
    ],
)
def test_invalid_yaml_is_rejected_with_its_position(text: str | bytes, message: str) -> None:
    with pytest.raises(yaml.YamlError) as caught:
        yaml.load_all(text)
    assert str(caught.value) == message


def test_excessive_depth_is_rejected() -> None:
    with pytest.raises(yaml.YamlError, match="nested deeper than 200 levels"):
        yaml.load_all("[" * 500_000 + "]" * 500_000)


@pytest.mark.parametrize(
    "line",
    ["l{n}: &l{n} [{refs}]", "l{n}: &l{n} {{<<: [{refs}]}}", "l{n}: &l{n} {{<<: [{refs}], k{n}: 1}}"],
)
def test_expansion_of_aliases_is_limited(line: str) -> None:
    lines = ["l0: &l0 {x: y}"]
    lines += [line.format(n=n, refs=",".join([f"*l{n - 1}"] * 9)) for n in range(1, 30)]
    with pytest.raises(yaml.YamlError, match="aliases repeat more than 100,000 values"):
        yaml.load_all("\n".join(lines))


def test_limit_of_aliases_applies_to_each_document() -> None:
    document = f"a: &a [{'x,' * 1000}]\nb: [{'*a,' * 90}]\n"
    assert len(yaml.load_all("---\n".join([document] * 3))) == 3


@PROPERTY
@given(json_values())
def test_any_json_value_is_read_back(value: Any) -> None:
    def go(item: Any) -> Any:
        """Return the value with each integer beyond 64 bits as a float, because Go reads such an integer as a float."""
        if isinstance(item, list):
            return [go(entry) for entry in item]
        if isinstance(item, dict):
            return {key: go(entry) for key, entry in item.items()}
        outside = isinstance(item, int) and not isinstance(item, bool) and not -(2**63) <= item < 2**64
        return float(item) if outside else item

    text = json.dumps({"value": value})
    assert one(text) == {"value": go(value)}


@PROPERTY
@given(st.text() | st.binary() | st.text("&*a[]{}:,-? \n'\"|>!%@`#0.~<", max_size=40))
def test_any_text_is_read_as_json_values_or_raises_a_yaml_error(text: str | bytes) -> None:
    try:
        documents = yaml.load_all(text)
    except yaml.YamlError:
        return
    json.dumps(documents, allow_nan=False, ensure_ascii=False).encode()


def test_lines_of_keys_and_items() -> None:
    text = "a: 1\nb:\n  - x\n  - {c: 2,\n     d: 3}\n"
    expected = {("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 4, ("b", 1, "c"): 4, ("b", 1, "d"): 5}
    assert expected.items() <= yaml.lines(text).items()


def test_lines_of_json_with_surrogate_pairs() -> None:
    assert yaml.lines('{"a": "\\ud83d\\ude00",\n"b": 1}')["b",] == 2
    assert yaml.lines(b'{"a": "\\ud83d\\ude00",\n"b": 1}')["b",] == 2


def test_split_documents_keep_their_line_numbers() -> None:
    text = "a: \U0001f600\n---\n# nothing\n---\n  b: 1\n  c: 2\n...\n--- {d: 3}"
    parts = yaml.split(text.encode())
    assert [yaml.load_all(part) for part in parts] == [[value] for value in yaml.load_all(text)]
    assert [yaml.lines(part)[key,] for part, key in zip(parts, "acd", strict=True)] == [1, 6, 8]
    assert yaml.split("# nothing") == []
    with pytest.raises(yaml.YamlError):
        yaml.split("a: [")


def test_dump_is_readable() -> None:
    value = {"z": [{"a": "1", "b": "line\nline\n"}], "é": "x" * 200, "again": [1], "off": "off"}
    assert yaml.dump(value) == (
        f"z:\n  - a: '1'\n    b: |\n      line\n      line\né: {'x' * 200}\nagain:\n  - 1\n'off': 'off'\n"
    )
    assert yaml.dump_inline({"a": [1, "off"], "b": None}) == "{a: [1, 'off'], b: null}"
    assert yaml.dump_inline("text") == "text"


TEXTS = st.one_of(
    st.sampled_from(
        ["y", "N", "1e-4", "0o17", "1_0", ".5", "-.inf", "~", "<<", "a\r\nb", "\x85", "x\n\n", "- a", "a: b"]
    ),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text("yn0123456789eE+-._xob: #\n '\"", max_size=8),
)


@pytest.mark.parametrize("dump", [yaml.dump, yaml.dump_document])
@given(value=st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)))
def test_dumped_text_is_read_back_as_text(dump: Any, value: Any) -> None:
    assert yaml.load_all(dump({"of": value})) == [{"of": value}]


def test_several_documents_are_dumped() -> None:
    text = yaml.dump_document({"a": [1]}) + yaml.dump_document({"b": "y"})
    assert text == "---\na:\n- 1\n---\nb: 'y'\n"
