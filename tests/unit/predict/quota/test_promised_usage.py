"""The share of a namespace's quotas that its other jobs will use."""

import time
from datetime import date
from math import inf
from weakref import WeakKeyDictionary

import pytest

from tests.support.jobs import changed, request
from tests.support.quota_objects import cluster, pods, quota
from webhook import work_limit
from webhook.admission.pipelines import load_policy, validate
from webhook.predict.quota import promised_usage


def test_the_time_for_the_jobs_of_others_does_not_count_for_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promised_usage, "_CHARGES", WeakKeyDictionary())  # as if no test had seen such a job
    until = time.thread_time() + 60
    monkeypatch.setattr(work_limit._decision, "until", until)
    seen: list[float] = []
    for name in ("charged_at_most", "pod_charges"):
        original = getattr(promised_usage, name)

        def noted(*arguments: object, original: object = original, **named: object) -> object:
            seen.append(work_limit._decision.until)
            return original(*arguments, **named)  # type: ignore[operator]

        monkeypatch.setattr(promised_usage, name, noted)
    view = cluster(quota({"pods": "100"}), changed({"metadata.name": "other"}), *pods("other", 1))
    validate(request(changed()), policy=load_policy(None), view=view, today=date.min)
    assert seen == [inf] * len(seen)
    assert len(seen) >= 2
    assert until <= work_limit._decision.until < until + 60
