from datetime import timedelta

import pytest

from certs.rotation import RotationSettings

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"leaf_lifetime": 31 * DAY}, "leaf_lifetime must be at most 30 days"),
        ({"leaf_lifetime": timedelta(0)}, "leaf_lifetime must be more than 0"),
        ({"ca_lifetime": -DAY}, "ca_lifetime must be more than 0"),
        ({"grace": -DAY}, "grace must not be negative"),
        ({"backdate": -DAY}, "backdate must not be negative"),
        ({"ca_lifetime": 42 * DAY}, "ca_lifetime must be at least three times leaf_lifetime and grace together"),
    ],
)
def test_invalid_or_contradictory_times_are_rejected(change, fault):
    with pytest.raises(ValueError, match=f"^{fault}$"):
        RotationSettings(name="test CA", **change)


def test_short_times_are_accepted():
    RotationSettings(
        name="test CA",
        ca_lifetime=timedelta(seconds=90),
        leaf_lifetime=timedelta(seconds=20),
        grace=timedelta(seconds=5),
    )
