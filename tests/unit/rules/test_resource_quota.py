import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support import openshift
from tests.support.any_job import Json
from tests.support.devices import claim_template, claims, exactly
from tests.support.jobs import REMOVE, changed
from tests.support.kueue_objects import CONFIG, cluster_queue, config, local_queue, namespace
from tests.support.quota_objects import cluster, limit_range, pods, quota, reserved
from tests.support.rule_checks import decide, fits_a_warning, violations
from tests.support.strategies import PROPERTY
from webhook.admission.messages import Finding, denial
from webhook.cluster.resources.resource_quotas import ResourceQuota
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason, Violation
from webhook.rules.resource_quota import Settings

RULE = "resource-quota"
REPLICAS = "spec.mpiReplicaSpecs[Worker].replicas"
SUSPEND = "spec.runPolicy.suspend"
GPUS = "requests.nvidia.com/gpu"
QUEUED = {"metadata.labels": {"kueue.x-k8s.io/queue-name": "team"}}
SUSPENDED = {"spec.runPolicy.suspend": True}
OURS = {"metadata.uid": "train"}
ENDED: Json = {
    "status": {"conditions": [{"type": "Failed", "status": "True"}], "completionTime": "2026-01-01T00:00:00Z"}
}


def job(workers: int, **changes: Any) -> Json:
    return {"Worker.replicas": workers, **changes}


def stored(name: str, workers: int, **changes: Any) -> Json:
    return changed({**job(workers), "metadata.name": name, "metadata.uid": name, **changes})


def running(name: str, workers: int = 4) -> list[Json]:
    """A job and all of its pods."""
    return [stored(name, workers), *pods(name, workers)]


def text_of(violations: list[Violation]) -> str:
    [violation] = violations
    return f"{violation.message}\n\n{violation.fix}"


THREE_JOBS = [*running("a"), *running("b"), *running("c")]


def test_text_has_the_required_wording() -> None:
    """The requirements define the exact text."""
    result = violations(RULE, job(20), view=cluster(quota({GPUS: 32}, {GPUS: 24}), *THREE_JOBS))
    assert text_of(result) == (
        "Quota exceeded\n"
        "Details: Requested 40 GPUs (20 workers × 2 GPUs), but namespace quota is 32 GPUs.\n"  # noqa: RUF001
        "Current usage: 24 GPUs (3 running jobs)\n"
        "Available: 8 GPUs\n"
        "\n"
        "Suggestions:\n"
        "1. Reduce worker count to 4 (8 GPUs total)\n"
        "2. Wait for existing jobs to complete\n"
        "3. Request quota increase from administrator"
    )
    assert result[0].path == REPLICAS
    assert (result[0].reason, result[0].advisory) == (CauseReason.FORBIDDEN, False)
    finding = Finding(RULE, result[0])
    assert denial("train", [finding]) == (
        f'MPIJob "train" was rejected: 1 problem\n1. {REPLICAS} [resource-quota]\n{text_of(result)}'
    )
    assert finding.sentence == f"{text_of(result)}\n[resource-quota]"
    warned = f"{REPLICAS}: Requested 40 GPUs, but namespace quota is 32 GPUs [resource-quota]"
    assert finding.warning == warned


def test_message_names_only_the_first_quotas() -> None:
    short = [quota({GPUS: 32 - number % 7}, {GPUS: 24}, name=f"q{number:04}") for number in range(1000)]
    [violation] = violations(RULE, job(20), view=cluster(*short))
    assert "; and 994 more\n" in f"{violation.message}\n"
    assert len(violation.message) < 600


def test_only_exceeded_quotas_are_evaluated_for_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluations: Counter[str] = Counter()
    counts = ResourceQuota.counts

    def counting(self: ResourceQuota, *args: Any) -> bool:
        evaluations[self.name] += 1
        return counts(self, *args)

    monkeypatch.setattr(ResourceQuota, "counts", counting)
    good = [quota({GPUS: 1000}, {GPUS: 0}, name=f"q{number:04}") for number in range(50)]
    short = [quota({GPUS: 9}, {GPUS: 4}, name=name) for name in ("a", "z")]
    [violation] = violations(RULE, job(20), view=cluster(*good, *short))
    assert "1. Reduce worker count to 2 (4 GPUs total)" in violation.fix
    assert max(evaluations[f"q{number:04}"] for number in range(50)) <= 8, "other sizes are not tried"
    assert evaluations["z"] < evaluations["a"], "a size that exceeds the quota `a` is not compared with `z`"


def test_unknown_usage_is_not_reported_as_free() -> None:
    """The quota has just been created, so its status is empty."""
    result = violations(RULE, job(20), view=cluster(quota({GPUS: 32}, {}), *THREE_JOBS))
    assert "\nCurrent usage: not yet known (3 running jobs)\n\nSuggestions:\n" in text_of(result)


def test_message_names_the_free_amount_if_too_little_of_the_quota_is_free() -> None:
    result = violations(RULE, job(8), view=cluster(quota({GPUS: 32}, {GPUS: 24}), *THREE_JOBS))
    details = "Requested 16 GPUs (8 workers × 2 GPUs), but only 8 of 32 GPUs are free in the namespace quota."  # noqa: RUF001
    assert f"\nDetails: {details}\n" in text_of(result)
    assert not result[0].advisory
    warned = "Requested 16 GPUs, but only 8 of 32 GPUs are free in the namespace quota"
    assert Finding(RULE, result[0]).warning == f"spec.mpiReplicaSpecs[Worker]: {warned} [resource-quota]"


@pytest.mark.parametrize(
    ("changes", "hard", "used", "lines"),
    [
        (  # the launcher is included, and nothing is in use
            job(4),
            {"requests.cpu": 50},
            {"requests.cpu": 0},
            [
                "Details: Requested 65 CPUs (4 workers × 16 CPUs + launcher 1 CPU), but namespace quota is 50 CPUs.",  # noqa: RUF001
                "Current usage: 0 CPUs",
                "Available: 50 CPUs",
                "1. Reduce worker count to 3 (49 CPUs total)",
                "2. Request quota increase from administrator",
            ],
        ),
        (  # not even one worker fits
            job(4),
            {"limits.memory": "40Gi"},
            {"limits.memory": "10Gi"},
            [
                "Details: Requested 257Gi memory in limits (4 workers × 64Gi memory in limits + launcher 1Gi memory in "  # noqa: RUF001
                "limits), but namespace quota is 40Gi memory in limits.",
                "Current usage: 10Gi memory in limits",
                "Available: 30Gi memory in limits",
                "1. Request quota increase from administrator",
            ],
        ),
        (  # nothing fits now, and the whole job never fits
            job(20),
            {GPUS: 32},
            {GPUS: 32},
            [
                "Details: Requested 40 GPUs (20 workers × 2 GPUs), but namespace quota is 32 GPUs.",  # noqa: RUF001
                "Current usage: 32 GPUs",
                "Available: 0 GPUs",
                "1. Reduce worker count to 16 (32 GPUs total), and wait for existing jobs to complete",
                "2. Request quota increase from administrator",
            ],
        ),
        (  # the usage may be above the quota
            job(1),
            {"pods": 2},
            {"pods": 3},
            [
                "Details: Requested 2 pods (1 worker × 1 pod + launcher 1 pod), but none of 2 pods is free in the "  # noqa: RUF001
                "namespace quota.",
                "Current usage: 3 pods",
                "Available: 0 pods",
                "1. Wait for existing jobs to complete",
                "2. Request quota increase from administrator",
            ],
        ),
        (  # an object that is not a pod
            job(4),
            {"services": 1},
            {"services": 1},
            [
                "Details: Requested 1 Service, but none of 1 Service is free in the namespace quota.",
                "Current usage: 1 Service",
                "Available: 0 Services",
                "1. Wait for existing jobs to complete",
                "2. Request quota increase from administrator",
            ],
        ),
    ],
)
def test_message_has_details_usage_and_suggestions(changes: Json, hard: Json, used: Json, lines: list[str]) -> None:
    text = text_of(violations(RULE, changes, view=cluster(quota(hard, used))))
    assert text.replace("\n\nSuggestions:", "").splitlines() == ["Quota exceeded", *lines]


def test_message_starts_with_the_quota_for_gpus() -> None:
    small = quota({"pods": 3, "requests.cpu": 20}, {"pods": 0, "requests.cpu": 0}, name="small")
    text = text_of(violations(RULE, job(20), view=cluster(quota({GPUS: 32}), small)))
    assert 'namespace quota "q" is 32 GPUs' in text
    assert 'Also exceeded: 21 pods requested, 3 of 3 available (quota "small"); 321 CPUs' in text
    assert "1. Reduce worker count to 1 (2 GPUs total)" in text


def test_all_exceeded_quotas_are_reported() -> None:
    quotas = (quota({GPUS: 4}, name="a"), quota({GPUS: 6}, name="b"), quota({"pods": 2}, name="c"))
    text = text_of(violations(RULE, job(8), view=cluster(*quotas)))
    assert 'namespace quota "a" is 4 GPUs' in text
    others = '9 pods requested, 2 of 2 available (quota "c"); 16 GPUs requested, 6 of 6 available (quota "b")'
    assert others in text or "; ".join(reversed(others.split("; "))) in text
    assert "fewest allowed here, do not fit" not in text, "all quotas have room for one worker"
    assert "1. Reduce worker count to 1 (2 GPUs total)" in text
    assert violations(RULE, job(1), view=cluster(*quotas)) == []


def test_suspended_job_gets_a_warning_for_each_exceeded_quota() -> None:
    quotas = (quota({GPUS: 32}, {GPUS: 24}, name="a"), quota({"pods": 10, "requests.cpu": 200}, {"pods": 8}, name="b"))
    result = violations(RULE, job(8) | SUSPENDED, view=cluster(*quotas))
    assert [each.message for each in result] == ["needs 16 GPUs, 8 of 32 free", "needs 9 pods, 2 of 10 free"]
    assert {each.fix for each in result} == {"Resume it later; 1 worker fits now."}
    assert all(fits_a_warning(RULE, each) for each in result)


def test_quota_that_the_job_always_exceeds_is_reported_first() -> None:
    view = cluster(quota({GPUS: 8, "requests.cpu": 60}, {GPUS: 8, "requests.cpu": 0}))
    assert "Requested 65 CPUs" in text_of(violations(RULE, job(4), view=view))
    assert "Requested 2 GPUs" in text_of(violations(RULE, job(1), view=cluster(quota({GPUS: 1, "pods": 1}))))


KUEUE = (config(), namespace(), cluster_queue("cq"), local_queue("team", "cq"))


@pytest.mark.parametrize(
    ("state", "wait"), [(SUSPENDED, "Resume it later"), (QUEUED, "It waits"), (QUEUED | SUSPENDED, "It waits")]
)
def test_waiting_job_above_the_free_quota_gets_a_warning(state: Json, wait: str) -> None:
    busy = cluster(quota({GPUS: 32}, {GPUS: 24}), *KUEUE)
    [violation] = violations(RULE, job(8) | state, view=busy)
    message = "needs 16 GPUs, 8 of 32 free"
    fix = f"{wait}; 4 workers fit now."
    assert violation == Violation(REPLICAS, message, fix=fix, reason=CauseReason.FORBIDDEN, advisory=True)
    assert fits_a_warning(RULE, violation)
    [violation] = violations(RULE, job(1) | state, view=cluster(quota({GPUS: 32}, {GPUS: 32}), *KUEUE))
    assert violation.fix == f"{wait}."
    [violation] = violations(RULE, job(17) | state, view=busy)
    assert not violation.advisory, "the job never fits"


@pytest.mark.parametrize(
    "objects",
    [
        (),
        KUEUE[1:],  # Kueue's configuration is unknown
        (config(text=CONFIG.replace(", kubeflow.org/mpijob", "")), *KUEUE[1:]),
        KUEUE[:3],  # LocalQueues are unknown
        (*KUEUE[:3], local_queue("other", "cq")),
        (*KUEUE[:3], local_queue("team", "cq", stopPolicy="Hold")),
    ],
)
def test_job_with_an_unusable_queue_label_is_rejected(objects: tuple[Json, ...]) -> None:
    [violation] = violations(RULE, job(8) | QUEUED, view=cluster(quota({GPUS: 32}, {GPUS: 24}), *objects))
    assert not violation.advisory
    assert violation.message.startswith("Quota exceeded")


@pytest.mark.parametrize(("controls", "advisory"), [(True, False), (False, True)])
def test_job_with_a_controlling_owner_does_not_wait_in_kueue(controls: bool, advisory: bool) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "any", "uid": "any", "controller": controls}
    changes = job(8) | QUEUED | {"metadata.ownerReferences": [owner]}
    (violation,) = violations(RULE, changes, view=cluster(quota({GPUS: 32}, {GPUS: 24}), *KUEUE))
    assert violation.advisory == advisory


@pytest.mark.parametrize(
    "view",
    [
        None,
        Snapshot([]),
        cluster(quota({GPUS: 1}, namespace="team-b")),
        cluster(quota({GPUS: 40})),
        cluster(quota({GPUS: 40}, {}), stored("a", 3)),  # the quota may already include the pods of the job `a`
        cluster(quota({GPUS: 1}, scopes=["Terminating"])),
        cluster(quota({GPUS: 1}, scopes=["BestEffort"])),
        cluster(quota({"nvidia.com/gpu": 1, "count/widgets.example.com": 0})),
    ],
)
def test_job_within_the_quota_is_accepted(view: Snapshot | None) -> None:
    assert violations(RULE, job(20), view=view) == []


def test_job_for_another_cluster_is_accepted() -> None:
    elsewhere = {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}
    assert violations(RULE, job(20) | elsewhere, view=cluster(quota({GPUS: 1}))) == []


@pytest.mark.parametrize(
    ("others", "fits"),
    [
        ([], 8),
        (running("a"), 8),  # the usage includes the pods of the job `a`
        ([stored("a", 3)], 5),
        ([stored("a", 3), *pods("a", 2)], 7),
        ([stored("a", 3, **SUSPENDED)], 8),
        ([stored("a", 3, **{"metadata.namespace": "team-b"})], 8),
        ([changed(job(3) | {"metadata.uid": "train"})], 8),  # the job itself
        ([reserved("a", {GPUS: 2}, 3)], 5),
        ([reserved("a", {GPUS: 2}, 3), *pods("a", 2)], 7),
        ([reserved("a", {GPUS: 2}, 3, namespace="team-b")], 8),
        ([reserved("train", {GPUS: 2}, 3)], 8),
        ([reserved("a", {GPUS: 2}, 3), stored("a", 3, **ENDED)], 8),
    ],
)
def test_reservations_of_other_jobs_reduce_the_quota(others: list[Json], fits: int) -> None:
    view = cluster(quota({GPUS: 16}, {GPUS: 0}), *others)
    assert violations(RULE, job(fits), view=view) == []
    assert f"Available: {2 * fits} GPUs" in text_of(violations(RULE, job(fits + 1), view=view))


def test_unknown_usage_of_other_jobs_is_ignored() -> None:
    """Without a list of pods, the rule cannot know how much of another job the quota's usage already includes."""
    other = changed(job(8) | {"metadata.name": "a"})
    assert violations(RULE, job(8), view=Snapshot([quota({GPUS: 16}), limit_range(), other])) == []


def test_reservations_reduce_the_quota_if_jobs_are_unknown() -> None:
    view = Snapshot([quota({GPUS: 16}), limit_range(), *pods("x", 0), reserved("a", {GPUS: 2}, 3)])
    assert violations(RULE, job(5), view=view) == []
    assert "Current usage: 6 GPUs\n" in text_of(violations(RULE, job(6), view=view))


UNSTATED = 'must specify limits.cpu for: worker; requests.memory for: worker (quota "q")'


def test_pod_that_does_not_state_a_limited_resource_is_rejected() -> None:
    bare = {"Worker.template.spec.containers.0.resources": {"requests": {"cpu": 1}}}
    hard = {"limits.cpu": 99, "requests.memory": "9Ti", "cpu": 999}
    path = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources"
    fix = "Set resources.limits.cpu and resources.requests.memory, or the API server rejects every worker pod."
    expected = [Violation(path, UNSTATED, fix=fix, reason=CauseReason.REQUIRED)]
    assert violations(RULE, bare, view=cluster(quota(hard))) == expected
    assert violations(RULE, bare | SUSPENDED | QUEUED, view=cluster(quota(hard))) == expected
    [both] = violations(
        RULE, bare, view=cluster(quota({"limits.cpu": 99}), quota({"requests.memory": "9Ti"}, name="r"))
    )
    assert both.message == UNSTATED.replace('(quota "q")', '(quotas "q", "r")')
    assert both.fix == fix
    [many] = violations(RULE, bare, view=cluster(*(quota(hard, name=f"q{number}") for number in range(1000))))
    assert many.message == UNSTATED.replace('(quota "q")', '(quotas "q0", "q1", "q2", "q3", "q4" and 995 more)')
    assert violations(RULE, bare, view=cluster(quota(hard, scopes=["Terminating"]))) == []
    assert violations(RULE, bare, view=Snapshot([quota(hard)])) == [], "unknown LimitRanges may fill in the amounts"
    filled_in = cluster(quota(hard), limit_range(cpu=1, memory="1Gi", namespace="team-a"))
    assert violations(RULE, bare, view=filled_in) == []


@pytest.mark.parametrize(
    ("requests", "hard", "first"),
    [
        ([exactly(count=4)], 8, "Reduce worker count to 2 (8 GPUs total)"),
        ([exactly(count=4)], 3, "Reduce GPUs per worker to 1 by another ResourceClaimTemplate (2 GPUs total)"),
        ([exactly(count=2), exactly(count=2)], 3, "Request quota increase from administrator"),
        ([exactly(allocationMode="All")], 3, "Request quota increase from administrator"),
    ],
)
def test_fix_reduces_the_devices_of_claims(requests: list[Json], hard: int, first: str) -> None:
    view = cluster(quota({"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": hard}), claim_template("t", *requests))
    (violation,) = violations("resource-quota", {**claims("t"), "Worker.replicas": 2 if hard == 3 else 4}, view=view)
    assert violation.fix.split("\n")[1].startswith(f"1. {first}")


def test_claim_with_unknown_devices_causes_a_warning() -> None:
    limit = quota({"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": 16})
    (warning,) = violations("resource-quota", claims("t"), view=cluster(limit, claim_template("other")))
    assert warning.message == 'the GPUs of claim "c0" are not counted: its template ("t") does not exist'
    assert (warning.advisory, warning.path) == (True, "spec.mpiReplicaSpecs[Worker].template.spec.resourceClaims[0]")
    known = claim_template("t", exactly("nic", allocationMode="All"))
    assert violations("resource-quota", claims("t"), view=cluster(limit, known)) == []
    assert violations("resource-quota", claims("t"), view=cluster(quota({"requests.nvidia.com/gpu": 16}))) == []


def full(workers: int) -> Snapshot:
    """A quota that the job `train` uses completely."""
    return cluster(quota({GPUS: 2 * workers}, {GPUS: 2 * workers}), *running("train", workers))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (job(4), job(4, **{"spec.runPolicy.backoffLimit": 3})),
        (job(40), job(39)),
    ],
)
def test_update_without_additional_use_is_accepted(old: Json, new: Json) -> None:
    assert violations(RULE, new | OURS, old=old | OURS, view=full(4)) == []


def test_scaling_up_is_charged_for_the_additional_workers() -> None:
    hard = {GPUS: 32}
    view = cluster(quota(hard, {GPUS: 24}), *running("train", 4), *running("a"), *running("b"))
    assert violations(RULE, job(8) | OURS, old=job(4) | OURS, view=view) == []
    text = text_of(violations(RULE, job(10) | OURS, old=job(4) | OURS, view=view))
    assert "Requested 12 more GPUs (6 more workers × 2 GPUs), but only 8 of 32 GPUs are free" in text  # noqa: RUF001
    assert "1. Reduce worker count to 8 (16 GPUs total)" in text
    never = text_of(violations(RULE, job(17) | OURS, old=job(4) | OURS, view=view))
    assert "but namespace quota is 32 GPUs" in never, "the whole job is compared with the quota"


def test_scaling_up_with_unknown_pods_is_charged_for_the_additional_workers() -> None:
    view = Snapshot([quota({GPUS: 32}, {GPUS: 24}), limit_range()])
    assert violations(RULE, job(8), old=job(4), view=view) == []
    assert "Requested 10 more GPUs" in text_of(violations(RULE, job(9), old=job(4), view=view))


REFUSED_BY_OPERATOR: Json = {"Launcher.replicas": 2}


@pytest.mark.parametrize("state", [REFUSED_BY_OPERATOR, ENDED])
def test_update_of_a_job_without_pods_is_accepted(state: Json) -> None:
    view = cluster(quota({GPUS: 8}, {GPUS: 4}))
    assert violations(RULE, job(5) | state, old=job(4) | state, view=view) == []
    assert violations(RULE, job(4) | REFUSED_BY_OPERATOR, view=view), "for a new job all problems are reported at once"


def test_fixed_job_that_the_operator_had_rejected_is_charged_in_full() -> None:
    view = cluster(quota({GPUS: 8}, {GPUS: 4}))
    old = changed(job(4) | REFUSED_BY_OPERATOR)
    fixed, relabelled = (
        decide(changed(job(4) | changes), old=old, view=view)
        for changes in ({}, {**REFUSED_BY_OPERATOR, "metadata.labels": {"a": "b"}})
    )
    assert [each.rule for each in fixed.denied] == [RULE], "the stored job used none of the quota"
    assert fixed.reservation is not None
    assert (relabelled.denied, relabelled.reservation) == ([], None)


@pytest.mark.parametrize("world", [cluster, lambda *objects: Snapshot(objects)])
def test_job_taken_over_by_the_operator_is_charged_in_full(
    world: Callable[..., Snapshot],
) -> None:
    elsewhere = {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}
    view = world(quota({GPUS: 8}, {GPUS: 4}))
    assert violations(RULE, job(4), old=job(4) | elsewhere, view=view)
    assert violations(RULE, job(2), old=job(4) | elsewhere, view=view) == []


def test_resumed_job_is_charged_in_full() -> None:
    view = cluster(quota({GPUS: 32}, {GPUS: 24}))
    assert violations(RULE, job(4), old=job(4) | SUSPENDED, view=view) == []
    [violation] = violations(RULE, job(8), old=job(8) | SUSPENDED, view=view)
    assert (violation.path, violation.advisory) == (SUSPEND, False)


def test_job_without_workers_is_reported_at_the_launcher() -> None:
    changes = {"Worker": REMOVE, "spec.runLauncherAsWorker": True}
    [violation] = violations(RULE, changes, view=cluster(quota({"pods": 1}, {"pods": 1})))
    assert violation.path == "spec.mpiReplicaSpecs[Launcher]"


def test_resource_name_without_a_domain_in_the_settings_is_rejected() -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"accelerators": ["gpu"]})


def test_policy_sets_which_resources_are_called_gpus() -> None:
    result = violations(RULE, job(20), view=cluster(quota({GPUS: 32})), settings={"accelerators": []})
    assert "Requested 40 nvidia.com/gpu" in text_of(result)


AMOUNTS = st.tuples(st.integers(0, 100), st.integers(0, 60))


@PROPERTY
@given(
    st.integers(1, 40),
    st.dictionaries(st.sampled_from([GPUS, "requests.cpu", "limits.cpu", "pods"]), AMOUNTS, min_size=1),
    st.sampled_from([{}, SUSPENDED, QUEUED]),
)
def test_suggested_worker_counts_fit_the_quota(workers: int, limits: dict[str, tuple[int, int]], state: Json) -> None:
    hard = {name: most for name, (most, _) in limits.items()}
    view = cluster(quota(hard, {name: used for name, (_, used) in limits.items()}), *running("a"))
    result = violations(RULE, job(workers) | state, view=view)
    text = "".join(each.message + each.fix for each in result)
    now = re.search(r"Reduce worker count to (\d+) \([^)]*\)$|; (\d+) workers? fits? now", text, re.MULTILINE)
    if now:
        assert violations(RULE, job(int(now[1] or now[2])) | state, view=view) == []
    if later := re.search(r"Reduce worker count to (\d+) .*, and wait", text):
        idle = cluster(quota(hard), *running("a"))
        assert violations(RULE, job(int(later[1])) | state, view=idle) == []
        assert not now


def test_cluster_resource_quota_is_applied() -> None:
    shared = openshift.cluster_quota({GPUS: 32}, {GPUS: 24}, namespaces=["team-a", "team-b"])
    known = cluster(openshift.project(), shared, *running("a"))
    (violation,) = violations(RULE, job(20), view=known)
    assert "Requested 40 GPUs" in violation.message
    assert "but cluster quota is 32 GPUs." in violation.message
    assert violations(RULE, job(4), view=known) == []
    both = cluster(openshift.project(), shared, quota({GPUS: 64}))
    (violation,) = violations(RULE, job(20), view=both)
    assert 'but cluster quota "clusterresourcequota/q" is 32 GPUs.' in violation.message


def test_cluster_resource_quota_of_other_namespaces_is_ignored() -> None:
    shared = openshift.cluster_quota({GPUS: 2}, {GPUS: 0}, namespaces=["team-b"])
    assert violations(RULE, job(20), view=cluster(openshift.project(), shared)) == []
    plain = cluster(namespace("team-a"), openshift.cluster_quota({GPUS: 2}, {GPUS: 0}))
    assert violations(RULE, job(20), view=plain) == []


def test_admitted_jobs_of_the_namespace_reduce_a_cluster_resource_quota() -> None:
    shared = openshift.cluster_quota({GPUS: 32}, {GPUS: 0})
    (violation,) = violations(RULE, job(4), view=cluster(openshift.project(), shared, stored("a", 14)))
    assert "Quota exceeded" in violation.message
