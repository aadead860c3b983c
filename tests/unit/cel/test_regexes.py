"""`find` and `findAll` have what Go's regexp has, or no value."""

import json

import pytest

from tests.support.own_rules import outcomes


@pytest.mark.parametrize(
    ("text", "expression", "found"),
    [
        ("abc\n", "c$", ""),
        ("a$\n", "a[$]", "a$"),
        ("a$", r"a\$", "a$"),
        ("x\ny", "(?m)^x$", "x"),
        ("x\n", "[]$]|x$", ""),
        ("ab", "(?P<name>a)", "a"),
        ("AB", "(?i)b", "B"),
    ],
)
def test_what_is_found(text: str, expression: str, found: str) -> None:
    (outcome,) = outcomes(f"{json.dumps(text)}.find({json.dumps(expression)}) == {json.dumps(found)}")
    assert (outcome.holds, outcome.fault) == (True, "")


@pytest.mark.parametrize(
    ("text", "most", "found"), [("baaab", -1, ["", "aaa", ""]), ("aab", 2, ["aa", ""]), ("b", 0, [])]
)
def test_nothing_directly_after_a_match_is_none(text: str, most: int, found: list[str]) -> None:
    (outcome,) = outcomes(f"{json.dumps(text)}.findAll('a*', {most}) == {json.dumps(found)}")
    assert (outcome.holds, outcome.fault) == (True, "")


@pytest.mark.parametrize(
    "expression",
    ["(?x)a b", "(?a)a", "(?:(?ix)a)", r"a\Z", r"\N{DIGIT ONE}", r"\u0061", "a{,3}", "[[:alpha:]]", "(?i)é"],
)
def test_what_means_something_else_in_python_has_no_value(expression: str) -> None:
    (outcome,) = outcomes(f"'a'.find({json.dumps(expression)}) == ''")
    assert outcome.fault
