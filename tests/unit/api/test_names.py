import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webhook.api import names
from webhook.api.names import closest_name

LABEL_35, LABEL_23 = names.dns_1035_label_problem, names.dns_1123_label_problem
SUBDOMAIN, KEY, VALUE = names.dns_1123_subdomain_problem, names.label_key_problem, names.label_value_problem
ALL = [LABEL_35, LABEL_23, SUBDOMAIN, KEY, VALUE]


@pytest.mark.parametrize(
    ("problem", "texts"),
    [
        (LABEL_35, ["a", "train", "a-1", "a--b", "a" * 63]),
        (KEY, ["a", "A", "a_b.c-D", "1", "x" * 63, "example.com/x", "a/B", f"{'a' * 253}/{'x' * 63}"]),
    ],
)
def test_valid_names_have_no_problem(problem, texts) -> None:
    assert {text: problem(text) for text in texts} == dict.fromkeys(texts)


@pytest.mark.parametrize(
    ("problem", "text", "expected"),
    [
        (LABEL_35, "", "is empty"),
        (LABEL_35, "a" * 64, "has 64 characters, at most 63 are allowed"),
        (LABEL_35, "Train", 'contains "T"; allowed are lower case letters, digits and "-"'),
        (LABEL_35, "1a", "must start with a lower case letter and end with a lower case letter or a digit"),
        (LABEL_35, "a-", "must start with a lower case letter and end with a lower case letter or a digit"),
        (LABEL_23, "-a", "must start and end with a lower case letter or a digit"),
        (LABEL_23, "a\n", 'contains the character U+000A; allowed are lower case letters, digits and "-"'),
        (LABEL_23, "a\uff15", 'contains the character U+FF15; allowed are lower case letters, digits and "-"'),
        (LABEL_23, "\u0663", 'contains the character U+0663; allowed are lower case letters, digits and "-"'),
        (SUBDOMAIN, "a_b", 'contains "_"; allowed are lower case letters, digits, "-" and "."'),
        (SUBDOMAIN, "a" * 254, "has 254 characters, at most 253 are allowed"),
        *[
            (
                SUBDOMAIN,
                text,
                'must start and end with a lower case letter or a digit, and so must every part between two "."',
            )
            for text in ("a..b", "a.-b", ".a")
        ],
        (KEY, "", "is empty"),
        (KEY, "a b", 'contains " "; allowed are letters, digits, "-", "_" and "."'),
        (KEY, "-a", "must start and end with a letter or a digit"),
        (KEY, "a/b/c", 'contains more than one "/"'),
        (KEY, "/a", 'has a prefix (before the "/") that is empty'),
        (KEY, "a/", 'has a name (after the "/") that is empty'),
        (KEY, "a/" + "x" * 64, 'has a name (after the "/") that has 64 characters, at most 63 are allowed'),
        (VALUE, "x" * 64, "has 64 characters, at most 63 are allowed"),
        (VALUE, "a/b", 'contains "/"; allowed are letters, digits, "-", "_" and "."'),
        (VALUE, "a_", "must start and end with a letter or a digit"),
    ],
)
def test_problem_of_an_invalid_name(problem, text: str, expected: str) -> None:
    assert problem(text) == expected


@pytest.mark.parametrize("problem", ALL)
@pytest.mark.parametrize(
    "text",
    ["a\n", "\na", "a\r", "a\0", "\u00e9", "\uff41", "a\u00b2", "\ud800", "a" * 2**20, "-" * 2**20, "a." * 2**19],
)
def test_hostile_text_has_a_short_printable_problem(problem, text: str) -> None:
    message = problem(text)
    assert message
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 200


def grammar(first: str, inner: str, last: str) -> re.Pattern[str]:
    return re.compile(f"{first}({inner}*{last})?")


@given(st.text("aZ0-._/", max_size=8) | st.text(max_size=8) | st.integers(60, 66).map("a".__mul__))
@example("a.b-1")
def test_result_equals_the_grammar_applied_part_by_part(text: str) -> None:
    lower, mixed = "[a-z0-9]", "[A-Za-z0-9]"
    label = grammar(lower, "[-a-z0-9]", lower)
    name = grammar(mixed, "[-A-Za-z0-9_.]", mixed)
    fits = len(text) <= 63
    subdomain = all(label.fullmatch(part) for part in text.split("."))
    *prefix, last = text.split("/")
    key = (
        len(prefix) <= 1
        and name.fullmatch(last)
        and len(last) <= 63
        and all(SUBDOMAIN(part) is None for part in prefix)
    )

    assert (LABEL_35(text) is None) == bool(fits and grammar("[a-z]", "[-a-z0-9]", lower).fullmatch(text))
    assert (LABEL_23(text) is None) == bool(fits and label.fullmatch(text))
    assert (SUBDOMAIN(text) is None) == subdomain
    assert (KEY(text) is None) == bool(key)
    assert (VALUE(text) is None) == (not text or bool(fits and name.fullmatch(text)))


def test_generated_name_of_maximum_length_is_a_valid_label() -> None:
    assert names.GENERATED_SUFFIX_LENGTH == 5
    assert names.GENERATED_BASE_MAX_LENGTH == 58
    generated = "a" * names.GENERATED_BASE_MAX_LENGTH + "x" * names.GENERATED_SUFFIX_LENGTH
    assert LABEL_35(generated) is None
    assert LABEL_35(generated + "x") is not None


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("datset", ["dataset", "data", "x"], "dataset"),
        ("data", ["team-a-training-data-2026", "zzz"], "team-a-training-data-2026"),
        ("data", ["models", "cache"], None),
        ("data", [], None),
        ("", ["data"], None),
        ("gpu", ["gpu-nodes-of-the-team"], "gpu-nodes-of-the-team"),
    ],
)
def test_similar_name_is_found(name: str, names: list[str], expected: str | None) -> None:
    assert closest_name(name, names) == expected


def test_only_the_first_2000_names_are_compared() -> None:
    assert closest_name("dataset", [*(f"zzzz{i:03}" for i in range(2000)), "datasets"]) is None
    assert closest_name("dataset", [*(f"zzzz{i:03}" for i in range(1999)), "datasets"]) == "datasets"


@pytest.mark.timeout(20)
def test_most_similar_of_many_names_is_found() -> None:
    datasets = [f"resnet-data-{number:04}" for number in range(2000)]
    assert closest_name("resnet-data-1234x", datasets) == "resnet-data-1234"
    assert closest_name("x" * 1_000_000, datasets) is None
