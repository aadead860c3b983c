"""Stored reservations of quota: small, readable by every replica, and limited in size."""

import msgspec
import pytest

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.quota_charges import Charge
from webhook.api.quota_scopes import ClaimTraits, PodTraits
from webhook.cluster.limits import MAX_LEDGER_BYTES, MAX_RESERVATION_BYTES
from webhook.cluster.resources.reservations import LedgerEntry, Reservation, ReservedPods, decode, encode

POD = Charge(PodTraits(), {"pods": 10**9, "requests.cpu": 16 * 10**9, "requests.nvidia.com/gpu": 8 * 10**9})
LAUNCHER_POD = Charge(PodTraits(best_effort=None, priority_class=None), {"pods": 10**9})
CLAIM = Charge(ClaimTraits("fast"), {"requests.storage": 10**19})
OBJECT = Charge(PodTraits(), {"count/services": 10**9})


def entry(name: str, *charges: Charge, expires: float = 1_000_000_030.5) -> LedgerEntry:
    pods = (ReservedPods(LAUNCHER, 1, (LAUNCHER_POD,)), ReservedPods(WORKER, 12, charges or (POD, CLAIM)))
    uid = f"705ab4f5-6393-11e8-b7cc-{name:0>12.12}"
    return LedgerEntry(Reservation(uid, name, pods, (OBJECT,)), expires)


def test_written_reservations_are_read_back() -> None:
    entries = (entry("a"), entry("b", POD), LedgerEntry(Reservation("u", "no-pods"), 7.0))
    text, left_out = encode(entries)
    assert left_out == []
    assert decode(text) == entries
    assert encode(decode(text)) == (text, [])


def test_reservations_of_two_thousand_similar_jobs_fit_into_one_ledger() -> None:
    """Formerly, an entry had 608 bytes, and 250 of a thousand jobs were rejected despite enough quota."""
    text, left_out = encode(entry(f"train-{number}") for number in range(2_000))
    assert left_out == []
    assert len(text) < MAX_LEDGER_BYTES
    assert len(decode(text)) == 2_000


def test_jobs_that_do_not_fit_are_named_and_the_size_is_limited() -> None:
    text, left_out = encode(entry(f"train-{number}") for number in range(5_000))
    assert len(text) <= MAX_LEDGER_BYTES + 30
    assert left_out
    assert len(decode(text)) + len(left_out) == 5_000


RESOURCES = Charge(PodTraits(), {f"requests.example.com/resource-{number}": 1 for number in range(300)})


@pytest.mark.parametrize(
    "greedy",
    [entry("greedy", RESOURCES), entry("greedy" * 2_000), LedgerEntry(Reservation("u" * 20_000, "greedy"), 7.0)],
    ids=["resources", "name", "uid"],
)
def test_one_job_cannot_use_all_the_space(greedy: LedgerEntry) -> None:
    text, left_out = encode([greedy, entry("modest")])
    assert left_out == [greedy.reservation.name]
    assert len(text) < MAX_RESERVATION_BYTES
    assert [job.reservation.name for job in decode(text)] == ["modest"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"table":[],"jobs":[["u","n",1,[[1,0]]]]}'])
def test_invalid_annotation_is_an_error(text: str) -> None:
    with pytest.raises((msgspec.DecodeError, LookupError)):
        decode(text)
