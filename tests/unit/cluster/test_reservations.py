"""What is written down of admitted jobs."""

import msgspec

from tests.unit.predict.quota.test_outstanding import reserved
from webhook.cluster.resources.reservations import Reservation


def test_reservations_can_be_written_down() -> None:
    text = msgspec.json.encode(reserved(3))
    assert msgspec.json.decode(text, type=Reservation) == reserved(3)
