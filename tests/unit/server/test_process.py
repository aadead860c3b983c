"""The process: core dumps, garbage collection and imports."""

import asyncio
import gc
import subprocess
import sys

import pytest

from tests.support.paths import ROOT
from webhook.server.process import _freeze

LIMITS = """
import ctypes, resource
from webhook.server import process
PR_GET_DUMPABLE = 3

async def serve(settings):
    print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0))
    return 0

process.serve = serve
process.run(None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has prctl")
def test_crash_writes_no_core_file() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITS], capture_output=True, text=True, check=True)
    assert done.stdout == "(0, 0) 0\n"


async def test_garbage_collector_ignores_caches_after_they_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(gc, "set_threshold", lambda *portions: calls.append(f"by {portions}"))
    settled = asyncio.Event()
    task = asyncio.create_task(_freeze(settled))
    await asyncio.sleep(0)
    assert calls == []
    settled.set()
    await task
    assert calls == ["collect", "freeze", "by (1000, 2, 300)"]


LOADED = """
import sys
from datetime import date
from webhook.server.process import _load_for_good
_load_for_good()
from webhook.predict import other_jobs
other_jobs.all_kinds()  # the service loads them when it starts
from tests.bench.replies.cases import clusters
from tests.support.hostile import SHAPES
from tests.support.jobs import body, changed
from webhook.admission import pipelines
from webhook.api import review
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import PolicySet
before = {name for name in sys.modules if name.startswith("webhook")}
view = Snapshot(clusters()[1])
for job in (changed(), *(make(3_000) for make in SHAPES.values())):
    for hook in ("mutate", "validate"):
        for old in (None, changed()):
            request = review.decode(body(job, old=old))
            pipelines.decide(hook, request, policies=PolicySet(), view=view, today=date.min)
print(sorted({name for name in sys.modules if name.startswith("webhook")} - before))
"""


def test_decision_imports_nothing() -> None:
    """The limit on processor time could interrupt an import and leave a partial module."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"
