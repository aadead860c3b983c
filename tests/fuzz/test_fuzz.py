"""Whatever strangers write: the corpus that fuzzing left, and inputs that hypothesis leads to where they cost most."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis import target as leads_to

from tests.fuzz import corpus
from tests.fuzz.budget import Budget, OverBudget
from tests.fuzz.targets import TARGETS, Target
from tests.support.any_job import any_job
from tests.support.samples import sample
from tests.support.strategies import PROPERTY, mangled_jobs

JOBS = {"jobs", "patches"}
NAMES = pytest.mark.parametrize("name", TARGETS)


@NAMES
def test_the_corpus(name: str) -> None:
    target = TARGETS[name]
    kept = corpus.inputs(name)
    assert kept
    for data in kept:
        target.spend(data)


@NAMES
def test_files_are_small_and_have_the_names_of_their_content(name: str) -> None:
    for path in (corpus.FOLDER / name).iterdir():
        data = path.read_bytes()
        assert path.name == corpus.name_of(data)
        assert len(data) <= corpus.MOST_BYTES


def test_there_is_no_corpus_of_anything_else() -> None:
    assert {path.name for path in corpus.FOLDER.iterdir()} == set(TARGETS)


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in JOBS])
@given(data=st.data())
@settings(PROPERTY, max_examples=sample(25, 60))
def test_texts(name: str, data: st.DataObject) -> None:
    _spend(TARGETS[name], data.draw(_texts(name)))


@pytest.mark.parametrize("name", sorted(JOBS))
@given(job=any_job() | mangled_jobs())
@settings(PROPERTY, max_examples=sample(15, 30))
def test_jobs(name: str, job: object) -> None:
    _spend(TARGETS[name], json.dumps(job).encode())


def _spend(target: Target, data: bytes) -> None:
    """What costs more for each of its bytes is where hypothesis goes on."""
    leads_to(target.spend(data) / (len(data) + 100))


def _texts(name: str) -> st.SearchStrategy[bytes]:
    """Pieces of the corpus, words of the target, and anything."""
    kept = corpus.inputs(name)
    words = st.sampled_from([word.encode() for word in TARGETS[name].words])
    anything = st.binary(max_size=8) | st.text(max_size=8).map(str.encode)
    pieces = st.tuples(st.sampled_from(kept), st.integers(0, 200), st.integers(0, 200)).map(
        lambda it: it[0][it[1] : it[2]]
    )
    mixed = st.lists(words | anything | pieces, max_size=12).map(b"".join)
    repeated = st.tuples(words | anything, st.integers(1, 300)).map(lambda it: (it[0] * it[1])[: corpus.MOST_BYTES])
    return mixed | repeated | st.sampled_from(kept)


def test_what_costs_too_much_is_noticed() -> None:
    budget = Budget(lines=100, lines_per_byte=10, memory=10_000, memory_per_byte=10)
    assert budget.spend(len, b"x") < 20

    def quadratic(data: bytes) -> None:
        for _ in data:
            for _ in data:
                pass

    def endless(_: bytes) -> None:
        while True:
            pass

    with pytest.raises(OverBudget, match=r"more than 5,100 lines for 500 bytes, in .*quadratic"):
        budget.spend(quadratic, b"x" * 500)
    with pytest.raises(OverBudget, match=r"more than 110 lines for 1 bytes, in .*endless"):
        budget.spend(endless, b"x")
    with pytest.raises(OverBudget, match=r"bytes of memory for 1 bytes, more than 10,010"):
        budget.spend(lambda _: bytes(100_000), b"x")
