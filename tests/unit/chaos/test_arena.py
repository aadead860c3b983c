"""What the chaos tests go by: when a replica is worse than it was, and which faults go together."""

from dataclasses import replace
from random import Random

import pytest

from tests.chaos.arena import MEGABYTE, SPARE_MEMORY, Vitals
from tests.chaos.cases import Case
from tests.chaos.faults import EXCLUSIVE, FAULTS, drawn
from tests.chaos.traffic import difference

FIRST = Vitals(descriptors=60, tasks=70, memory=100 * MEGABYTE, synced=frozenset({"pods", "nodes"}))


@pytest.mark.parametrize(
    ("now", "text"),
    [
        ({}, ""),
        ({"descriptors": 62, "tasks": 71, "memory": 101 * MEGABYTE}, ""),
        ({"synced": frozenset({"pods", "nodes", "jobs"})}, ""),
        ({"descriptors": 600}, "descriptors: 600 instead of 60"),
        ({"tasks": 700}, "tasks: 700 instead of 70"),
        ({"memory": 101 * MEGABYTE + SPARE_MEMORY}, "memory: 206,569,472 instead of 104,857,600"),
        ({"synced": frozenset({"pods"}), "tasks": 700}, "tasks: 700 instead of 70; unknown: nodes"),
    ],
)
def test_what_is_worse(now: dict[str, object], text: str) -> None:
    assert replace(FIRST, **now).worse_than(FIRST) == text  # type: ignore[arg-type]


def test_faults_that_would_wait_for_each_other_are_never_drawn_together() -> None:
    rng = Random(1)
    rounds = [drawn(rng, 3) for _ in range(500)]
    assert {name for names in rounds for name in names} == {*FAULTS}
    assert all(len({*names} & group) <= 1 for names in rounds for group in EXCLUSIVE)
    assert {len(names) for names in rounds} == {1, 2, 3}
    assert all(group <= {*FAULTS} for group in EXCLUSIVE)


def test_the_same_seed_draws_the_same() -> None:
    assert [drawn(Random(7), 3) for _ in range(20)] == [drawn(Random(7), 3) for _ in range(20)]


def test_a_wrong_reply_is_shown_beside_the_right_one() -> None:
    assert difference(Case("gpus", "/x", b"", b"yes"), b"no") == "gpus\n  offline yes\n  service no"
