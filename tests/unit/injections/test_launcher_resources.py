"""launcher-resources: injects resources that the namespace requires and the launcher lacks, and nothing else."""

from datetime import date
from typing import Any

import pytest

from tests.support.injecting import PATHS, Example, hold, mpijob, only, operations_of, pod_spec
from tests.support.jobs import request as sent
from tests.support.kueue_objects import cluster_queue, config, flavor, local_queue, namespace, topology
from tests.support.limit_ranges import limit_range
from tests.support.quota_objects import quota
from webhook.admission import pipelines
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown

RESOURCES = f"{PATHS['Launcher']}/spec/containers/0/resources"
FULL = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "2", "memory": "4Gi"}}
NAMED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


def bounds(kind: str = "Container", **item: Any) -> dict[str, Any]:
    """A LimitRange of the namespace."""
    return limit_range("bounds", {"type": kind, **item}, namespace="team")


# A LimitRange that bounds nothing here says that all of them are known.
KNOWN = bounds("PersistentVolumeClaim")


def quotas(*names: str, scopes: list[str] | None = None) -> Snapshot:
    return Snapshot([quota(dict.fromkeys(names, "100"), namespace="team", scopes=scopes), KNOWN])


def job(launcher: dict[str, Any] | None = None, *more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    containers = [
        {"name": f"c{index}", "image": "mpi:1", **(each or {})} for index, each in enumerate((launcher, *more))
    ]
    worker = {"spec": pod_spec() | {"containers": [{"name": "mpi", "image": "mpi:1", "resources": FULL}]}}
    return mpijob(launcher={"spec": {"containers": containers}}, worker=worker, **fields)


EXAMPLE = Example(job=job(), view=quotas(*NAMED))


def injected(made: dict[str, Any], view: ClusterView, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    decision = hold(made, only("launcher-resources", **settings), view=view)
    notes = [note.removeprefix("launcher-resources: ") for note in decision.notes]
    return dict(operations_of(decision)), notes


@pytest.mark.parametrize(
    ("names", "resources"),
    [
        (["cpu"], {"requests": {"cpu": "100m"}}),
        (["requests.memory"], {"requests": {"memory": "512Mi"}}),
        (["limits.memory"], {"limits": {"memory": "2Gi"}}),
        (["limits.cpu"], {"limits": {"cpu": "1"}}),
        (["requests.nvidia.com/gpu", "pods"], None),
    ],
)
def test_what_a_quota_asks_for(names: list[str], resources: dict[str, Any] | None) -> None:
    added, notes = injected(job(), quotas(*names))
    assert added == ({RESOURCES: resources} if resources else {})
    if resources:
        ((field, amounts),) = resources.items()
        ((name, text),) = amounts.items()
        assert notes == [f"set the launcher's {field}.{name} {text}"]


def test_every_container_and_init_container() -> None:
    made = job(None, {"resources": FULL})
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["initContainers"] = [
        {"name": "i", "image": "mpi:1"}
    ]
    added, _ = injected(made, quotas("requests.cpu"))
    assert added == {
        RESOURCES: {"requests": {"cpu": "100m"}},
        RESOURCES.replace("containers", "initContainers"): {"requests": {"cpu": "100m"}},
    }


@pytest.mark.parametrize(
    ("stated", "names", "added"),
    [
        ({"requests": {"memory": "8Gi"}}, ["limits.memory"], {"limits": {"memory": "8Gi"}}),
        ({"limits": {"cpu": "50m"}}, ["requests.cpu", "limits.cpu"], None),
        ({"limits": {"memory": "1Gi"}}, ["requests.cpu", "requests.memory"], {"requests": {"cpu": "100m"}}),
    ],
)
def test_user_resources_stay_and_fit(stated: Any, names: list[str], added: Any) -> None:
    found, _ = injected(job({"resources": stated}), quotas(*names))
    ((field, value),) = added.items() if added else [("", None)]
    assert found == ({f"{RESOURCES}/{field}": value} if added else {})


@pytest.mark.parametrize(
    "view",
    [
        Snapshot([KNOWN]),
        NothingKnown(),
        Snapshot([quota({"requests.cpu": "1"}, namespace="team")]),  # of LimitRanges nothing is known
        Snapshot([quota({"requests.cpu": "1"}, namespace="elsewhere"), KNOWN]),
        quotas("requests.cpu", scopes=["Terminating"]),
        Snapshot([quota({"requests.cpu": "1"}, namespace="team"), bounds(defaultRequest={"cpu": "1"})]),
    ],
)
def test_launcher_gets_nothing_without_a_quota_that_rejects_it(view: ClusterView) -> None:
    assert injected(job(), view) == ({}, [])


def test_nothing_for_a_launcher_that_computes_or_has_pod_resources() -> None:
    view = quotas("requests.cpu")
    assert injected(job(runLauncherAsWorker=True), view) == ({}, [])
    made = job()
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["resources"] = {"requests": {"cpu": "1"}}
    assert injected(made, view) == ({}, [])
    assert injected(mpijob(launcher={"spec": None}), view) == ({}, [])


def test_a_limit_range_that_asks_for_a_ratio() -> None:
    view = Snapshot([bounds(maxLimitRequestRatio={"cpu": "2"})])
    added, notes = injected(job(), view)
    assert added == {RESOURCES: {"requests": {"cpu": "1"}}, f"{RESOURCES}/limits": {"cpu": "1"}}
    assert notes == ["set the launcher's requests.cpu 1, limits.cpu 1"]


def test_a_limit_range_for_pods() -> None:
    added, _ = injected(job(), Snapshot([bounds("Pod", max={"memory": "64Gi"})]))
    assert added == {RESOURCES: {"requests": {"memory": "512Mi"}}, f"{RESOURCES}/limits": {"memory": "2Gi"}}


def test_nothing_that_violates_a_different_bound() -> None:
    view = Snapshot([quota({"limits.memory": "1Ti"}, namespace="team"), bounds("Pod", max={"memory": "1Gi"})])
    assert injected(job(), view) == ({}, [])


def test_nothing_that_the_queue_does_not_cover() -> None:
    queue = cluster_queue("cq", {"f": {"nvidia.com/gpu": 64}})
    kueue = (config(), namespace("team"), queue, local_queue("line", "cq", namespace="team"), flavor("f"))
    view = Snapshot([KNOWN, *kueue])
    made = job(metadata={"labels": {"kueue.x-k8s.io/queue-name": "line"}})
    decision = hold(made, only("launcher-resources", when="always"), view=view)
    assert decision.patch == []
    assert decision.warnings == [
        "launcher-resources: nothing is set for the launcher: ClusterQueue cq does not cover cpu"
    ]


@pytest.mark.parametrize(
    ("cpu", "memory", "problem"),
    [
        ("4100m", "8704Mi", ""),
        ("4", "1Ti", "ClusterQueue cq has at most 4 cpu, and the job would need 4100m"),
        ("5", "8Gi", "ClusterQueue cq has at most 8Gi memory, and the job would need 8704Mi"),
        ("3", "1Ti", ""),  # the workers alone never fit
    ],
)
def test_always_except_where_it_exceeds_the_queue(cpu: str, memory: str, problem: str) -> None:
    behind = cluster_queue("cq", {"f": {"cpu": cpu, "memory": memory}})
    queue = local_queue("training", "cq", namespace="team")
    view = Snapshot([config(), namespace("team"), flavor("f"), queue, behind, KNOWN])
    made = job(metadata={"labels": {"kueue.x-k8s.io/queue-name": "training"}})
    added, notes = injected(made, view, when="always")
    assert (not added, notes if problem else []) == (
        bool(problem),
        [f"nothing is set for the launcher: {problem}"] * bool(problem),
    )


def test_always() -> None:
    added, notes = injected(job({"resources": {"limits": {"cpu": "4"}}}), Snapshot([KNOWN]), when="always")
    assert added == {f"{RESOURCES}/requests": {"memory": "512Mi"}}
    assert notes == ["set the launcher's requests.memory 512Mi"]
    own = {"requests": {"cpu": "50m", "memory": "100Mi"}}
    assert injected(job(), Snapshot([KNOWN]), when="always", **own)[0] == {
        RESOURCES: {"requests": {"cpu": "50m"}},
        f"{RESOURCES}/requests/memory": "100Mi",
    }


def test_injected_resources_satisfy_the_rule() -> None:
    policy = pipelines.load_policy(None)
    view = quotas(*NAMED)
    before = pipelines.validate(sent(job(), namespace="team"), policy=policy, view=view, today=date.min)
    assert any(finding.rule == "resource-quota" for finding in before.denied)
    document = hold(job(), only("launcher-resources"), view=view).document
    after = pipelines.validate(sent(document, namespace="team"), policy=policy, view=view, today=date.min)
    assert not any(
        finding.rule == "resource-quota" and "Launcher" in finding.violation.path for finding in after.denied
    )


GPU = "nvidia.com/gpu"
TOPOLOGY = (flavor("f", {"tas": "yes"}, topologyName="dc"), topology("dc", "zone", "rack"))
QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "line"}}
NO_GPU = f"requests.{GPU} 0, limits.{GPU} 0"


def in_topology(quotas: dict[str, Any], extra: str = "") -> Snapshot:
    queue = cluster_queue("cq", {"f": quotas})
    return Snapshot(
        [KNOWN, config(extra), namespace("team"), queue, local_queue("line", "cq", namespace="team"), *TOPOLOGY]
    )


@pytest.mark.parametrize(
    ("view", "told"),
    [
        (in_topology({"cpu": 8, "memory": "1Ti", GPU: 8}), "requests.cpu 100m, requests.memory 512Mi"),
        (in_topology({"cpu": 8, GPU: 8}), "requests.cpu 100m"),
        (in_topology({GPU: 8}), NO_GPU),
        (in_topology({"rdma/hca": 8, GPU: 8}), NO_GPU),
        (in_topology({"cpu": 8, GPU: 8}, "resources: {excludeResourcePrefixes: [cpu, memory]}\n"), NO_GPU),
        (in_topology({GPU: 8, "pods": 9}), ""),
        (in_topology({GPU: 8}, "featureGates: {TopologyAwareScheduling: false}\n"), ""),
    ],
)
def test_a_topology_aware_queue_needs_a_request(view: ClusterView, told: str) -> None:
    _, notes = injected(job(metadata=QUEUED), view)
    assert notes == ([f"set the launcher's {told}"] if told else [])
    assert injected(job({"resources": {"limits": {GPU: "0"}}}, metadata=QUEUED), view) == ({}, [])
    assert injected(job(), view) == ({}, []), "no queue"


def test_a_launcher_gets_no_gpu_by_default() -> None:
    view = Snapshot([bounds(default={GPU: "1", "cpu": "2"})])
    found, notes = injected(job(None, {"resources": {"limits": {GPU: "2"}}}), view)
    assert found == {RESOURCES: {"requests": {GPU: "0"}}, f"{RESOURCES}/limits": {GPU: "0"}}
    assert notes == [f"set the launcher's {NO_GPU}"]
    assert injected(job(runLauncherAsWorker=True), view) == ({}, [])
    assert injected(job(), Snapshot([bounds(default={GPU: "1"}, min={GPU: "1"})])) == ({}, [])
    assert injected(job(), Snapshot([bounds(default={"example.com/nic": "1"})])) == ({}, [])
