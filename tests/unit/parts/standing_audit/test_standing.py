"""The audit applies the current policies to every job that has not ended. It pauses, and continues after failures."""

import asyncio
from functools import partial
from math import inf
from typing import Any, NoReturn

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.support.audit_world import ENDED, STRICT, AuditWorld, store
from tests.support.kept_objects import KeptObjects
from tests.support.openshift import DEFAULT_SCCS, project
from tests.support.policies import layer
from tests.support.watch_api import until
from webhook.admission.what_if import resubmitted
from webhook.client.wire import FaultReason, WatchFault
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.resources.sccs import SECURITY_CONTEXT_CONSTRAINTS
from webhook.kit.settings import Action
from webhook.parts.standing_audit import standing
from webhook.parts.standing_audit.limits import AUDITED_JOBS_PER_PAGE, MAX_AUDIT_SHARE
from webhook.parts.standing_audit.metrics import AUDIT_METRICS, measured
from webhook.parts.standing_audit.standing import DEBOUNCE, INTERVAL, REST, RETRY
from webhook.policy.in_force import PolicySet
from webhook.server.background import at_work
from webhook.server.metrics import MetricSet
from webhook.work_limit import TooExpensive

COUNT = ("worker-count", Action.DENY)


class World(AuditWorld):
    @property
    def breaking(self) -> set[str]:
        """The jobs that break the rule `worker-count`."""
        return {name for (_, name), broken in self.audit.outcomes.items() if COUNT in broken}


async def test_all_jobs_that_have_not_ended_are_judged_page_by_page(cluster: KeptObjects) -> None:
    for number in range(5):
        store(cluster, f"large-{number}")
    store(cluster, "small", workers=2)
    store(cluster, "over", status=ENDED)
    world = World(cluster)
    assert world.audit.age == inf
    await world.audit.audit()
    assert world.breaking == {f"large-{number}" for number in range(5)}
    assert ("team-a", "small") in world.audit.outcomes
    assert ("team-a", "over") not in world.audit.outcomes
    assert world.audit.age == 0
    assert len(world.lists.targets) == 4
    assert all(f"limit={AUDITED_JOBS_PER_PAGE}" in target for target in world.lists.targets)


async def test_running_job_has_no_warning_about_sccs_that_its_pods_may_use(cluster: KeptObjects) -> None:
    """The audit does not know which SCCs the pods may use."""
    cluster.put("/api/v1/namespaces/team-a", project())
    for scc in DEFAULT_SCCS:
        cluster.put(f"/apis/security.openshift.io/v1/securitycontextconstraints/{scc['metadata']['name']}", scc)
    changes = {"Worker.template.spec.hostUsers": True, "Worker.template.spec.securityContext": {"runAsUser": 1000}}
    store(cluster, "job", **changes)
    world = World(cluster)
    world.audit.view = cluster.view([MPI_JOBS, NAMESPACES, SECURITY_CONTEXT_CONSTRAINTS])
    await world.audit.audit()
    (broken,) = world.audit.outcomes.values()
    assert "scc" not in {rule for rule, _ in broken}


async def test_job_that_is_too_expensive_to_judge_breaks_the_rule_job_size(
    cluster: KeptObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user must not be able to hide a job from the audit."""

    def too_expensive(_: object) -> NoReturn:
        raise TooExpensive

    store(cluster, "job")
    world = World(cluster)
    monkeypatch.setattr(standing, "limited", too_expensive)
    await world.audit.audit()
    assert world.audit.outcomes == {("team-a", "job"): (("job-size", Action.DENY),)}
    assert "too expensive to judge" in str(world.log.lines)


async def test_pause_after_each_job_is_longer_than_the_time_for_its_verdict(
    cluster: KeptObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        store(cluster, f"job-{number}")
    world = World(cluster)
    judge: Any = world.audit._judge

    def slow(*arguments: Any) -> None:
        world.time.now += 0.5
        judge(*arguments)

    monkeypatch.setattr(world.audit, "_judge", slow)
    await world.audit.audit()
    assert world.time.sleeps == [0.5 * (1 / MAX_AUDIT_SHARE - 1)] * 3
    assert world.audit.seconds == 3 * 0.5 / MAX_AUDIT_SHARE


async def test_error_with_one_job_does_not_stop_the_audit(
    cluster: KeptObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(cluster, "bad")
    store(cluster, "good")
    judge, world = resubmitted.judge, World(cluster)

    def failing(data: Any, **options: Any) -> Any:
        if b'"bad"' in bytes(data):
            raise RuntimeError("a defect in a rule")
        return judge(data, **options)

    monkeypatch.setattr(resubmitted, "judge", failing)
    await world.audit.audit()
    assert world.breaking == {"good"}
    assert "RuntimeError" in world.audit.concerns()["audit-incomplete"]


async def test_failed_list_does_not_change_verdicts_and_is_reported(cluster: KeptObjects) -> None:
    store(cluster, "job")
    world = World(cluster)
    await world.audit.audit()
    world.lists.faults = [WatchFault(FaultReason.FORBIDDEN, "no right"), WatchFault(FaultReason.STALLED)]
    world.time.now += 50
    await world.audit.audit()
    await world.audit.audit()
    assert world.breaking == {"job"}
    assert world.audit.age == 50
    assert "were not judged" in world.audit.concerns()["audit-incomplete"]
    assert world.log.told == ["audit incomplete"]
    await world.audit.audit()
    assert world.audit.concerns() == {}
    assert world.audit.age == 0


class Waits:
    """Records the pauses of `run` without waiting. If `changed`, policies change during each pause."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, world: World, *, changed: bool) -> None:
        self.pauses: list[float] = []

        class Timeout:
            async def __aenter__(_) -> None:  # noqa: N805
                if changed:
                    world.audit.resync()
                else:
                    raise TimeoutError

            async def __aexit__(_, *__: object) -> None:  # noqa: N805
                pass

        def timeout(seconds: float) -> Timeout:
            self.pauses.append(seconds)
            return Timeout()

        monkeypatch.setattr(asyncio, "timeout", timeout)


@pytest.mark.parametrize("took", [0.0, 20.0, 400.0])
async def test_pause_is_proportional_to_the_duration_of_the_audit(
    cluster: KeptObjects, monkeypatch: pytest.MonkeyPatch, took: float
) -> None:
    world = World(cluster)
    waits = Waits(monkeypatch, world, changed=False)
    await world.audit._rest(took)
    assert waits.pauses == [max(INTERVAL, REST * took)]
    assert world.time.sleeps == [max(DEBOUNCE, took)]


async def test_audits_take_at_most_half_of_the_time_if_policies_change_all_the_time(
    cluster: KeptObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(cluster)
    Waits(monkeypatch, world, changed=True)
    await world.audit._rest(30)
    assert world.time.sleeps == [30]


async def test_failed_audit_is_retried_after_a_shorter_pause(
    cluster: KeptObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(cluster)
    world.lists.faults = [WatchFault(FaultReason.THROTTLED)]
    waits = Waits(monkeypatch, world, changed=False)
    await world.audit.audit()
    await world.audit._rest(0)
    assert waits.pauses == [RETRY]


async def test_changed_policy_starts_an_audit(cluster: KeptObjects) -> None:
    store(cluster, "job")
    world = World(cluster, "")
    async with at_work(world.audit.run):
        await until(lambda: world.audit.age == 0)
        assert world.breaking == set()
        world.policies = PolicySet([layer("p", STRICT)])
        world.audit.resync()
        await until(lambda: world.breaking == {"job"})


async def test_metrics_have_the_verdicts_of_the_last_audit(cluster: KeptObjects) -> None:
    store(cluster, "large")
    store(cluster, "small", workers=2)
    world, registry = World(cluster), CollectorRegistry()
    MetricSet(AUDIT_METRICS, registry).on_scrape(partial(measured, world.audit))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"mpijob_webhook_audit_{name}", labels)

    assert value("jobs", namespace="team-a") is None
    assert value("age_seconds") == inf
    await world.audit.audit()
    world.time.now += 7
    assert value("jobs", namespace="team-a") == 2
    assert value("refused", namespace="team-a") == 1
    assert value("violations", namespace="team-a", rule="worker-count", action="deny") == 1
    assert value("age_seconds") == 7
    assert value("duration_seconds") == world.audit.seconds
    text = generate_latest(registry).decode()
    for metric in AUDIT_METRICS:
        assert f"# HELP {metric.name} {metric.help}\n" in text
        assert f"# TYPE {metric.name} {metric.kind}\n" in text
