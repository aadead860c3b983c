"""The effect of API server faults on reading, storing and announcing policies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tests.support.logs import Log
from tests.support.policies import HEADER
from tests.support.watched_policies import Api, FakeWatch, copy, following
from webhook.client.calls import ApiError, ClusterError
from webhook.cluster.contents import Contents
from webhook.policy.store import REMEMBERED, PolicySource
from webhook.server import background
from webhook.server.policy_watch import PolicyWatch

GOOD = HEADER + "rules: {gpus: {max: 4}}"
BROKEN = HEADER + "mode: loud"
CONFIGMAP = f"/api/v1/namespaces/ns/configmaps/{REMEMBERED}"


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("version", "written", "expected"),
    [
        ({"major": "1", "minor": "32+"}, "latest", "v1.32"),
        ({"major": "1", "minor": "35"}, "v1.30", "v1.30"),
        ({"major": "1", "minor": ""}, "latest", "latest"),
        ({}, "latest", "latest"),
        (None, "latest", "latest"),
    ],
)
async def test_cluster_version_is_read_from_the_api_server(
    version: dict[str, Any] | None, written: str, expected: str
) -> None:
    api = Api()
    api.version = version
    async with following(api) as (watch, applied, _):
        watch.now(a=HEADER + f"rules: {{pod-security: {{clusterVersion: {written}}}}}")
        await settle()
    (policies, _), *_ = applied
    settings: Any = policies.for_any_namespace().settings("pod-security")
    assert settings.cluster_version == expected


async def test_valid_policy_is_applied_and_stored_once() -> None:
    api = Api()
    async with following(api) as (watch, applied, log):
        watch.now(a=GOOD)
        await settle()
        assert [outcome.states for _, outcome in applied] == [{"a": "current"}]
        assert api.remembered == copy(a=GOOD)
        calls = len(api.calls)
        watch.store.replace(Contents(records={"a": PolicySource("a", "uid-a", "another version", GOOD)}))
        await settle()
    assert len(api.calls) == calls
    assert log.told == []


async def test_broken_policy_is_announced_once_by_all_replicas() -> None:
    api = Api(remembered=copy(a=GOOD))
    for _ in range(2):
        async with following(api) as (watch, applied, _log):
            watch.now(a=BROKEN)
            await settle()
            assert applied[-1][1].states == {"a": "last-good"}
            watch.now(a=BROKEN, b=GOOD)
            await settle()
    [event] = api.events.values()
    assert event["involvedObject"]["uid"] == "uid-a"
    assert event["message"].startswith("The policy is broken, its last good document stays in force: line 3: mode")


@pytest.mark.parametrize("fault", [ClusterError("no answer"), ApiError(500, "oops"), ApiError(403, "no")])
async def test_unreadable_policies_are_not_overwritten(fault: Exception) -> None:
    api = Api(fault, remembered=copy(a=GOOD))
    async with following(api) as (watch, applied, log):
        watch.now(a=BROKEN)
        await settle()
        assert applied == [], "no policies are in force before all of them can be read"
        assert "last good policies not readable" in log.told
        assert api.remembered == copy(a=GOOD)
        watch.now(a=BROKEN, b=GOOD)  # any change triggers a retry
        await settle()
        assert applied[-1][1].states == {"a": "last-good", "b": "current"}
        assert api.remembered == copy(a=GOOD, b=GOOD)


async def test_failed_announcement_is_repeated() -> None:
    api = Api(ApiError(404, "none yet"), ClusterError("no answer"))
    async with following(api) as (watch, _, log):
        watch.now(a=BROKEN)
        await settle()
        assert api.events == {}
        assert "event not written" in log.told
        watch.now(a=BROKEN, b=GOOD)
        await settle()
    assert len(api.events) == 1


async def test_policy_is_in_force_if_its_copy_cannot_be_written() -> None:
    api = Api(ApiError(404, "none yet"), ApiError(404, "none yet"), ApiError(403, "may not create"))
    async with following(api) as (watch, applied, log):
        watch.now(a=GOOD)
        await settle()
        assert applied[-1][1].states == {"a": "current"}
        assert log.told == ["last good policies not stored"]
        watch.now(a=BROKEN)
        await settle()
        assert applied[-1][1].states == {"a": "last-good"}


async def test_copy_of_a_deleted_policy_is_deleted() -> None:
    api = Api(remembered=copy(a=GOOD))
    async with following(api) as (watch, applied, _):
        watch.now(a=GOOD)
        watch.now()
        await settle()
        assert applied[-1][0].layers == ()
    assert api.remembered == copy()


async def test_watch_continues_after_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formerly, the task ended silently, and later policies were not applied."""
    monkeypatch.setattr(background, "RESTART_SECONDS", 0)
    watch, log, applied = FakeWatch(), Log(), list[Any]()
    api = Api(ApiError(404, "none yet"), KeyError("metadata"))
    made: Any = PolicyWatch
    policies = made(watch=watch, api=api, namespace="ns", apply=lambda *it: applied.append(it), log=log)
    async with background.in_background("policies", policies.run, log=log):
        watch.now(a=GOOD)
        await settle()
        assert api.remembered == copy(a=GOOD), "the failed work is repeated without another change"
        watch.now(a=GOOD, b=GOOD)
        await settle()
    assert applied[-1][1].states == {"a": "current", "b": "current"}
    assert [line["fault"].split(" at ")[0] for line in log.events("policies")] == ["KeyError"]


@asynccontextmanager
async def without_list(
    api: Api, reason: str, **options: Any
) -> AsyncIterator[tuple[PolicyWatch, FakeWatch, list[Any], Log]]:
    """A watch that cannot list policies yet, because of `reason`. Pauses take no time."""
    watch, log, applied = FakeWatch(), Log(), []
    watch.synced = watch.known = False
    watch.reason = reason
    made: Any = PolicyWatch

    def apply(*outcome: object) -> None:
        applied.append(outcome)

    async def sleep(_: float) -> None:
        await asyncio.sleep(0)

    policy_watch = made(watch=watch, api=api, namespace="ns", apply=apply, log=log, sleep=sleep, **options)
    task = asyncio.create_task(policy_watch.run())
    yield policy_watch, watch, applied, log
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("reason", ["forbidden: no", "server-error: etcd", "unreachable: Connection refused"])
async def test_service_is_not_ready_before_policies_are_read(reason: str) -> None:
    async with without_list(Api(), reason) as (policies, watch, applied, _):
        await settle()
        assert applied == []
        assert policies.unsettled == f"the policies in ns cannot be read ({reason}): no policies are in force"
        watch.synced = watch.known = True
        watch.now(a=GOOD)
        await settle()
        assert (policies.unsettled, policies.problem) == ("", "")
        assert applied[-1][1].states == {"a": "current"}


async def test_replica_waits_for_policies_after_two_denials() -> None:
    """An API server that has just started denies every request."""
    api = Api()
    api.allowed = [False, False, True]
    async with without_list(api, "forbidden: no") as (policies, _, applied, _):
        await settle()
        assert (policies.unsettled != "", applied) == (True, [])


async def test_missing_right_to_list_policies_is_reported_and_defaults_are_in_force() -> None:
    api = Api()
    api.allowed = [False]
    async with without_list(api, "forbidden: no") as (policies, watch, applied, log):
        await policies.loaded()
        assert [outcome.states for _, outcome in applied] == [{}]
        text = "the right to list them is missing, so the built-in defaults are in force"
        assert policies.problem == f"the policies in ns cannot be read (forbidden: no): {text}"
        assert log.events("policies not read") == [{"problem": policies.problem}]
        watch.synced = watch.known = True
        watch.now(a=GOOD)
        await settle()
        assert (policies.problem, applied[-1][1].states) == ("", {"a": "current"})


async def test_last_valid_policies_are_in_force_if_policies_cannot_be_listed() -> None:
    async with without_list(Api(remembered=copy(a=GOOD)), "server-error: x") as (policies, watch, applied, _):
        await policies.loaded()
        [(in_force, outcome)] = applied
        assert outcome.states == {"a": "last-good"}
        assert [layer.name for layer in in_force.layers] == ["a"]
        assert policies.problem.endswith("the last good policies of the previous run are in force")
        watch.synced = watch.known = True
        watch.now(c=GOOD)
        await settle()
        assert applied[-1][1].states == {"c": "current"}


async def test_policies_stay_in_force_when_the_permission_is_revoked() -> None:
    async with following(Api()) as (watch, applied, _):
        watch.now(a=GOOD)
        await settle()
        watch.synced = watch.known = False
        await settle()
        assert [outcome.states for _, outcome in applied] == [{"a": "current"}]


UNREADABLE = 'policy "a": this version can read neither the document nor its last good copy: line 3: mode'


@pytest.mark.parametrize("remembered", [None, {"a": BROKEN}, copy("9.0", a=BROKEN), {"_1.0": "no JSON"}])
async def test_replica_that_can_read_neither_a_policy_nor_its_copy_is_not_ready(remembered: Any) -> None:
    """Formerly, a restarted replica of an older version admitted jobs that the policy denies."""
    async with following(Api(remembered=remembered)) as (watch, _, _log):
        watch.now(a=BROKEN, b=GOOD)
        await settle()
        assert watch.policies.unsettled.startswith(UNREADABLE)
        watch.now(a=GOOD, b=GOOD)
        await settle()
        assert watch.policies.unsettled == ""
        watch.now(a=GOOD, b=GOOD, c=BROKEN)
        await settle()
        assert watch.policies.unsettled == "", "a later unreadable policy does not make a ready replica unready"


async def test_replica_with_unreadable_copies_is_not_ready_before_policies_are_listed() -> None:
    async with without_list(Api(remembered=copy(a=BROKEN)), "server-error: x") as (policies, watch, applied, _):
        await settle()
        assert policies.unsettled.startswith(UNREADABLE)
        assert applied == []
        watch.synced = watch.known = True
        watch.now(b=GOOD)
        await settle()
        assert policies.unsettled == ""


async def test_each_version_keeps_its_own_copy_in_rollout_and_rollback() -> None:
    """Only the newer version can read BROKEN. Formerly, the newer version overwrote the older version's copy."""
    api = Api(remembered=copy("0.9", a=GOOD))
    async with following(api, version="1.0") as (watch, *_):
        watch.now(a=GOOD, b=GOOD)
        await settle()
    newer = copy("2.0", a=BROKEN, b=GOOD)
    api.remembered = {**(api.remembered or {}), **newer}
    async with following(api, version="1.0") as (watch, applied, _):
        watch.now(a=BROKEN, b=GOOD)
        await settle()
        assert (watch.policies.unsettled, applied[-1][1].states) == ("", {"a": "last-good", "b": "current"})
        watch.now(a=BROKEN, b=GOOD, c=GOOD)
        await settle()
    assert api.remembered == newer | copy("1.0", a=GOOD, b=GOOD, c=GOOD)


async def test_copy_that_this_version_cannot_read_is_not_deleted() -> None:
    """Other replicas may have more rules, for example from plug-ins."""
    api = Api(remembered=copy(a=BROKEN))
    async with following(api) as (watch, *_):
        watch.now(a=BROKEN, b=GOOD)
        await settle()
    assert api.remembered == copy(a=BROKEN, b=GOOD)
