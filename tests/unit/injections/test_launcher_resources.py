"""`launcher-resources` gives the launcher the resources that the namespace requires and that the job does not state."""

from typing import Any

import pytest

from tests.support.injecting import PATHS, Example, hold, mpijob, only, operations_of, pod_spec
from tests.support.kueue_objects import cluster_queue, config, flavor, local_queue, namespace, topology
from tests.support.limit_ranges import limit_range
from tests.support.quota_objects import quota
from tests.support.rule_checks import decide
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown

RESOURCES = f"{PATHS['Launcher']}/spec/containers/0/resources"
FULL = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "2", "memory": "4Gi"}}
NAMED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


def bounds(kind: str = "Container", **item: Any) -> dict[str, Any]:
    """A LimitRange of the namespace `team`."""
    return limit_range("bounds", {"type": kind, **item}, namespace="team")


# This LimitRange has no effect on pods. With it, the view knows the LimitRanges of the namespace.
KNOWN = bounds("PersistentVolumeClaim")


def quotas(*names: str, scopes: list[str] | None = None) -> Snapshot:
    return Snapshot([quota(dict.fromkeys(names, "100"), namespace="team", scopes=scopes), KNOWN])


GPU = "nvidia.com/gpu"
QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "line"}}


def in_queue(amounts: dict[str, Any], *objects: dict[str, Any]) -> Snapshot:
    """A cluster in which jobs with the labels `QUEUED` use a ClusterQueue with the quotas `amounts`."""
    objects = objects or (config(), flavor("f"))
    queue = cluster_queue("cq", {"f": amounts})
    return Snapshot([KNOWN, namespace("team"), queue, local_queue("line", "cq", namespace="team"), *objects])


def job(launcher: dict[str, Any] | None = None, *more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    containers = [
        {"name": f"c{index}", "image": "mpi:1", **(container or {})}
        for index, container in enumerate((launcher, *more))
    ]
    worker = {"spec": pod_spec() | {"containers": [{"name": "mpi", "image": "mpi:1", "resources": FULL}]}}
    return mpijob(launcher={"spec": {"containers": containers}}, worker=worker, **fields)


EXAMPLE = Example(job=job(), view=quotas(*NAMED))


def injected(submitted: dict[str, Any], view: ClusterView, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    decision = hold(submitted, only("launcher-resources", **settings), view=view)
    notes = [note.removeprefix("launcher-resources: ") for note in decision.notes]
    return dict(operations_of(decision)), notes


@pytest.mark.parametrize(
    ("names", "resources"),
    [
        (["cpu"], {"requests": {"cpu": "100m"}}),
        (["requests.memory"], {"requests": {"memory": "512Mi"}}),
        (["limits.memory"], {"limits": {"memory": "2Gi"}}),
    ],
)
def test_resources_that_a_quota_requires_are_set(names: list[str], resources: dict[str, dict[str, str]]) -> None:
    ((field, amounts),) = resources.items()
    ((name, text),) = amounts.items()
    assert injected(job(), quotas(*names)) == ({RESOURCES: resources}, [f"set the launcher's {field}.{name} {text}"])


def test_every_container_and_init_container_gets_resources() -> None:
    submitted = job(None, {"resources": FULL})
    submitted["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["initContainers"] = [
        {"name": "i", "image": "mpi:1"}
    ]
    added, _ = injected(submitted, quotas("requests.cpu"))
    assert added == {
        RESOURCES: {"requests": {"cpu": "100m"}},
        RESOURCES.replace("containers", "initContainers"): {"requests": {"cpu": "100m"}},
    }


@pytest.mark.parametrize(
    ("stated", "names", "added"),
    [
        ({"requests": {"memory": "8Gi"}}, ["limits.memory"], {"limits": {"memory": "8Gi"}}),
        ({"limits": {"cpu": "50m"}}, ["requests.cpu", "limits.cpu"], {}),
        ({"limits": {"memory": "1Gi"}}, ["requests.cpu", "requests.memory"], {"requests": {"cpu": "100m"}}),
    ],
)
def test_resources_of_the_user_stay_and_limits_are_not_below_requests(
    stated: Any, names: list[str], added: Any
) -> None:
    result, _ = injected(job({"resources": stated}), quotas(*names))
    assert result == {f"{RESOURCES}/{field}": amounts for field, amounts in added.items()}


@pytest.mark.parametrize(
    "view",
    [
        Snapshot([KNOWN]),
        NothingKnown(),
        Snapshot([quota({"requests.cpu": "1"}, namespace="team")]),  # the LimitRanges are unknown
        Snapshot([quota({"requests.cpu": "1"}, namespace="elsewhere"), KNOWN]),
        quotas("requests.cpu", scopes=["Terminating"]),
        quotas("requests.nvidia.com/gpu", "pods"),
        Snapshot([quota({"requests.cpu": "1"}, namespace="team"), bounds(defaultRequest={"cpu": "1"})]),
    ],
)
def test_launcher_stays_unchanged_without_a_quota_that_rejects_it(view: ClusterView) -> None:
    assert injected(job(), view) == ({}, [])


def test_launcher_that_is_a_worker_or_has_pod_resources_stays_unchanged() -> None:
    view = quotas("requests.cpu")
    assert injected(job(runLauncherAsWorker=True), view) == ({}, [])
    submitted = job()
    submitted["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["resources"] = {"requests": {"cpu": "1"}}
    assert injected(submitted, view) == ({}, [])
    assert injected(mpijob(launcher={"spec": None}), view) == ({}, [])


def test_injected_resources_satisfy_the_ratio_of_a_limit_range() -> None:
    view = Snapshot([bounds(maxLimitRequestRatio={"cpu": "2"})])
    added, notes = injected(job(), view)
    assert added == {RESOURCES: {"requests": {"cpu": "1"}}, f"{RESOURCES}/limits": {"cpu": "1"}}
    assert notes == ["set the launcher's requests.cpu 1, limits.cpu 1"]


def test_resources_that_a_limit_range_for_pods_requires_are_set() -> None:
    added, _ = injected(job(), Snapshot([bounds("Pod", max={"memory": "64Gi"})]))
    assert added == {RESOURCES: {"requests": {"memory": "512Mi"}}, f"{RESOURCES}/limits": {"memory": "2Gi"}}


def test_resources_that_a_limit_range_forbids_are_not_set() -> None:
    view = Snapshot([quota({"limits.memory": "1Ti"}, namespace="team"), bounds("Pod", max={"memory": "1Gi"})])
    assert injected(job(), view) == ({}, [])


def test_resources_that_the_queue_does_not_cover_are_not_set() -> None:
    note = "nothing is set for the launcher: ClusterQueue cq does not cover cpu"
    decision = hold(job(metadata=QUEUED), only("launcher-resources", when="always"), view=in_queue({GPU: 64}))
    assert (decision.patch, decision.warnings) == ([], [f"launcher-resources: {note}"])


@pytest.mark.parametrize(
    ("cpu", "memory", "problem"),
    [
        ("4100m", "8704Mi", ""),
        ("4", "1Ti", "ClusterQueue cq has at most 4 cpu, and the job would need 4100m"),
        ("5", "8Gi", "ClusterQueue cq has at most 8Gi memory, and the job would need 8704Mi"),
        ("3", "1Ti", ""),  # the job never fits, even without the injection
    ],
)
def test_resources_that_exceed_the_queue_are_not_set(cpu: str, memory: str, problem: str) -> None:
    added, notes = injected(job(metadata=QUEUED), in_queue({"cpu": cpu, "memory": memory}), when="always")
    assert bool(added) is not bool(problem)
    assert not problem or notes == [f"nothing is set for the launcher: {problem}"]


def test_requests_are_injected_without_a_quota_if_the_setting_when_has_the_value_always() -> None:
    added, notes = injected(job({"resources": {"limits": {"cpu": "4"}}}), Snapshot([KNOWN]), when="always")
    assert added == {f"{RESOURCES}/requests": {"memory": "512Mi"}}
    assert notes == ["set the launcher's requests.memory 512Mi"]
    own = {"requests": {"cpu": "50m", "memory": "100Mi"}}
    assert injected(job(), Snapshot([KNOWN]), when="always", **own)[0] == {
        RESOURCES: {"requests": {"cpu": "50m"}},
        f"{RESOURCES}/requests/memory": "100Mi",
    }


def test_injected_resources_satisfy_the_rule_resource_quota() -> None:
    view = quotas(*NAMED)
    document = hold(job(), only("launcher-resources"), view=view).document
    for submitted, rejected in ((job(), True), (document, False)):
        findings = decide(submitted, view=view, namespace="team").denied
        paths = [finding.violation.path for finding in findings if finding.rule == "resource-quota"]
        assert any("Launcher" in path for path in paths) is rejected


TOPOLOGY = (flavor("f", {"tas": "yes"}, topologyName="dc"), topology("dc", "zone", "rack"))
NO_GPU = f"requests.{GPU} 0, limits.{GPU} 0"


def in_topology(amounts: dict[str, Any], extra: str = "") -> Snapshot:
    return in_queue(amounts, config(extra), *TOPOLOGY)


@pytest.mark.parametrize(
    ("view", "amounts"),
    [
        (in_topology({"cpu": 8, "memory": "1Ti", GPU: 8}), "requests.cpu 100m, requests.memory 512Mi"),
        (in_topology({"cpu": 8, GPU: 8}), "requests.cpu 100m"),
        (in_topology({GPU: 8}), NO_GPU),
        (in_topology({"cpu": 8, GPU: 8}, "resources: {excludeResourcePrefixes: [cpu, memory]}\n"), NO_GPU),
        (in_topology({GPU: 8, "pods": 9}), ""),
        (in_topology({GPU: 8}, "featureGates: {TopologyAwareScheduling: false}\n"), ""),
    ],
)
def test_launcher_in_a_topology_aware_queue_gets_a_request(view: ClusterView, amounts: str) -> None:
    _, notes = injected(job(metadata=QUEUED), view)
    assert notes == ([f"set the launcher's {amounts}"] if amounts else [])
    assert injected(job({"resources": {"limits": {GPU: "0"}}}, metadata=QUEUED), view) == ({}, [])
    assert injected(job(), view) == ({}, []), "the job is in no queue"


def test_launcher_gets_zero_gpus_if_a_limit_range_adds_gpus_by_default() -> None:
    view = Snapshot([bounds(default={GPU: "1", "cpu": "2"})])
    added, notes = injected(job(None, {"resources": {"limits": {GPU: "2"}}}), view)
    assert added == {RESOURCES: {"requests": {GPU: "0"}}, f"{RESOURCES}/limits": {GPU: "0"}}
    assert notes == [f"set the launcher's {NO_GPU}"]
    assert injected(job(runLauncherAsWorker=True), view) == ({}, [])
    assert injected(job(), Snapshot([bounds(default={GPU: "1"}, min={GPU: "1"})])) == ({}, [])
    assert injected(job(), Snapshot([bounds(default={"example.com/nic": "1"})])) == ({}, [])
