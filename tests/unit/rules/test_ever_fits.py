from typing import Any

import pytest

from tests.support.any_job import Json
from tests.support.kueue_objects import (
    Quotas,
    cluster_queue,
    cohort,
    config,
    flavor,
    local_queue,
    namespace,
    topology,
)
from tests.support.limit_ranges import limit_range
from tests.support.rule_checks import fits_a_warning, violations
from tests.support.snapshots import head
from webhook.api.kueue import QUEUE_NAME
from webhook.cluster.snapshot import Snapshot
from webhook.predict.kueue import topology as annotations

GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"
LAUNCHER, WORKER = "spec.mpiReplicaSpecs[Launcher]", "spec.mpiReplicaSpecs[Worker]"
QUEUED = {QUEUE_NAME: "train"}
LIMITS = "Worker.template.spec.containers.0.resources.limits"
WORKER_ANNOTATIONS = "Worker.template.metadata"
GPU_TAINT = {"key": GPU, "effect": "NoSchedule"}

# The test job fits into this quota. The job has a launcher with 1 cpu and 1Gi, and four workers, each with 16 cpu,
# 64Gi and 2 GPUs.
ROOMY = {"cpu": 100, "memory": "1Ti", GPU: 100}


def reported(*objects: Json, changes: Json | None = None, labels: Json | None = None) -> list[str]:
    """Each violation as `path: message. fix`. Messages without "NoMatchingFlavor" must fit into a warning."""
    world = [config(), namespace(), local_queue("train", "queue"), *objects]
    result = violations("ever-fits", {"metadata.labels": labels or QUEUED, **(changes or {})}, view=Snapshot(world))
    assert all(fits_a_warning("ever-fits", each) for each in result if "NoMatchingFlavor" not in each.message)
    return [f"{violation.path}: {violation.message}. {violation.fix}" for violation in result]


def queue(*groups: Quotas, name: str = "queue", **spec: Any) -> Json:
    return cluster_queue(name, *groups, **spec)


H100 = flavor("h100", {PRODUCT: "H100"})


@pytest.mark.parametrize(
    ("objects", "changes"),
    [
        pytest.param([queue({"h100": ROOMY}), H100], {}, id="fits"),
        pytest.param([queue({"h100": {"cpu": 65, "memory": "257Gi", GPU: 8}}), H100], {}, id="fits exactly"),
        pytest.param(
            [queue({"h100": {**ROOMY, GPU: 0}}, cohort="c"), cohort("c", {"h100": {GPU: 8}}), H100],
            {},
            id="borrows from the cohort",
        ),
        pytest.param([queue({"h100": {**ROOMY, GPU: 0}}, cohort="c"), H100], {}, id="cohorts unknown"),
        pytest.param([queue({"gone": ROOMY}), H100], {}, id="the flavor does not exist yet"),
        pytest.param(
            [queue({"h100": ROOMY})], {"Worker.template.spec.nodeSelector": {PRODUCT: "A100"}}, id="flavors unknown"
        ),
        pytest.param(
            [queue({"cpus": {**ROOMY, GPU: 0}, "h100": {**ROOMY, "cpu": 64}}), H100, flavor("cpus")],
            {},
            id="a flavor for each role",
        ),
        pytest.param([queue(), H100], {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, id="MultiKueue"),
        pytest.param(
            [queue(), H100],
            {"metadata.annotations": {"kueue.x-k8s.io/workload-allowed-resource-flavors": "a"}},
            id="flavors chosen by an annotation",
        ),
        pytest.param(
            [queue(), H100],
            {"Worker.template.spec.resourceClaims": [{"name": "gpu"}]},
            id="devices requested by claims",
        ),
        pytest.param(
            [queue(), H100],
            {WORKER_ANNOTATIONS: {"annotations": {annotations.LAYERS: "[]"}}},
            id="topology request with layers",
        ),
    ],
)
def test_job_that_may_fit_is_accepted(objects: list[Json], changes: Json) -> None:
    assert reported(*objects, changes=changes) == []


@pytest.mark.parametrize("label", ["kueue.x-k8s.io/multikueue-origin", "kueue.x-k8s.io/prebuilt-workload-name"])
def test_job_copied_by_multikueue_or_with_a_prebuilt_workload_is_not_checked(label: str) -> None:
    assert reported(queue(), labels={**QUEUED, label: "x"}) == []


SMALL = {"cpu": 100, "memory": "1Ti", GPU: 5}


@pytest.mark.parametrize(
    ("objects", "changes", "expected"),
    [
        pytest.param(
            [queue({"h100": SMALL}), H100],
            {},
            [f"{WORKER}: ExceedsMaxQuota: 8 {GPU} > 5 in flavor h100. Use 2 workers."],
            id="GPUs",
        ),
        pytest.param(
            [queue({"h100": SMALL}), H100],
            {"Launcher.template.spec.containers.0.command": ["mpirun", "-np", "8", "x"]},
            [
                f"{WORKER}: ExceedsMaxQuota: 8 {GPU} > 5 in flavor h100. Use 2 workers.",
                "spec: other numbers change with 2 workers. Set -np to 4.",
            ],
            id="ranks",
        ),
        pytest.param(
            [queue({"h100": {**ROOMY, "cpu": 64}}), H100],
            {},
            [f"{WORKER}: ExceedsMaxQuota: 65 cpu > 64 in flavor h100. Use 3 workers."],
            id="launcher and workers together",
        ),
        pytest.param(
            [queue({"h100": ROOMY}), H100],
            {"Launcher.template.spec.containers.0.resources.limits.memory": "2Ti"},
            [f"{LAUNCHER}: ExceedsMaxQuota: 2Ti memory > 1Ti in flavor h100. Request less."],
            id="launcher alone",
        ),
        pytest.param(
            [queue({"a100": {**ROOMY, GPU: 2}, "h100": {**ROOMY, GPU: 4}}), H100, flavor("a100")],
            {},
            [f"{WORKER}: ExceedsMaxQuota: 8 {GPU} > 4 in flavor h100. Use 2 workers."],
            id="the flavor with the most quota",
        ),
        pytest.param(
            [queue({"h100": (pods := {**ROOMY, "pods": 3})}), H100],
            {},
            ["spec.mpiReplicaSpecs[Worker]: ExceedsMaxQuota: 4 pods > 3 in flavor h100. Use 2 workers."],
            id="pods",
        ),
        pytest.param(
            [queue({"h100": SMALL}), queue({"h100": ROOMY}, name="big"), local_queue("more", "big"), H100],
            {},
            [f"{WORKER}: ExceedsMaxQuota: 8 {GPU} > 5 in flavor h100. Use queue more."],
            id="another queue is suggested",
        ),
        pytest.param(
            [
                queue({"h100": SMALL}),
                queue({"h100": ROOMY}, name="big", stopPolicy="Hold"),
                local_queue("more", "big"),
                H100,
            ],
            {},
            [f"{WORKER}: ExceedsMaxQuota: 8 {GPU} > 5 in flavor h100. Use 2 workers."],
            id="another queue is stopped",
        ),
        pytest.param(
            [queue({"h100": {**ROOMY, GPU: 0}}, cohort="c"), cohort("c", {"h100": {GPU: 7}}), H100],
            {},
            [f"{WORKER}: ExceedsMaxQuota: 8 {GPU} > 7 in flavor h100. Use 3 workers."],
            id="the cohort has too little",
        ),
        pytest.param(
            [queue({"h100": ROOMY}), H100],
            {f"{LIMITS}.rdma/hca": 1},
            [f"{WORKER}: resource rdma/hca unavailable in ClusterQueue queue. Use another queue."],
            id="not covered",
        ),
        pytest.param(
            [queue({"h100": {"cpu": 100, "memory": "1Ti"}}), H100],
            {"Launcher.template.spec.containers.0.resources.limits.rdma/hca": 1},
            [
                f"{LAUNCHER}: resource rdma/hca unavailable in ClusterQueue queue. Use another queue.",
                f"{WORKER}: resource {GPU} unavailable in ClusterQueue queue. Use another queue.",
            ],
            id="both roles",
        ),
        pytest.param(
            [queue({"h100": ROOMY}), H100],
            {"Worker.template.spec.nodeSelector": {PRODUCT: "A100"}},
            [
                f"{WORKER}.template.spec.nodeSelector: NoMatchingFlavor: flavor h100 doesn't match node affinity."
                f" Use {PRODUCT}: H100."
            ],
            id="the flavor has another product",
        ),
        pytest.param(
            [queue({"h100": SMALL}), H100],
            {"Worker.template.spec.nodeSelector": {PRODUCT: "A100"}},
            [
                f"{WORKER}.template.spec.nodeSelector: NoMatchingFlavor: flavor h100 doesn't match node affinity."
                " Ask for a queue that fits."
            ],
            id="the flavor has another product and too little quota",
        ),
        pytest.param(
            [queue({"h100": ROOMY}), flavor("h100", nodeTaints=[GPU_TAINT])],
            {"Launcher.template.spec.tolerations": [GPU_TAINT]},
            [
                f"{WORKER}.template.spec.tolerations: NoMatchingFlavor: untolerated taint {GPU}:NoSchedule"
                f" in flavor h100. Tolerate {GPU}."
            ],
            id="a taint",
        ),
        pytest.param(
            [queue({"h100": ROOMY}), H100],
            {"Worker.replicas": None, f"{LIMITS}.{GPU.replace('.', chr(92) + '.')}": 101},
            [f"{WORKER}: ExceedsMaxQuota: 101 {GPU} > 100 in flavor h100. Request less."],
            id="Kueue counts unset replicas as one",
        ),
    ],
)
def test_job_that_never_fits_is_reported(objects: list[Json], changes: Json, expected: list[str]) -> None:
    assert reported(*objects, changes=changes) == expected


TAS = [flavor("racks", {"tas": "yes"}, topologyName="dc"), topology("dc", "zone", "rack"), H100]
MIXED = queue({"h100": ROOMY, "racks": ROOMY})
ONLY = queue({"racks": ROOMY})


def topology_request(**levels: str) -> Json:
    named = {getattr(annotations, key.upper()): value for key, value in levels.items()}
    return {WORKER_ANNOTATIONS: {"annotations": named}}


@pytest.mark.parametrize(
    ("behind", "changes", "expected"),
    [
        (MIXED, {}, []),
        (MIXED, topology_request(required="rack"), []),
        (ONLY, {}, []),
        (ONLY, topology_request(preferred="zone"), []),
        (
            queue({"racks": ROOMY}),
            topology_request(required="row"),
            ["flavor racks does not contain the requested level"],
        ),
        (
            queue({"racks": {"cpu": 100, "memory": "1Ti"}}, {"rows": {GPU: 8}}),
            {},
            ["more than one TAS flavor assigned: racks, rows"],
        ),
    ],
)
def test_topology_request_that_no_flavor_serves_is_reported(behind: Json, changes: Json, expected: list[str]) -> None:
    rows = flavor("rows", {"tas": "yes"}, topologyName="dc")
    lines = reported(behind, rows, *TAS, changes=changes)
    assert [line.partition("NoMatchingFlavor: ")[2].partition(". ")[0] for line in lines] == expected


NONE = {"Launcher.template.spec.containers.0.resources": {}}
NO_FLAVOR = f"{LAUNCHER}: NoMatchingFlavor: no TAS flavor assigned. "
OF_KUEUE = ("kueue-configmaps", "localqueues", "clusterqueues", "resourceflavors", "topologies")
NO_RANGES = head("limitranges", "namespaces", *OF_KUEUE)
GPUS = queue({"racks": {GPU: 100}})
UNCOUNTED = config("resources: {excludeResourcePrefixes: [cpu, memory]}\n")


@pytest.mark.parametrize(
    ("behind", "changes", "expected"),
    [
        pytest.param(ONLY, NONE, [NO_FLAVOR + "Request cpu."], id="cpu is covered"),
        pytest.param(
            ONLY,
            {**NONE, "Launcher.template.spec.containers.0.command": ["mpirun", "-np", "8", "x"]},
            [NO_FLAVOR + "Request cpu."],
            id="the fix changes no other number",
        ),
        pytest.param(MIXED, NONE, [], id="a flavor without a topology"),
        pytest.param(
            MIXED,
            {**NONE, "Launcher.template.metadata": {"annotations": {annotations.UNCONSTRAINED: "true"}}},
            [],
            id="a flavor without a topology, and a topology request",
        ),
        pytest.param(queue({"racks": {**ROOMY, "pods": 100}}), NONE, [], id="the queue covers pods"),
        pytest.param(queue({"racks": ROOMY, "gone": ROOMY}), NONE, [], id="a flavor is unknown"),
    ],
)
def test_launcher_without_requests_in_a_topology_aware_queue_is_reported(
    behind: Json, changes: Json, expected: list[str]
) -> None:
    assert reported(NO_RANGES, behind, *TAS, changes=changes) == expected


def test_fix_requests_zero_gpus_if_the_queue_covers_only_gpus() -> None:
    counted = {"Worker.template.spec.containers.0.resources": {"limits": {GPU: "2"}}}
    objects = [namespace(), local_queue("train", "queue"), GPUS, *TAS]
    changes = {"metadata.labels": QUEUED, **NONE, **counted}
    (violation,) = violations("ever-fits", changes, view=Snapshot([NO_RANGES, config(), *objects]))
    assert violation.fix == f'Request {GPU}: "0".'
    assert fits_a_warning("ever-fits", violation)
    # Kueue ignores the excluded cpu and memory of the launcher.
    (violation,) = violations("ever-fits", {"metadata.labels": QUEUED}, view=Snapshot([NO_RANGES, UNCOUNTED, *objects]))
    assert violation.path == LAUNCHER
    # Unknown LimitRanges may add a request.
    assert violations("ever-fits", changes, view=Snapshot([config(), *objects])) == []


def test_topologies_are_ignored_without_topology_aware_scheduling() -> None:
    off = config("featureGates: {TopologyAwareScheduling: false}\n")
    objects = [off, namespace(), local_queue("train", "queue"), queue({"h100": ROOMY}), *TAS]
    changes = {"metadata.labels": QUEUED, **topology_request(required="rack")}
    assert violations("ever-fits", changes, view=Snapshot(objects)) == []


def test_pod_sets_of_one_group_get_the_same_flavor() -> None:
    """Launcher and workers need 65 cpu. The two flavors have 65 cpu together, but neither has them alone."""
    group = {annotations.REQUIRED: "rack", annotations.POD_SET_GROUP: "all"}
    changes = {f"{role}.template.metadata": {"annotations": group} for role in ("Launcher", "Worker")}
    rows = flavor("rows", {"tas": "no"}, topologyName="dc")
    behind = queue({"racks": {**ROOMY, "cpu": 64}, "rows": {**ROOMY, "cpu": 1}})
    assert reported(behind, rows, *TAS, changes={}) == []
    lines = reported(behind, rows, *TAS, changes=changes)
    assert lines == [f"{WORKER}: ExceedsMaxQuota: 65 cpu > 64 in flavor racks. Use 3 workers."]


@pytest.mark.parametrize(
    "resources",
    [
        "{excludeResourcePrefixes: [rdma/]}",
        "{transformations: [{input: rdma/hca, strategy: Replace, outputs: {cpu: 1}}]}",
    ],
)
def test_resource_that_kueue_does_not_charge_is_ignored(resources: str) -> None:
    objects = [namespace(), local_queue("train", "queue"), queue({"h100": ROOMY}), H100]
    changes = {"metadata.labels": QUEUED, f"{LIMITS}.rdma/hca": 1}
    assert violations("ever-fits", changes, view=Snapshot([config(), *objects]))
    assert not violations("ever-fits", changes, view=Snapshot([config(f"resources: {resources}\n"), *objects]))


def test_namespace_that_kueue_might_not_manage_causes_no_violation() -> None:
    objects = [namespace(), local_queue("train", "queue"), queue()]
    assert violations("ever-fits", {"metadata.labels": QUEUED}, view=Snapshot(objects)) == []
    unmanaged = config("managedJobsNamespaceSelector: {matchLabels: {kueue: 'yes'}}\n")
    assert violations("ever-fits", {"metadata.labels": QUEUED}, view=Snapshot([unmanaged, *objects])) == []


def test_defaults_of_limit_ranges_count_as_requests() -> None:
    ranges = limit_range("defaults", {"type": "Container", "default": {"ephemeral-storage": "1Gi"}})
    lines = reported(queue({"h100": ROOMY}), H100, ranges, changes={})
    assert [line.partition(":")[2] for line in lines] == [
        " resource ephemeral-storage unavailable in ClusterQueue queue. Leave it out."
    ] * 2
