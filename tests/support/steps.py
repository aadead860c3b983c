"""How much is done in the reviews of a job, counted in calls of functions: that depends on no machine's speed."""

import gc
import json
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

from tests.support.jobs import request
from webhook.admission import pipelines
from webhook.cluster.view import ClusterView


def calls(job: Any, policy: pipelines.Policy, view: ClusterView) -> int:
    """How many functions the reviews of a job call, of Python and of C."""
    return calls_of(lambda: reviews(job, policy, view))


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, of Python and of C."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    gc.disable()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def reviews(job: Any, policy: pipelines.Policy, view: ClusterView) -> None:
    job["metadata"]["namespace"] = "team-0000"
    older = json.loads(json.dumps(job))
    older["spec"]["slotsPerWorker"] = 5
    for fields in ({}, {"old": older}):
        asked = request(job, **fields)
        pipelines.mutate(asked, policy=policy, view=view)
        pipelines.validate(asked, policy=policy, view=view, today=date.min)
