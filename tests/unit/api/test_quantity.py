import math
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from webhook.api import quantity
from webhook.api.quantity import NANO, Quantity, QuantityError, parse

CAP = 2**63 - 1
FACTORS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("3Ei", 3 * 2**60),
        ("1E-3", Fraction(1, 1000)),
        # beyond nano: rounded away from zero
        ("0.00000012345", Fraction(124, 10**9)),
        # binary units saturate at the largest int64, decimal ones do not
        ("9Ei", CAP),
        # fractions of binary units
        # unusual but valid
    ],
)
def test_quantity_has_the_value_that_kubernetes_reads(text: str, value: Fraction | int) -> None:
    assert parse(text) == value * NANO


@pytest.mark.parametrize(
    ("value", "nano"),
    [
        (0, 0),
        (0.5, NANO // 2),
        (1e22, 10**22 * NANO),
    ],
)
def test_json_number_is_a_quantity(value: float, nano: int) -> None:
    assert parse(value) == nano


@pytest.mark.parametrize(
    "value",
    [
        *["", " ", " 5 ", "5 ", "4 Gi", "5\n", "\uff11", "\u0665", "\u00bd", "\u22121"],
        *["NaN", "nan", "Infinity", "inf", "1_000", "1,5", "0x10", "--1", "+-1", "1.2.3", "1-3", "5m5"],
        *["1K", "1g", "4GB", "1KiB", "1ki", "1i", "1b", "1mm", "1Gi5", "1e", "1e+", "1e1.5", "1e3m", "1ee3"],
        *["Gi", "m", "+", "-", ".", "-.", "+.Ki", "e3"],
        *["1e100", "1e-100", "1e1000000", "1e4294967296", "1e" + "9" * 60],
        *["9" * 65, "0" * 65, "1" * 2**20, "1e" + "9" * 2**20],
        *[True, False, None, [], {}, b"1", 10**64, -(10**64), 10**5000],
        *[math.nan, math.inf, -math.inf, 1e300, 1e-300],
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) or isinstance(value, bool) else "int",
)
def test_invalid_quantity_is_rejected_with_an_example(value: object) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(value)
    message = f"{caught.value}. {caught.value.fix()}"
    assert message.isascii()
    assert len(message) < 300
    assert caught.value.fix().startswith("Write ")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "empty text is not a quantity. Write 16Gi, or what is needed."),
        ("1K", '"1K" is not a quantity. Write 1Ki or 1k.'),
        ("1500mi", '"1500mi" is not a quantity. Write 1500Mi.'),
        ("250 m", '"250 m" is not a quantity. Write 250m.'),
        ("1,5", 'Write "1.5".'),
        ("One", 'Write "1".'),
        ("1e1000", '"1e1000" has an exponent beyond 99'),
        ("7" * 65, "text of 65 characters is too long"),
        (10**64, "the number is too large"),
        (True, "true or false is not a quantity"),
        (None, "nothing is not a quantity"),
        ({"cpu": 1}, "a mapping is not a quantity"),
    ],
)
def test_message_suggests_a_valid_quantity(value: object, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(value)
    assert message in f"{caught.value}. {caught.value.fix()}"


@pytest.mark.parametrize(
    ("text", "resource", "fix"),
    [
        ("2gb", "cpu", 'Write "2".'),
        ("1500mi", "cpu", "Write 1500m."),
        ("500 mCPU", "cpu", "Write 500m."),
        ("all", "cpu", "Write 4, or what is needed."),
        ("2gb", "nvidia.com/gpu", "Write 2."),
        ("A100:4", "nvidia.com/gpu", "Write 4."),
        ("a100", "nvidia.com/gpu", "Write 1, or what is needed."),
    ],
)
def test_fix_depends_on_the_resource(text: str, resource: str, fix: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert caught.value.fix(resource) == fix


def test_suggested_units_are_valid() -> None:
    for letter in "kmgtpe":
        with pytest.raises(QuantityError) as caught:
            parse(f"1{letter}B")
        _, binary, _, decimal = caught.value.fix().rstrip(".").split()
        assert parse(binary) > parse(decimal) > NANO


digits = st.text("0123456789", max_size=20)


@given(
    st.sampled_from(["", "+", "-"]),
    digits,
    st.none() | digits,
    st.sampled_from(sorted(FACTORS)) | st.tuples(st.sampled_from("eE"), st.integers(-99, 99)),
)
@example("-", "", "0000000001", "Ki")
@example("", str(CAP), "5", "")
@example("", str(CAP // 1024), "9999999", "Ki")
def test_parsed_value_agrees_with_arithmetic_on_fractions(
    sign: str, whole: str, fraction: str | None, unit: str | tuple[str, int]
) -> None:
    assume(whole or fraction)
    suffix = unit if isinstance(unit, str) else f"{unit[0]}{unit[1]}"
    text = f"{sign}{whole}{'' if fraction is None else '.' + fraction}{suffix}"
    factor = FACTORS[unit] if isinstance(unit, str) else Fraction(10) ** unit[1]
    nano = (Fraction(whole or 0) + Fraction(int(fraction or 0), 10 ** len(fraction or ""))) * factor * NANO
    if suffix.endswith("i"):
        nano = min(nano, Fraction(CAP * NANO))
    magnitude = math.ceil(nano)
    assert parse(text) == (-magnitude if sign == "-" else magnitude)


@given(st.text("0123456789.+-eEinumkKMGTP_ ", max_size=12) | st.text() | st.integers() | st.floats() | st.binary())
def test_any_value_is_a_quantity_or_a_quantity_error(value: object) -> None:
    try:
        result = parse(value)
    except QuantityError:
        return
    assert type(result) is int


@given(st.floats(min_value=0, max_value=1e15))
def test_float_is_parsed_as_the_decimal_that_was_written(value: float) -> None:
    assume(value == 0 or value > 1e-90)  # smaller floats have an exponent of three digits
    assert parse(value) == math.ceil(Fraction(repr(value)) * NANO)


@pytest.mark.parametrize(
    ("text", "units", "is_whole"),
    [("0", 0, True), ("2", 2, True), ("1500m", 2, False), ("1n", 1, False), ("-1500m", -2, False), ("-2", -2, True)],
)
def test_whole_units_are_rounded_away_from_zero(text: str, units: int, is_whole: bool) -> None:
    assert quantity.whole(parse(text)) == units
    assert quantity.is_whole(parse(text)) is is_whole


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0", "0"),
        ("1.5", "1500m"),
        ("-0.5", "-500m"),
        ("7n", "7n"),
        ("1000000", "1M"),
        ("4096Mi", "4Gi"),
    ],
)
def test_format_is_the_shortest_exact_text(text: str, shown: str) -> None:
    assert quantity.format(parse(text)) == shown


def test_format_of_a_sum_above_the_cap_stays_exact() -> None:
    assert quantity.format(Quantity(2 * parse("8E"))) == "16E"
    assert quantity.format(Quantity(16 * 2**60 * NANO)) == "16Ei"


@given(
    st.integers(-CAP * NANO, CAP * NANO)
    | st.builds(lambda n, unit: int(n * FACTORS[unit] * NANO), st.integers(-999, 999), st.sampled_from("EPTGMk"))
)
def test_parse_reads_what_format_writes(nano: int) -> None:
    assume(abs(nano) <= CAP * NANO)
    assert parse(quantity.format(Quantity(nano))) == nano
