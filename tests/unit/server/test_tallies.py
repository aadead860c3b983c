"""The hot path's metrics read as prometheus_client's own do."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from webhook.server.tallies import Durations, Tally

BUCKETS = (0.001, 0.05, 1, 2.5)
LABELS = st.tuples(st.sampled_from(["gpus", "slots"]), st.sampled_from(["deny", "warn"]))


def without_created(registry: CollectorRegistry) -> list[bytes]:
    """The library's own also say when each series began, which nothing of ours asks for."""
    return [line for line in generate_latest(registry).splitlines() if b"_created" not in line]


@given(st.lists(st.tuples(LABELS, st.integers(1, 5)), min_size=1))
def test_a_tally_reads_as_a_counter(steps: list[tuple[tuple[str, str], int]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    tally = Tally("findings_total", "Findings.", ("rule", "action"), registry=ours)
    counter = Counter("findings_total", "Findings.", ("rule", "action"), registry=theirs)
    for labels, number in steps:
        tally.add(labels, number)
        counter.labels(*labels).inc(number)
    assert without_created(ours) == without_created(theirs)


SECONDS = st.one_of(st.sampled_from(BUCKETS), st.floats(0, 10))


@given(st.lists(st.tuples(st.sampled_from(["mutate", "validate"]), SECONDS), min_size=1))
def test_durations_read_as_a_histogram(observed: list[tuple[str, float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    durations = Durations("seconds", "How long.", "webhook", BUCKETS, registry=ours)
    histogram = Histogram("seconds", "How long.", ("webhook",), buckets=BUCKETS, registry=theirs)
    for webhook, seconds in observed:
        durations.add(webhook, seconds)
        histogram.labels(webhook).observe(seconds)
    assert without_created(ours) == without_created(theirs)
