"""A controller's watch runs and has metrics. A watch that cannot read its resource is reported."""

import asyncio
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.job_lives import Seen
from tests.support.logs import Log
from tests.support.watch_api import until
from webhook.client.calls import ApiError
from webhook.client.live_view import LiveView
from webhook.controllers.reconciler import Reconciler
from webhook.controllers.ssh.removal import KeyRemoval
from webhook.parts.job_metrics.deadline_events import LAUNCHERS
from webhook.server import background
from webhook.server.controllers import run_reconciler, run_watch, start_key_removal
from webhook.server.ops import Readiness
from webhook.server.telemetry import Telemetry


class Refused(Seen[Any]):
    """A watch without permission to read."""

    known = False
    ran = 0

    async def run(self) -> Any:
        self.ran += 1
        self.reason = "forbidden: jobs.batch is forbidden"


async def test_unreadable_resource_is_a_concern_and_reviews_continue() -> None:
    watch, telemetry, readiness = Refused(LAUNCHERS), Telemetry(Log()), Readiness()
    around: Any = SimpleNamespace(telemetry=telemetry, readiness=readiness)
    async with AsyncExitStack() as stack:
        await run_watch(stack, around, watch)
        await until(lambda: watch.ran)
        concern = "[!]unknown-launchers: no information about launchers: forbidden: jobs.batch is forbidden"
        assert readiness.report() == f"{concern}\nreadyz check passed\n"
        assert telemetry.registry.get_sample_value("mpijob_webhook_cache_synced", {"kind": "launchers"}) == 0
        watch.known = True
        assert readiness.report() == "readyz check passed\n"
        watch.known, watch._not_found = False, True  # the resource is not installed
        assert readiness.report() == "readyz check passed\n"


async def test_state_of_a_controller_is_in_metrics_and_concerns() -> None:
    async def reconcile(key: str) -> None:
        if key == "bad":
            raise ApiError(403, "no right")

    telemetry, readiness, api = Telemetry(Log()), Readiness(), SimpleNamespace(requests=7)
    link = SimpleNamespace(faults={}, settled=asyncio.Event())
    link.settled.set()
    around: Any = SimpleNamespace(telemetry=telemetry, readiness=readiness, link=link)
    reconciler = Reconciler("tests", reconcile, log=telemetry.log)
    async with AsyncExitStack() as stack:
        caller: Any = api
        await run_reconciler(stack, around, reconciler, caller)
        reconciler.add("good")
        reconciler.add("bad")
        await until(lambda: reconciler.results.total() == 2)

        def value(name: str, **labels: str) -> float | None:
            return telemetry.registry.get_sample_value(
                f"mpijob_webhook_companion_{name}", {"companion": "tests", **labels}
            )

        assert value("reconciles_total", result="done") == value("reconciles_total", result="failed") == 1
        assert (value("requests_total"), value("failing"), value("waiting")) == (7, 1, 0)
        report = "[!]tests: 1 failed and will be tried again; the last: no right\nreadyz check passed\n"
        assert readiness.report() == report


async def test_removal_of_ssh_keys_is_restarted_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formerly, the removal ended silently after an unexpected answer."""
    monkeypatch.setattr(background, "RESTART_SECONDS", 0)
    runs = []

    async def run(_: object) -> None:
        runs.append(1)
        if len(runs) == 1:
            raise KeyError("metadata")
        await asyncio.Event().wait()

    monkeypatch.setattr(KeyRemoval, "run", run)
    telemetry, readiness, faults = Telemetry(Log()), Readiness(), dict[str, str]()
    view: Any = LiveView(SimpleNamespace(), log=Log(), resources=())  # type: ignore[arg-type]  # nothing is read
    link = SimpleNamespace(api=SimpleNamespace(now=lambda: 0.0), view=view, settled=asyncio.Event(), faults=faults)
    settings = SimpleNamespace(policy_namespace="own")
    around: Any = SimpleNamespace(telemetry=telemetry, readiness=readiness, link=link, settings=settings)
    async with AsyncExitStack() as stack:
        await start_key_removal(stack, around)
        for _ in range(10):
            await asyncio.sleep(0)
        assert runs == [], "the first lists are not complete yet"
        link.settled.set()
        await until(lambda: len(runs) == 2)
    assert list(faults) == ["key-removal"]
