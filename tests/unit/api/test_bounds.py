"""Bounds of LimitRanges. tests/conformance/test_limit_ranger.py compares them with the API server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import PROPERTY
from webhook.api import quantity
from webhook.api.bounds import ANY, Bound, Bounds
from webhook.api.quantity import Quantity

MIN, MAX, RATIO = Bound


def read(text: str | None) -> Quantity | None:
    return None if text is None else quantity.parse(text)


def bounds(least: str | None = None, most: str | None = None, ratio: str | None = None) -> Bounds:
    return Bounds(read(least), read(most), read(ratio))


@pytest.mark.parametrize(
    ("given", "request_", "limit", "expected"),
    [
        (bounds("1"), "999m", "1", [MIN]),
        (bounds("1"), "1", "500m", [MIN]),
        (bounds(most="2"), "1", "2001m", [MAX]),
        (bounds(most="2"), "1", None, [MAX]),
        (bounds(ratio="2"), "1", "2001m", [RATIO]),
        (bounds(ratio="1.1"), "1", "1.1", []),
        (bounds(ratio="2"), None, "1", [RATIO]),
        (bounds(ratio="2"), "1", None, [RATIO]),
        (bounds(ratio="2"), "0", "0", [RATIO]),
        # The amounts are so large that the API server compares whole units.
        (bounds(ratio="2"), "10P", "21P", [RATIO]),
        (bounds(ratio="10P"), "1", "11P", [RATIO]),
        (bounds("1", "1", "1"), "500m", "2", [MIN, MAX, RATIO]),
    ],
)
def test_bounds_that_a_container_breaks_are_listed(
    given: Bounds, request_: str | None, limit: str | None, expected: list[Bound]
) -> None:
    assert [*given.broken(read(request_), read(limit))] == expected


@pytest.mark.parametrize(
    ("given", "request_", "limit", "fit"),
    [
        (bounds(most="2"), "1", "4", ("1", "2")),
        (bounds(most="2"), None, None, ("2", "2")),
        (bounds("1"), "500m", None, ("1", "1")),
        (bounds(ratio="2"), "1", "4", ("2", "4")),
        (bounds(ratio="3"), "1", "4Gi", ("1431655766", "4Gi")),
        (bounds(ratio="2"), "0", "4", ("2", "4")),
        (bounds(most="3", ratio="2"), "1", "4", ("1500m", "3")),
        (bounds(most="0", ratio="2"), "1", "1", None),
    ],
)
def test_nearest_fitting_values(
    given: Bounds, request_: str | None, limit: str | None, fit: tuple[str, str] | None
) -> None:
    fitting = given.fitting(read(request_), read(limit))
    assert (fitting and tuple(map(quantity.format, fitting))) == fit


@pytest.mark.timeout(20)
@pytest.mark.parametrize("ratio", ["10", "7", "1", "1500m"])
def test_amount_above_the_precision_of_the_api_server_has_fitting_values(ratio: str) -> None:
    given = bounds(ratio=ratio)
    fit = given.fitting(read("1"), read("1e30"))
    assert fit is not None
    assert fit.limit == read("1e30")
    assert [*given.broken(fit.request, fit.limit)] == []


def test_resource_without_overcommit_has_equal_request_and_limit() -> None:
    assert bounds(most="4", ratio="10").fitting(read("2"), read("8"), equal=True) == (read("4"), read("4"))


def test_any_positive_amount_fits_a_ratio_if_request_and_limit_are_missing_or_zero() -> None:
    assert bounds(ratio="2").fitting(None, None) is ANY
    assert bounds(most="2", ratio="2").fitting(Quantity(0), Quantity(0)) is ANY


def test_combined_bounds_are_the_strictest_of_both() -> None:
    assert bounds("1", "9", "3") & bounds("2", "8", "4") == bounds("2", "8", "3")
    assert bounds("1") & bounds(most="2") == bounds("1", "2") == bounds(most="2") & bounds("1")


amounts = (
    st.none()
    | st.integers(0, 50).map(lambda n: Quantity(n * 50_000_000))
    | st.integers(1, 2**50).map(lambda n: Quantity(n * quantity.NANO))
    | st.integers(2**60, 2**200).map(lambda n: Quantity(n * quantity.NANO))
)
ratios = st.none() | st.integers(1000, 12_345).map(lambda n: Quantity(n * 1_000_000))


@PROPERTY
@given(st.builds(Bounds, amounts, amounts, ratios), amounts, amounts, st.booleans())
def test_fitted_value_is_within_bounds(
    given: Bounds, request: Quantity | None, limit: Quantity | None, equal: bool
) -> None:
    fit = given.fitting(request, limit, equal=equal)
    if fit is None:
        assert (given.min or 0) > (given.max if given.max is not None else 2**99) or given.max == 0
    elif fit is not ANY:
        assert [*given.broken(fit.request, fit.limit)] == []
        assert fit.request == fit.limit or (fit.request < fit.limit and not equal)
