"""The sizes that are suggested for a job that does not fit. All rules of the policy must admit them."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import rule_checks
from tests.support.jobs import REMOVE, changed
from tests.support.kueue_objects import cluster_queue, config, local_queue, namespace
from tests.support.quota_objects import quota
from tests.support.strategies import PROPERTY
from webhook.admission.decision import Decision
from webhook.api import yaml
from webhook.cluster.snapshot import Snapshot
from webhook.kit.advice_bounds import Admitted, Span

Json = dict[str, Any]
GPUS = "requests.nvidia.com/gpu"
REPLICAS = "Worker.replicas"
LIMIT = r"Worker.template.spec.containers.0.resources.limits.nvidia\.com/gpu"
AS_WORKER = "spec.runLauncherAsWorker"
GANG = "spec.runPolicy.schedulingPolicy"
SLOTS = "spec.slotsPerWorker"
COMMAND = "Launcher.template.spec.containers.0.command"
REQUEST_QUOTA = "Request quota increase from administrator"


def job(workers: int, gpus: int = 2, **more: Any) -> Json:
    return {REPLICAS: workers, LIMIT: gpus, SLOTS: min(gpus, 8) or 1, COMMAND: ["mpirun", "train"], **more}


def decide(changes: Json, rules: Json, *objects: Json) -> Decision:
    """The decision on a job in a namespace with these objects."""
    document = changed({"metadata.namespace": "team", **changes})
    return rule_checks.decide(document, yaml.dump({"rules": rules}), view=Snapshot(objects))


def of_team(hard: Json, used: Json | None = None) -> Json:
    return quota(hard, used, namespace="team")


def suggested(decision: Decision) -> list[str]:
    (finding,) = [finding for finding in decision.denied if finding.rule == "resource-quota"]
    return re.findall(r"(?m)^\d+\. (.*)$", finding.violation.fix)


@pytest.mark.parametrize(
    ("changes", "rules", "hard", "first"),
    [
        (job(4), {}, 4, "Reduce worker count to 2 (4 GPUs total)"),
        # one worker would fit, but the rule `worker-count` requires two
        (job(4), {}, 2, "Reduce worker count to 2, GPUs per worker to 1 and slotsPerWorker to 1 (2 GPUs total)"),
        # the number of GPUs is too large for a `range` of Python
        (job(4, 10**19), {"gpus": {"action": "off"}}, 16, "Reduce GPUs per worker to 4 (16 GPUs total)"),
        (job(4), {"worker-count": {"min": 1}}, 2, "Reduce worker count to 1 (2 GPUs total)"),
        (job(4), {"worker-count": {"action": "warn"}}, 2, "Reduce worker count to 1 (2 GPUs total)"),
        (job(1, **{AS_WORKER: True}), {}, 1, "Reduce GPUs per worker to 1 and slotsPerWorker to 1 (1 GPU total)"),
        (job(2, 8, **{SLOTS: 1}), {}, 8, "Reduce GPUs per worker to 4 (8 GPUs total)"),
        (job(2, 8), {"slots": {"min": 8}}, 8, "Reduce GPUs per worker to 4 (8 GPUs total)"),
        (job(2, 8), {"gpus": {"min": 4}}, 8, "Reduce GPUs per worker to 4 and slotsPerWorker to 4 (8 GPUs total)"),
        (job(2, 8), {"gpus": {"min": 8}}, 8, f"{REQUEST_QUOTA}: 2 workers, the fewest allowed here, do not fit"),
        (job(2, 8), {"gpus": {"min": 8}, "worker-count": {"min": 1}}, 8, "Reduce worker count to 1 (8 GPUs total)"),
        (job(2, 8), {}, 1, f"{REQUEST_QUOTA}: 2 workers, the fewest allowed here, do not fit"),
        # twenty workers would fit the quota
        (job(30), {"tier": {"maxWorkers": 8}}, 40, "Reduce worker count to 8 (16 GPUs total)"),
        (job(30), {"tier": {"maxGpus": 12}}, 40, "Reduce worker count to 6 (12 GPUs total)"),
        (
            job(30, 8),
            {"tier": {"maxGpus": 12}},
            40,
            "Reduce worker count to 2, GPUs per worker to 6 and slotsPerWorker to 6 (12 GPUs total)",
        ),
        (job(30), {"worker-count": {"max": 10}}, 40, "Reduce worker count to 10 (20 GPUs total)"),
        (job(4, **{GANG: {"minAvailable": 5}}), {}, 4, "Reduce worker count to 2 and minAvailable to 3 (4 GPUs total)"),
        (
            job(4, **{GANG: {"minAvailable": 4}, "spec.launcherCreationPolicy": "WaitForWorkersReady"}),
            {},
            4,
            "Reduce worker count to 2 and minAvailable to 2 (4 GPUs total)",
        ),
    ],
)
def test_suggestion_for_a_job_above_a_quota_satisfies_the_rules(
    changes: Json, rules: Json, hard: int, first: str
) -> None:
    assert suggested(decide(changes, rules, of_team({GPUS: hard})))[0] == first


def test_suggestion_says_to_wait_if_other_jobs_use_the_quota() -> None:
    suggestions = suggested(decide(job(4, 8), {}, of_team({GPUS: 8}, {GPUS: 8})))
    assert suggestions == [
        "Reduce GPUs per worker to 2 and slotsPerWorker to 2 (8 GPUs total), and wait for existing jobs to complete",
        REQUEST_QUOTA,
    ]


def test_no_smaller_size_is_suggested_if_it_does_not_reduce_the_shortage() -> None:
    assert suggested(decide(job(2, 8), {}, of_team({"requests.cpu": 20}))) == [
        f"{REQUEST_QUOTA}: 2 workers, the fewest allowed here, do not fit"
    ]


def bounds(low: st.SearchStrategy[int], more: st.SearchStrategy[int]) -> st.SearchStrategy[Json]:
    return st.builds(lambda low, more: {"min": low, "max": low + more}, low, more)


SETTINGS = st.fixed_dictionaries(
    {
        "worker-count": bounds(st.integers(1, 4), st.integers(0, 9)),
        "gpus": bounds(st.integers(0, 4), st.integers(0, 9)),
        "tier": st.fixed_dictionaries({}, optional={"maxWorkers": st.integers(2, 9), "maxGpus": st.integers(0, 40)}),
        "slots": bounds(st.integers(0, 2), st.integers(1, 6)),
    }
)
JOBS = st.builds(
    lambda workers, gpus, as_worker, gang: job(workers, gpus, **{AS_WORKER: as_worker, GANG: {"minAvailable": gang}}),
    st.integers(1, 12),
    st.integers(0, 12),
    st.booleans(),
    st.none() | st.integers(1, 13),
)
SET_TO = {
    "worker count": REPLICAS,
    "GPUs per worker": LIMIT,
    "slotsPerWorker": SLOTS,
    "minAvailable": f"{GANG}.minAvailable",
}


def test_number_of_ranks_is_reduced_with_the_slots() -> None:
    """With more ranks than slots, mpirun would refuse to start."""

    def advice(ranks: int, *more: str) -> str:
        command = ["mpirun", "-np", str(ranks), "--hostfile", "/etc/mpi/hostfile", *more, "train"]
        return suggested(decide(job(8, **{COMMAND: command}), {}, of_team({GPUS: 8})))[0]

    assert advice(16) == "Reduce worker count to 4 and -np to 8 (8 GPUs total)"
    assert advice(8) == "Reduce worker count to 4 (8 GPUs total)"
    assert advice(16, "--oversubscribe") == "Reduce worker count to 4 (8 GPUs total)"


@PROPERTY
@given(JOBS, SETTINGS, st.integers(0, 40), st.integers(0, 40))
def test_suggested_size_is_admitted_by_all_rules(changes: Json, rules: Json, hard: int, used: int) -> None:
    """Violations that are unrelated to the size may remain."""
    view = of_team({GPUS: hard}, {GPUS: min(used, hard)})
    before = decide(changes, rules, view)
    if any(finding.rule == "resource-quota" for finding in before.denied):
        advice = suggested(before)[0]
        steps = re.findall(r"(worker count|GPUs per worker|slotsPerWorker|minAvailable) to (\d+)", advice)
        if not steps:
            return
        resized = changes | {SET_TO[field]: int(number) for field, number in steps}
        waited = of_team({GPUS: hard}) if "wait for existing" in advice else view
        after = {finding.rule for finding in decide(resized, rules, waited).denied}
        assert after <= {finding.rule for finding in before.denied} - {"resource-quota"}


@pytest.mark.parametrize(
    ("workers", "gpus", "rules", "nominal", "fixes"),
    [
        (4, 2, {}, 4, ["Use 2 workers."]),
        (4, 2, {}, 2, ["Use 2 workers, with 1 GPU in each.", "Set slotsPerWorker to 1."]),
        (2, 8, {}, 8, ["Use 4 GPUs in each.", "Set slotsPerWorker to 4."]),
        (2, 8, {"gpus": {"min": 8}}, 8, ["Ask for quota: fewer than 2 workers are rejected."]),
        (2, 8, {"worker-count": {"min": 1}}, 8, ["Use 1 worker."]),
        (2, 8, {"gpus": {"min": 8}}, 7, ["Request less."]),
    ],
)
def test_suggestion_for_a_job_above_the_quota_of_a_queue_satisfies_the_rules(
    workers: int, gpus: int, rules: Json, nominal: int, fixes: list[str]
) -> None:
    quotas = {"cpu": 9999, "memory": "9Ti", "nvidia.com/gpu": nominal}
    queue = local_queue("q", "behind", namespace="team")
    objects = [config(), namespace("team"), queue, cluster_queue("behind", {"plain": quotas})]
    changes = job(workers, gpus) | {"metadata.labels": {"kueue.x-k8s.io/queue-name": "q"}}
    findings = decide(changes, rules, *objects).warned
    assert [finding.violation.fix for finding in findings if finding.rule == "ever-fits"] == fixes


@pytest.mark.parametrize(
    ("changes", "rules", "fixes"),
    [
        (job(1), {"worker-count": {"min": 4}}, ["Set replicas to 4 or more."]),
        (job(1, 8), {"tier": {"maxGpus": 8}}, ["Set replicas to 2 or more, with 4 GPUs or fewer in each."]),
        (
            {"Worker": REMOVE, COMMAND: ["mpirun", "train"]},
            {"worker-count": {"min": 3}},
            ["Add Worker, with replicas: 3 or more."],
        ),
        (job(0), {"worker-count": {"min": 3}}, ["Set replicas to 3 or more."]),
        (job(-1) | {AS_WORKER: True}, {"worker-count": {"min": 3}}, ["Set replicas to 2 or more."]),
        (job(150), {"tier": {"maxWorkers": 8}}, ["Set replicas to 8 or fewer, or ask", "Set replicas to 8 or fewer."]),
        (
            job(5),
            {"tier": {"maxWorkers": 2}, "worker-count": {"min": 3}},
            ["Ask your administrator: fewer than 3 are rejected too, or ask"],
        ),
        (
            job(4) | {AS_WORKER: True},
            {"worker-count": {"min": 1, "max": 1}},
            ["Set spec.runLauncherAsWorker to false, and replicas to 1 or fewer."],
        ),
        ({SLOTS: -1}, {"slots": {"min": 2}}, ["Use 2 or more."]),
        (job(2, 4), {"gpus": {"max": 2}}, ["Request 2 or fewer for each, and use more workers."]),
        (
            job(5, **{GANG: {"minAvailable": 6}}),
            {"worker-count": {"max": 4}, "gang": {"scheduler": "volcano"}},
            ["Set it to 5 or fewer.", "Set replicas to 4 or fewer."],
        ),
        (job(2, 4), {"gpus": {"max": 2}, "worker-count": {"max": 2}}, ["Request 2 or fewer for each."]),
        ({SLOTS: -1}, {"slots": {"min": 0}}, ["Use 1 or more."]),
    ],
)
def test_suggestions_of_other_rules_satisfy_all_rules(changes: Json, rules: Json, fixes: list[str]) -> None:
    decision = decide(changes, rules)
    assert [finding.violation.fix.partition(" your administrator for")[0] for finding in decision.denied] == fixes


def test_suggested_slots_are_enough_for_the_ranks() -> None:
    changes = job(4, 0, **{COMMAND: ["mpirun", "-np", "16", "--hostfile", "/etc/mpi/hostfile", "train"], SLOTS: 0})
    (finding,) = decide(changes, {}).denied
    assert finding.violation.fix == "Set slotsPerWorker to 4 or more."
    (finding,) = decide(changes | {SLOTS: -1}, {}).denied
    assert finding.violation.fix == "Use 4 or more."


def test_intersection_of_admitted_values() -> None:
    ours, theirs = Admitted(workers=Span(2, 9)), Admitted(workers=Span(0, 5), accelerators=("amd.com/gpu",))
    assert (ours & theirs) == (theirs & ours) == Admitted(workers=Span(2, 5), accelerators=("amd.com/gpu",))
