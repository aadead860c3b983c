"""Documents with values of unexpected types, for property tests."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

ODD = st.sampled_from([None, {}, [], "", "x", 0, -1, True, 1.5, [1], {"a": 1}, [{}], [[]], "sleep 1", ["sleep", {}]])


def positions(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from positions(item, (*path, key))


def changed(document: dict[str, Any], data: st.DataObject, *, depth: int = 9) -> dict[str, Any]:
    """A copy with up to three values of unexpected types, each less than `depth` levels deep."""
    job = deepcopy(document)
    near = [path for path in positions(job) if len(path) < depth]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(near))
        target: Any = job
        try:
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = deepcopy(data.draw(ODD))  # a shared value could contain itself after the next change
        except (LookupError, TypeError):
            continue
    return job
