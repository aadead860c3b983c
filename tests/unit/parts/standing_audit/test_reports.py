"""A job that breaks the policy has one report with its current violations. Other jobs have no report.

A report has the kind Report of openreports.io, or the kind PolicyReport if the cluster does not serve Report.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import msgspec
import pytest

from tests.support.audit_world import ENDED, JOBS, STRICT, AuditWorld, paced, store
from tests.support.kept_objects import KeptObjects
from tests.support.policies import layer
from tests.support.watch_api import until
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.client.calls import ApiError
from webhook.cluster.resources.mpijobs import MPIJobRecord
from webhook.parts.standing_audit import reports
from webhook.parts.standing_audit.limits import MAX_REPORTED_CHARACTERS, MAX_REPORTED_RESULTS
from webhook.parts.standing_audit.reports import LABEL, POLICY_REPORTS, REPORTS, Reports, report, seen
from webhook.policy.in_force import PolicySet
from webhook.rules import Violation
from webhook.server.background import at_work

JOB = MPIJobRecord("team-a", "train", "u-1")


def finding(rule: str = "gpus", message: str = "is wrong") -> Finding:
    return Finding(rule, Violation("spec", message, fix="Fix it."))


def test_report_has_the_fields_that_other_policy_engines_write() -> None:
    written = report(JOB, Decision(denied=[finding()], warned=[finding("images")], audited=[finding("slots")]))
    assert written is not None
    assert written["metadata"] == {
        "name": "mpijob-webhook-u-1",
        "namespace": "team-a",
        "labels": {"app.kubernetes.io/managed-by": "mpijob-webhook", LABEL: "true"},
        "ownerReferences": [{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train", "uid": "u-1"}],
    }
    assert written["scope"]["name"] == "train"
    assert written["summary"] == {"pass": 0, "fail": 1, "warn": 2, "error": 0, "skip": 0}
    assert written["results"][0] == {
        "source": "mpijob-webhook",
        "policy": "mpijob-webhook",
        "rule": "gpus",
        "category": "MPIJob",
        "severity": "high",
        "result": "fail",
        "scored": True,
        "message": "spec: is wrong. Fix it. [gpus]",
        "properties": {"action": "deny", "field": "spec"},
    }
    others = [(result["rule"], result["result"], result["scored"]) for result in written["results"][1:]]
    assert others == [("images", "warn", False), ("slots", "warn", False)]


def test_size_of_a_report_is_limited() -> None:
    written = report(JOB, Decision(denied=[finding(message="x" * 9999)] * 200))
    assert written is not None
    assert written["summary"]["fail"] == 200
    assert len(written["results"]) == MAX_REPORTED_RESULTS
    assert all(len(result["message"]) == MAX_REPORTED_CHARACTERS for result in written["results"])
    assert len(msgspec.json.encode(written)) < 100_000


def test_job_without_violations_has_no_report() -> None:
    assert report(JOB, Decision()) is None


@pytest.mark.parametrize(
    "data", [b"{}", b'{"scope": null, "results": 7, "summary": []}', b'{"results": [{"a": null}]}']
)
def test_existing_report_with_any_content_is_handled(data: bytes) -> None:
    assert seen(data).content


class World(AuditWorld):
    def __init__(self, cluster: KeptObjects, *, installed: tuple[bool, bool] = (True, True)) -> None:
        self.watches = [cluster.follow(kind) for kind in (REPORTS, POLICY_REPORTS)]
        for watch, exists in zip(self.watches, installed, strict=True):
            watch.synced, watch._not_found, watch._denied = exists, not exists, not exists
        self.reports = Reports(api=paced(cluster), watches=self.watches)
        super().__init__(cluster, reports=self.reports)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Self]:
        async with super().following():
            await self.settled()
            yield self

    def names(self, plural: str = "reports") -> set[str]:
        return {stored["scope"]["name"] for stored in self.cluster.named(plural).values()}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.controllers.reconciler.FIRST_PAUSE", 0.0)


async def test_only_jobs_that_break_the_policy_have_a_report(cluster: KeptObjects) -> None:
    store(cluster, "large")
    store(cluster, "small", workers=2)
    store(cluster, "over", status=ENDED)
    async with World(cluster).following() as world:
        assert world.names() == {"large"}
        assert world.names("policyreports") == set()
        (written,) = cluster.named("reports").values()
        assert (written["apiVersion"], written["kind"]) == ("openreports.io/v1alpha1", "Report")
        writes = len(cluster.writes())
        await world.audit.audit()
        await world.settled()
        assert len(cluster.writes()) == writes == 1


async def test_policy_report_is_written_if_the_kind_report_is_not_installed(cluster: KeptObjects) -> None:
    store(cluster, "large")
    async with World(cluster, installed=(False, True)).following() as world:
        (written,) = cluster.named("policyreports").values()
        assert (written["apiVersion"], written["kind"]) == ("wgpolicyk8s.io/v1alpha2", "PolicyReport")
        assert world.reports.concerns() == {}


async def test_missing_report_kinds_are_reported_and_jobs_are_judged(cluster: KeptObjects) -> None:
    store(cluster, "large")
    async with World(cluster, installed=(False, False)).following() as world:
        assert cluster.writes() == []
        assert ("team-a", "large") in world.audit.outcomes
        assert "neither" in world.reports.concerns()["audit-reports"]


@pytest.mark.parametrize("how", ["fixed", "ended", "policy"])
async def test_report_is_deleted_when_the_job_no_longer_breaks_the_policy(cluster: KeptObjects, how: str) -> None:
    store(cluster, "job", workers=2)
    world = World(cluster)
    world.policies = PolicySet([layer("p", "rules: {worker-count: {min: 3}}")])
    async with world.following():
        assert world.names() == {"job"}
        if how == "policy":
            world.policies = PolicySet([])
            await world.audit.audit()
        else:
            changes = {"status": ENDED} if how == "ended" else {"generation": 2}
            store(cluster, "job", workers=2 if how == "ended" else 4, **changes)
        await until(lambda: not world.names())
        assert cluster.writes()[-1][0] == "DELETE"


async def test_report_is_deleted_if_the_job_ended_while_no_replica_ran(cluster: KeptObjects) -> None:
    store(cluster, "job")
    async with World(cluster).following():
        pass
    store(cluster, "job", status=ENDED)
    world = World(cluster)
    assert world.names() == {"job"}
    async with world.following():
        await until(lambda: not world.names())


@pytest.mark.parametrize("deleted", [False, True])
async def test_changed_or_deleted_report_is_restored(cluster: KeptObjects, deleted: bool) -> None:
    store(cluster, "job")
    async with World(cluster).following():
        (path,) = [path for path in cluster.objects if "/reports/" in path]
        written = cluster.objects[path]
        results = written["results"]
        if deleted:
            cluster.remove(path)
        else:
            cluster.put(path, {**written, "results": []})
        await until(lambda: path in cluster.objects and cluster.objects[path]["results"] == results)


async def test_report_of_a_deleted_job_is_not_written_again(cluster: KeptObjects) -> None:
    store(cluster, "job")
    async with World(cluster).following() as world:
        (path,) = [path for path in cluster.objects if "/reports/" in path]
        cluster.remove(f"{JOBS}/job")
        cluster.remove(path)
        await world.settled()
        assert world.names() == set()


async def test_second_replica_writes_no_report(cluster: KeptObjects) -> None:
    store(cluster, "job")
    async with World(cluster).following():
        writes = len(cluster.writes())
        async with World(cluster).following():
            assert len(cluster.writes()) == writes


@pytest.mark.parametrize("deleted", [False, True])
async def test_report_that_a_user_changes_repeatedly_is_restored_more_slowly(
    cluster: KeptObjects, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    monkeypatch.setattr("webhook.controllers.reconciler.FIRST_PAUSE", 1.0)
    store(cluster, "job")
    async with World(cluster).following() as world:
        (path,) = [path for path in cluster.objects if "/reports/" in path]
        if deleted:
            cluster.remove(path)
        else:
            cluster.put(path, {**cluster.objects[path], "results": []})
        assert await world.audit.look(("team-a", "job")) == pytest.approx(1, abs=0.5)
        assert len(cluster.writes()) == 1


async def test_rejected_write_is_retried_and_reported(cluster: KeptObjects) -> None:
    store(cluster, "job")
    world = World(cluster)

    def before(method: str, _: str) -> None:
        if method == "PATCH":
            raise ApiError(403, "reports is forbidden")

    cluster.before = before
    await world.audit.audit()
    async with at_work(world.audit.reconciler.run):
        await until(lambda: world.audit.reconciler.failing)
        assert "reports is forbidden" in world.audit.reconciler.problem
        assert ("team-a", "job") in world.audit.outcomes


async def test_policy_report_is_not_written_while_reports_cannot_be_read(cluster: KeptObjects) -> None:
    store(cluster, "large")
    world = World(cluster)
    world.watches[0].synced = False
    async with world.following():
        assert cluster.writes() == []
        world.watches[0].synced = True
        await world.audit.audit()
        await world.settled()
    assert world.names() == {"large"}
    assert world.names("policyreports") == set()


async def test_policy_reports_are_replaced_if_the_kind_report_is_installed_later(cluster: KeptObjects) -> None:
    store(cluster, "large")
    world = World(cluster, installed=(False, True))
    async with at_work(world.audit.run):
        await until(lambda: world.names("policyreports") == {"large"})
        first = world.watches[0]
        first.synced, first._not_found, first._denied = True, False, False
        first.store.replace(first.store.contents())
        await until(lambda: world.names() == {"large"} and not world.names("policyreports"))


async def test_jobs_are_judged_if_reports_are_never_listed(
    cluster: KeptObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "PATIENCE", 0.0)
    store(cluster, "large")
    world = World(cluster)
    for watch in world.watches:
        watch.synced = False
        watch._settled.clear()
    async with at_work(world.audit.run):
        await until(lambda: world.audit.age == 0)
    assert ("team-a", "large") in world.audit.outcomes


async def test_deleted_job_is_removed_from_all_caches(cluster: KeptObjects) -> None:
    store(cluster, "job")
    async with World(cluster).following() as world:
        cluster.remove(f"{JOBS}/job")
        await world.settled()
    assert not world.reports._expected
    assert not world.reports._written._done


async def test_each_job_costs_two_calls_even_if_policies_change_repeatedly(cluster: KeptObjects) -> None:
    for number in range(30):
        store(cluster, f"job-{number}")
    async with World(cluster).following() as world:
        assert len(cluster.calls) == 60
        assert len(cluster.writes()) == len(world.names()) == 30
        for number in range(5):
            world.policies = PolicySet([layer("p", f"priority: {number}\n{STRICT}")])
            world.audit.resync()
        await world.audit.audit()
        await world.settled()
        assert len(cluster.calls) == 60
