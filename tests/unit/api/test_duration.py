import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import PROPERTY
from webhook.api import annotations, duration
from webhook.api.duration import DurationError
from webhook.api.limits import MAX_DURATION_CHARACTERS

UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("72h", 259_200),
        ("0h1s", 1),
        ("1.5h", 5_400),
        ("007d", 604_800),
        ("24855d3h14m7s", 2**31 - 1),
        ("2147483647s", 2**31 - 1),
    ],
)
def test_valid_duration_is_parsed(text, seconds):
    assert duration.parse(text) == seconds


@pytest.mark.parametrize(
    ("texts", "fault"),
    [
        (
            ["", " ", "h", "3 days", "1h 30m", " 1h", "1h\n", "1H", "-1h", "+1h", "1hour", "1h30", "1e3s", "0x10s"],
            "is not a duration like 72h or 7d",
        ),
        (
            ["1_0s", ".5h", "5.h", "1..5h", "1w", "1ms", "\u0661h", "\uff11h", "1\u210e", "inf", "1h" * 9, "1" * 17],
            "is not a duration like 72h or 7d",
        ),
        (["0", "3600", "1.5", "1" * 16], "needs a unit, for example 72h or 7d"),
        (["0s", "0d0h0m0s", "0.0h"], "is zero"),
        (["0.5s", "1.0001h", "0.1m0.01s"], "is not whole seconds"),
        (["2147483648s", "24856d", "99999999999999d"], "is longer than 24855d"),
    ],
)
def test_invalid_duration_is_rejected(texts, fault):
    for text in texts:
        with pytest.raises(DurationError) as error:
            duration.parse(text)
        assert str(error.value) == fault, text


@PROPERTY
@given(st.lists(st.tuples(st.integers(0, 999), st.sampled_from("dhms")), min_size=1, max_size=4))
def test_duration_is_the_sum_of_its_parts(parts):
    seconds = sum(number * UNITS[unit] for number, unit in parts)
    text = "".join(f"{number}{unit}" for number, unit in parts)
    if seconds:
        assert duration.parse(text) == seconds
    else:
        with pytest.raises(DurationError):
            duration.parse(text)


@PROPERTY
@given(st.text(max_size=30) | st.text("0123456789.dhms", max_size=20))
def test_any_text_is_a_bounded_duration_or_an_error(text):
    try:
        seconds = duration.parse(text)
    except DurationError:
        return
    assert 1 <= seconds <= duration.MAX_SECONDS
    assert text.isascii()
    assert len(text) <= MAX_DURATION_CHARACTERS


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("72h", 'key "72h"'),
        ("twelve chars", 'key "twelve chars"'),
        ("thirteen char", 'key "thirteen ..."'),
        ("a\nb\x1b\u202e\x00", 'key "a?b???"'),
        ("\u00e9", 'key "\u00e9"'),
    ],
)
def test_annotation_in_a_message_is_cut_and_escaped(value, shown):
    assert annotations.mention("key", value) == shown


@given(st.integers(1, duration.MAX_SECONDS))
def test_written_duration_is_read_back(seconds):
    assert duration.parse(duration.spell(seconds)) == seconds


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (5400, "1h30m"), (259_200, "3d"), (90_061, "1d1h1m1s")])
def test_seconds_are_written_as_a_duration(seconds, text):
    assert duration.spell(seconds) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [("3 days", "3d"), ("1h 30min", "1h30m"), ("7D", "7d"), ("90", None), ("soon", None)],
)
def test_intended_duration_is_suggested(text: str, written: str | None) -> None:
    assert duration.meant(text) == written
