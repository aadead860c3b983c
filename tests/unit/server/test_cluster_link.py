"""The link to the API server restarts its background tasks after each fault and reports the fault."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest
from aiohttp.test_utils import RawTestServer

from tests.support import jobs
from tests.support.custom_rules import document, rule
from tests.support.logs import Log
from tests.support.object_api import kubeconfig
from tests.support.watch_api import FakeApi, refused, until
from webhook.client.live_view import LiveView
from webhook.client.watch import Watch
from webhook.client.wire import FaultReason, Page, PageMetadata, WatchFault
from webhook.cluster.view import NothingKnown
from webhook.controllers.reservations.ledger import QuotaLedger
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import read
from webhook.server import background, cluster_link
from webhook.server.cluster_link import ClusterLink, linked, policy_impact
from webhook.server.policy_watch import PolicyWatch
from webhook.work_limit import TooExpensive


@asynccontextmanager
async def link_to_nothing(folder: Path, log: Log) -> AsyncIterator[ClusterLink]:
    """A link to an API server that answers every list with an error."""
    api = FakeApi()
    api.lists = [refused(500)]
    async with RawTestServer(api.handle) as server:
        config = kubeconfig(folder / "config", str(server.make_url("")).rstrip("/"))
        async with linked(
            config, namespace="ns", kueue_namespace="kueue", base=(), apply=lambda *_: None, log=log
        ) as link:
            yield link


@pytest.mark.parametrize(
    ("work", "method", "name"),
    [
        (LiveView, "run", "caches"),
        (PolicyWatch, "run", "policies"),
        (QuotaLedger, "run", "quota-ledger"),
        (LiveView, "settled", "first-lists"),
    ],
)
async def test_failed_task_is_restarted_and_is_a_concern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: type[Any], method: str, name: str
) -> None:
    monkeypatch.setattr(background, "RESTART_SECONDS", 0)
    runs = []

    async def run(_: object) -> None:
        runs.append(1)
        if len(runs) == 1:
            raise KeyError("the text of an object")
        await asyncio.Event().wait()

    monkeypatch.setattr(work, method, run)
    log = Log()
    async with link_to_nothing(tmp_path, log) as link:
        await until(lambda: len(runs) == 2)
        assert link.concerns()[f"background-{name}"].startswith("it failed and was restarted: KeyError at ")
    assert [level for level, event, _ in log.lines if event == name] == ["error"]
    assert "object" not in str(log.lines)


async def test_watch_of_policies_is_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RESTART_SECONDS", 0)
    runs = []

    async def run(watch: Watch[Any, Any]) -> None:
        if watch.kind.name == "policies":
            runs.append(1)
            raise KeyError
        await asyncio.Event().wait()

    monkeypatch.setattr(Watch, "run", run)
    async with link_to_nothing(tmp_path, Log()) as link:
        await until(lambda: len(runs) > 1)
        assert "background-policy-list" in link.concerns()


@pytest.mark.parametrize(
    ("ages", "stale", "unready"),
    [
        ({}, set(), ""),
        ({"namespaces": 151}, {"namespaces"}, "namespaces"),  # the labels of namespaces select policies
        ({"policies": 400}, {"policies"}, "policies"),
        ({"nodes": 400}, {"nodes"}, ""),
        ({"namespaces": 240, None: 160}, {"namespaces", "policies", "nodes"}, ""),  # an outage
        ({"namespaces": 400, None: 160}, {"namespaces", "policies", "nodes"}, "namespaces"),  # after an outage
    ],
)
async def test_stale_cache_prevents_readiness_only_while_other_caches_are_fresh(
    tmp_path: Path, ages: dict[str | None, float], stale: set[str], unready: str
) -> None:
    """In an outage of the API server all caches become stale together. The replicas must stay ready."""
    async with link_to_nothing(tmp_path, Log()) as link:
        watches = [each for each in link.watches if each.kind.name in {"namespaces", "policies", "nodes"}]
        for watch in watches:
            age = ages.get(watch.kind.name, ages.get(None, 0))
            watch.synced, watch._contact, watch.reason = True, -age, "server-error: x"
            watch._clock = lambda: 0.0
        looked_at = replace(link, watches=tuple(watches))
        assert {name for name in looked_at.concerns() if "stale-" in name} == {f"stale-{name}" for name in stale}
        assert looked_at.misleading_caches().partition(" ")[0] == unready


JOB = msgspec.Raw(msgspec.json.encode(jobs.GOOD))
UNKNOWN = "impact not computed: existing jobs"


class Lists:
    """A list of jobs that returns these pages and hangs after the last page."""

    def __init__(self, *pages: list[msgspec.Raw] | Exception) -> None:
        self.pages = list(pages)

    async def list_page(self, _: str) -> Page[msgspec.Raw]:
        if not self.pages:
            await asyncio.Event().wait()
        page = self.pages.pop(0)
        if isinstance(page, Exception):
            raise page
        return Page(PageMetadata("7", f"after {len(self.pages)}"), page)


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        (Lists(), f"{UNKNOWN} were not listed in time"),
        (Lists(WatchFault(FaultReason.FORBIDDEN, "no")), f"{UNKNOWN} cannot be listed (forbidden: no)"),
    ],
)
async def test_impact_is_not_computed_without_a_list_of_jobs(lists: Any, expected: str) -> None:
    assert await impact(lists) == [expected]


async def test_partial_impact_is_reported_as_partial() -> None:
    """Formerly, a change of a policy failed, because reading all jobs took longer than the API server waits (10 s)."""
    (line,) = await impact(Lists([JOB] * 20))
    assert re.fullmatch(r"would newly deny none of the first \d+ jobs", line)


async def impact(lists: Any, *layers: Layer, seconds: float = 0.5) -> list[str]:
    return await policy_impact(
        lists,
        before=PolicySet(),
        after=PolicySet(layers),
        view=NothingKnown(),
        today=date(2026, 11, 21),
        time_left=lambda: seconds,
    )


class OnePage:
    """A list of jobs that has one page."""

    async def list_page(self, _: str) -> Page[msgspec.Raw]:
        return Page(PageMetadata("7", ""), [JOB])


async def test_impact_includes_custom_rules() -> None:
    layer = Layer("mine", read(document(rule("job.workers < 1")), policy_model()))
    assert await impact(OnePage(), layer, seconds=60) == ["would newly deny 1 of 1 jobs: custom/mine 1 (team-a/train)"]


async def test_too_expensive_job_is_counted_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_expensive(_: object) -> NoReturn:
        raise TooExpensive

    monkeypatch.setattr(cluster_link, "limited", too_expensive)
    assert await impact(OnePage()) == ["would newly deny none of 0 jobs; 1 more are too expensive to judge"]
