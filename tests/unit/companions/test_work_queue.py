"""The queue against a model of it: what is due first comes first, once, and never twice at a time."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from webhook.companions.work_queue import WorkQueue

KEYS = st.sampled_from("abcd")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS, st.integers(0, 9)),
        st.tuples(st.just("take"), st.integers(0, 9)),
        st.tuples(st.just("done"), KEYS),
    ),
    max_size=60,
)


def test_keys_are_taken_in_the_order_of_their_times() -> None:
    queue = WorkQueue[str]()
    for key, due in (("late", 3), ("early", 1), ("middle", 2), ("also-early", 1)):
        queue.add(key, due)
    assert queue.take(0) is None
    assert queue.next_due() == 1
    assert [queue.take(9) for _ in range(5)] == ["early", "also-early", "middle", "late", None]
    assert queue.next_due() == inf


def test_a_key_that_changes_while_it_is_worked_on_is_worked_on_once_more_afterwards() -> None:
    queue = WorkQueue[str]()
    queue.add("a", 0)
    assert queue.take(0) == "a"
    queue.add("a", 0)
    queue.add("a", 0)
    assert queue.take(9) is None
    assert len(queue) == queue.ready(0) == 1
    queue.done("a")
    assert queue.take(9) == "a"
    queue.done("a")
    assert queue.take(9) is None
    assert len(queue) == 0


@given(STEPS)
def test_it_behaves_as_a_table_of_times(steps: list[tuple[object, ...]]) -> None:
    queue, due, at_work = WorkQueue[str](), dict[str, float](), set[str]()
    for step in steps:
        match step:
            case ("add", str(key), int(at)):
                queue.add(key, at)
                due[key] = min(at, due.get(key, inf))
            case ("take", int(now)):
                waiting = {key: at for key, at in due.items() if key not in at_work and at <= now}
                taken = queue.take(now)
                assert (taken is None) is (not waiting)
                if taken is not None:
                    assert waiting[taken] == min(waiting.values())
                    del due[taken]
                    at_work.add(taken)
            case ("done", str(key)) if key in at_work:
                queue.done(key)
                at_work.discard(key)
        assert len(queue) == len(due.keys() | at_work)
        assert queue.ready(5) == len({key for key, at in due.items() if at <= 5} | at_work)
        assert queue.next_due() == min((at for key, at in due.items() if key not in at_work), default=inf)
