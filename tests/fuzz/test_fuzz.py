"""Runs the fuzz targets on the stored corpus, and on inputs that hypothesis generates from it."""

import json
import signal
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import corpus
from tests.fuzz.targets import TARGETS
from tests.support.any_job import mangled_jobs
from tests.support.strategies import PROPERTY
from webhook import work_limit

JOBS = {"jobs", "patches"}


@pytest.fixture(autouse=True, scope="module")
def work_limit_of_the_server() -> Iterator[None]:
    """Each decision has the same work limit as in the server."""
    before = signal.getsignal(signal.SIGVTALRM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work_limit._decision, "armed", True)
        work_limit.arm()
        yield
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("name", TARGETS)
def test_stored_inputs_keep_the_guarantees(name: str) -> None:
    stored = corpus.inputs(name)
    assert stored
    for data in stored:
        TARGETS[name].run(data)


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in JOBS])
@given(data=st.data())
@settings(PROPERTY, max_examples=25)
def test_generated_texts_keep_the_guarantees(name: str, data: st.DataObject) -> None:
    TARGETS[name].run(data.draw(_texts(name)))


@pytest.mark.parametrize("name", sorted(JOBS))
@given(job=mangled_jobs())
@settings(PROPERTY, max_examples=15)
def test_generated_jobs_keep_the_guarantees(name: str, job: object) -> None:
    TARGETS[name].run(json.dumps(job).encode())


def _texts(name: str) -> st.SearchStrategy[bytes]:
    """Texts that mix parts of the corpus, words of the target and arbitrary characters."""
    stored = corpus.inputs(name)
    words = st.sampled_from([word.encode() for word in TARGETS[name].words.split()])
    anything = st.binary(max_size=8) | st.text(max_size=8).map(str.encode)
    pieces = st.tuples(st.sampled_from(stored), st.integers(0, 200), st.integers(0, 200)).map(
        lambda it: it[0][it[1] : it[2]]
    )
    mixed = st.lists(words | anything | pieces, max_size=12).map(b"".join)
    repeated = st.tuples(words | anything, st.integers(1, 300)).map(lambda it: (it[0] * it[1])[: corpus.MOST_BYTES])
    return mixed | repeated | st.sampled_from(stored)
