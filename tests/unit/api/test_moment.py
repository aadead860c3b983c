from datetime import UTC, datetime

import pytest

from webhook.api import moment


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2027-02-01", datetime(2027, 2, 1, tzinfo=UTC)),
        ("2027-02-01T08:00Z", datetime(2027, 2, 1, 8, tzinfo=UTC)),
        ("2027-02-01T08:00:30Z", datetime(2027, 2, 1, 8, 0, 30, tzinfo=UTC)),
        ("2027-02-01T00:30:00+01:00", datetime(2027, 1, 31, 23, 30, tzinfo=UTC)),
        ("2027-01-31T20:00:00-05:00", datetime(2027, 2, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_day_begins_in_utc_and_a_time_names_its_zone(text: str, found: datetime) -> None:
    assert moment.parse(text) == found
    assert moment.parse(text).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "2027-02-01T08:00",
            "names no time zone: write 2027-02-01T08:00Z for UTC, or its distance as in 2027-02-01T08:00+01:00",
        ),
        ("2027-02-30", "is in no calendar"),
        ("2027-02-01T25:00Z", "is in no calendar"),
        ("0001-01-01T00:00+01:00", "is in no calendar"),
        *[
            (text, "is neither a day such as 2027-02-01 nor a time such as 2027-02-01T08:00:00Z")
            for text in (
                "",
                "soon",
                "2027",
                "20270201",
                "2027-W05-1",
                "01.02.2027",
                "2027-02-01 08:00Z",
            )
        ],
    ],
)
def test_what_is_no_moment(text: str, why: str) -> None:
    with pytest.raises(moment.MomentError) as error:
        moment.parse(text)
    assert str(error.value) == why
