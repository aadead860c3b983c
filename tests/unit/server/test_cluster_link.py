"""What the link to the cluster runs goes on, whatever happens to it, and is told of."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import RawTestServer

from tests.support.logs import Log
from tests.support.object_api import kubeconfig
from tests.support.watch_api import FakeApi, refused, until
from webhook.client.live_view import LiveView
from webhook.client.watch import Watch
from webhook.companions.reservations.ledger import QuotaLedger
from webhook.server import background
from webhook.server.cluster_link import ClusterLink, linked
from webhook.server.policy_watch import PolicyWatch


@asynccontextmanager
async def link_to_nothing(folder: Path, log: Log) -> AsyncIterator[ClusterLink]:
    """To an API server that refuses everything."""
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
async def test_what_fails_is_begun_again_and_is_a_concern(
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
        assert link.concerns()[f"background-{name}"].startswith("it failed and was begun again: KeyError at ")
    assert [level for level, event, _ in log.lines if event == name] == ["error"]
    assert "object" not in str(log.lines)


async def test_the_list_of_policies_goes_on_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        pytest.param({}, set(), "", id="all works"),
        pytest.param({"namespaces": 151}, {"namespaces"}, "namespaces", id="one cache that chooses the policy"),
        pytest.param({"policies": 400}, {"policies"}, "policies", id="the policies"),
        pytest.param({"nodes": 400}, {"nodes"}, "", id="another cache"),
        pytest.param({"namespaces": 240, None: 160}, {"namespaces", "policies", "nodes"}, "", id="an outage"),
        pytest.param(
            {"namespaces": 400, None: 160}, {"namespaces", "policies", "nodes"}, "namespaces", id="and after it"
        ),
    ],
)
async def test_a_stale_cache_is_named_and_keeps_from_readiness_only_while_others_are_fresh(
    tmp_path: Path, ages: dict[str | None, float], stale: set[str], unready: str
) -> None:
    async with link_to_nothing(tmp_path, Log()) as link:
        watches = [each for each in link.watches if each.kind.name in {"namespaces", "policies", "nodes"}]
        for watch in watches:
            age = ages.get(watch.kind.name, ages.get(None, 0))
            watch.synced, watch._contact, watch.reason = True, -age, "server-error: x"
            watch._clock = lambda: 0.0
        looked_at = replace(link, watches=tuple(watches))
        assert {name for name in looked_at.concerns() if "stale-" in name} == {f"stale-{name}" for name in stale}
        assert looked_at.misleading_caches().partition(" ")[0] == unready
