"""Records of injections that are made to be costly: how much is read for them."""

import json
from typing import Any

import pytest

from tests.support.injecting import mpijob, mutate, pod_spec
from webhook.admission import places, too_large
from webhook.api import networks
from webhook.api.annotations import INJECTED
from webhook.api.networks import NETWORKS

ITEMS = [{"key": f"k{number}", "path": f"p{number}"} for number in range(12_000)]
LARGE = {"volumes": [{"name": "v", "configMap": {"name": "c", "items": ITEMS}}]}
SIZE = len(json.dumps(LARGE))
VOLUME = "Launcher:/spec/volumes/0"


def job(recorded: list[str], **spec: Any) -> dict[str, Any]:
    annotations = {INJECTED: json.dumps({"istio": recorded})}
    return mpijob(metadata={"annotations": annotations}, launcher={"spec": pod_spec(**spec)})


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of what is read for checksums."""
    lengths: list[int] = []
    crc32 = places.crc32

    def note(data: bytes) -> int:
        lengths.append(len(data))
        return crc32(data)

    monkeypatch.setattr(places, "crc32", note)
    return lengths


RECORDS = {
    "one place": ["/spec 00000000"] * 128,
    "one place in many ways": [f"/spec {number:08}" for number in range(128)],
    "one inside the other": [f"{path} {number:08}" for number in range(32) for path in ("/spec", "Launcher:/spec")],
    "items": [f"{VOLUME}/configMap/items/- {number:08}" for number in range(128)],
}


@pytest.mark.parametrize("recorded", RECORDS.values(), ids=RECORDS)
def test_only_so_much_is_read(recorded: list[str], read: list[int]) -> None:
    forged = job(recorded, **LARGE)
    assert mutate(forged).patch != []
    # Twice: what there was, and what of it is left beside what is injected.
    assert SIZE / 2 < sum(read) < 2 * (places._MOST_READ + 2 * SIZE)
    read.clear()
    mutate(job([], **LARGE), operation="UPDATE", stored=forged)
    assert sum(read) < places._MOST_READ + 2 * SIZE


def test_a_place_in_a_large_job_is_found() -> None:
    checksum = places.checksum(LARGE["volumes"][0])
    again = mutate(job([]), operation="UPDATE", stored=job([f"Launcher:/spec/volumes/name=v {checksum}"], **LARGE))
    assert again.patch[0]["path"] == "/spec/mpiReplicaSpecs/Launcher/template/spec/volumes"


def test_a_list_is_sorted_by_few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_by: list[str] = []
    named = places.Lists._named

    def note(self: places.Lists, items: list[Any], key: str) -> Any:
        sorted_by.append(key)
        return named(self, items, key)

    monkeypatch.setattr(places.Lists, "_named", note)
    mutate(job([f"{VOLUME}/configMap/items/k{number}=a 00000000" for number in range(128)], **LARGE))
    assert sorted_by
    assert len(sorted_by) * len(ITEMS) <= 2 * places._MOST_READ / places._OF_ITEM


class TestNetworks:
    """Each that has gone is put back into the text, which is read again for that."""

    NAMES = tuple(f"x/n{number}" for number in range(60))

    def lost(self, key: str, others: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int]:
        """The update of a job with so many other networks, and how many networks were read in it."""
        count = 0
        selected = networks._selected

        def note(item: str) -> Any:
            nonlocal count
            count += 1
            return selected(item)

        monkeypatch.setattr(networks, "_selected", note)
        escaped = key.replace("/", "~1")
        recorded = [
            f"/metadata/annotations/{escaped}/{name.replace('/', '~1')} {places.checksum(name)}" for name in self.NAMES
        ]
        stored, new = job(recorded), job(recorded)
        new["metadata"]["annotations"][key] = ", ".join(["a/b"] * others)
        stored["metadata"]["annotations"][key] = ", ".join([*["a/b"] * others, *self.NAMES])
        return mutate(new, operation="UPDATE", stored=stored), count

    def test_come_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        decision, _ = self.lost(NETWORKS, 50, monkeypatch)
        assert len(decision.patch) == len(self.NAMES)

    @pytest.mark.parametrize("key", [NETWORKS, "x.example.com/list"])
    def test_a_longer_text_than_any_pod_has_is_not_read(self, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
        decision, count = self.lost(key, 10_000, monkeypatch)
        assert decision.patch == []
        assert count < 1_000

    @pytest.mark.parametrize("key", [NETWORKS, "x.example.com/list"])
    def test_the_longest_that_is_read(self, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
        _, count = self.lost(key, places._MOST_COMMAS - 60, monkeypatch)
        assert count < 6 * len(self.NAMES) * places._MOST_COMMAS


def test_a_stored_job_that_is_too_large_is_not_read(read: list[int]) -> None:
    stored = job(["/spec 00000000"], volumes=[[]] * 800_000)
    decision = mutate(mpijob(), operation="UPDATE", stored=stored)
    assert (decision.skipped, decision.patch) == (too_large.INJECT_NOTHING, [])
    assert read == []
