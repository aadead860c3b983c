"""What the cache keeps of TrainJobs."""

from typing import Any

import msgspec
import pytest

from webhook.cluster.train_jobs import TRAIN_JOBS, TrainJobRecord

FAILED = {"type": "Failed", "status": "True"}


@pytest.mark.parametrize(
    ("more", "over"),
    [
        ({}, False),
        ({"status": {}}, False),
        ({"status": {"conditions": None}}, False),
        ({"status": {"conditions": [{"type": "Suspended", "status": "True"}]}}, False),
        ({"status": {"conditions": [{**FAILED, "status": "False"}]}}, False),
        ({"status": {"conditions": [{"type": "Suspended", "status": "False"}, FAILED]}}, True),
        ({"status": {"conditions": [{**FAILED, "type": "Complete"}]}}, True),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, True),
    ],
)
def test_whether_one_is_over(more: Any, over: bool) -> None:
    metadata = {"namespace": "team", "name": "a", "uid": "1", **more.get("metadata", {})}

    found = TRAIN_JOBS.project(msgspec.json.encode({"spec": {}, **more, "metadata": metadata}))

    assert found == TrainJobRecord("team", "a", "1", over)
