"""The part of a namespace's quotas that other jobs in the namespace will still use."""

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


def test_time_spent_on_other_jobs_extends_the_time_limit_of_the_review(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promised_usage, "_CHARGES", WeakKeyDictionary())  # an empty cache
    until = time.thread_time() + 60
    monkeypatch.setattr(work_limit._decision, "until", until)
    limits: list[float] = []
    for name in ("charged_at_most", "pod_charges"):
        original = getattr(promised_usage, name)

        def recorded(*arguments: object, original: object = original, **named: object) -> object:
            limits.append(work_limit._decision.until)
            return original(*arguments, **named)  # type: ignore[operator]

        monkeypatch.setattr(promised_usage, name, recorded)
    view = cluster(quota({"pods": "100"}), changed({"metadata.name": "other"}), *pods("other", 1))
    validate(request(changed()), policy=load_policy(None), view=view, today=date.min)
    assert limits == [inf] * len(limits)
    assert len(limits) >= 2
    assert until <= work_limit._decision.until < until + 60
