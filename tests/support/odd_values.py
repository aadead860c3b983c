"""Documents with values of unexpected types, for property tests."""

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.support.strategies import parent_of, paths

ODD = st.sampled_from([None, {}, [], "", "x", 0, -1, True, 1.5, [1], {"a": 1}, [{}], [[]], "sleep 1", ["sleep", {}]])


def changed(document: dict[str, Any], data: st.DataObject, *, depth: int = 9) -> dict[str, Any]:
    """A copy with up to three values of unexpected types, each less than `depth` levels deep."""
    job = deepcopy(document)
    near = [path for path in paths(job) if len(path) < depth]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(near))
        try:
            # Copied, because a shared value could contain itself after the next change.
            parent_of(job, path)[path[-1]] = deepcopy(data.draw(ODD))
        except (LookupError, TypeError):
            continue
    return job
