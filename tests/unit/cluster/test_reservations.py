"""What is written down of admitted jobs."""

import msgspec

from webhook.api.mpijob import WORKER
from webhook.api.quota_charges import Charge
from webhook.api.quota_scopes import ObjectTraits, PodTraits
from webhook.cluster.resources.reservations import Reservation, ReservedPods

WORKERS = ReservedPods(WORKER, 3, (Charge(PodTraits(priority_class="high"), {"cpu": 2**80}),))
OBJECTS = Charge(ObjectTraits(), {"services": 1})


def test_reservations_can_be_written_down() -> None:
    reservation = Reservation("u", "train", (WORKERS,), (OBJECTS,))
    assert msgspec.json.decode(msgspec.json.encode(reservation), type=Reservation) == reservation
