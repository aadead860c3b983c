"""Generates trees of cohorts and ClusterQueues, their common flavors, and jobs."""

from random import Random
from typing import Any

from tests.support.jobs import changed
from webhook.api.kueue import QUEUE_NAME
from webhook.cluster.resources.cluster_queues import CLUSTER_QUEUES, ClusterQueue
from webhook.cluster.view import ClusterView
from webhook.predict.kueue import topology

Manifest = dict[str, Any]

API = "kueue.x-k8s.io/v1beta2"
GPU, RDMA, PRODUCT, ZONE = "nvidia.com/gpu", "rdma/hca", "nvidia.com/gpu.product", "topology.kubernetes.io/zone"
RACK, HOST = "topology.kubernetes.io/rack", "kubernetes.io/hostname"
EXCLUDED = "vendor.example/"
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
SPOT_TAINT = {"key": "spot", "value": "true", "effect": "NoExecute"}
SOFT_TAINT = {"key": "soft", "effect": "PreferNoSchedule"}

FLAVORS: dict[str, Manifest] = {
    "plain": {},
    "default": {"nodeLabels": {"pool": "default"}},
    "h100": {"nodeLabels": {PRODUCT: "H100", "pool": "gpu"}},
    "a100": {"nodeLabels": {PRODUCT: "A100", ZONE: "a"}},
    "tainted": {"nodeLabels": {PRODUCT: "L40"}, "nodeTaints": [GPU_TAINT, SOFT_TAINT]},
    "spot": {"nodeLabels": {"capacity": "80"}, "nodeTaints": [SPOT_TAINT]},
    "tolerant": {
        "nodeLabels": {PRODUCT: "H200"},
        "nodeTaints": [GPU_TAINT],
        "tolerations": [{"key": GPU, "operator": "Exists"}],
    },
    "racks": {"nodeLabels": {"tas": "yes"}, "topologyName": "racks"},
    "hosts": {"nodeLabels": {"tas": "yes"}, "topologyName": "hosts"},
}
TOPOLOGIES = {"racks": [ZONE, RACK, HOST], "hosts": [HOST]}


def shared() -> list[Manifest]:
    return [
        *(
            manifest("Topology", name, {"levels": [{"nodeLabel": key} for key in keys]})
            for name, keys in TOPOLOGIES.items()
        ),
        *(manifest("ResourceFlavor", name, spec) for name, spec in FLAVORS.items()),
    ]


def manifest(kind: str, name: str, spec: Manifest, **metadata: str) -> Manifest:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def nodes() -> list[Manifest]:
    """Nodes with more capacity than any job requests, so that only quotas limit jobs."""
    amounts = dict.fromkeys(("cpu", GPU, RDMA, f"{EXCLUDED}nic", "pods"), "100k")
    amounts |= {"memory": "100Pi", "ephemeral-storage": "1Pi"}
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{index}",
                "labels": {HOST: f"node-{index}", RACK: f"rack-{index % 2}", ZONE: "a", "tas": "yes"},
            },
            "status": status,
        }
        for index in range(4)
    ]


def tree(rng: Random, index: int) -> tuple[list[Manifest], list[str]]:
    """Connected cohorts and ClusterQueues, and the names of the ClusterQueues."""
    name = f"tree-{index}"
    groups = _groups(rng)
    if rng.random() < 0.15:
        return [_cluster_queue(rng, f"{name}-q0", groups, "")], [f"{name}-q0"]
    cohorts = [name]  # the root of the tree; in half of the cases it has no Cohort object
    cohort_objects = []
    for child in range(rng.randint(0, 3)):
        parent = rng.choice(cohorts)
        cohorts.append(f"{name}-{child}")
        own = _resource_groups(rng, groups, cohort=True) if rng.random() < 0.5 else []
        cohort_objects.append(manifest("Cohort", cohorts[-1], {"parentName": parent, "resourceGroups": own}))
    if rng.random() < 0.5:
        own = _resource_groups(rng, groups, cohort=False) if rng.random() < 0.6 else []
        cohort_objects.append(manifest("Cohort", name, {"resourceGroups": own}))
    queues = [f"{name}-q{number}" for number in range(rng.randint(1, 4))]
    return [*cohort_objects, *(_cluster_queue(rng, queue, groups, rng.choice(cohorts)) for queue in queues)], queues


Groups = list[tuple[list[str], list[str]]]  # covered resources, flavors


def _groups(rng: Random) -> Groups:
    kind = rng.random()
    topologies = ["racks", "hosts"]
    others = [name for name in FLAVORS if name not in topologies]
    if kind < 0.15:
        pool = topologies  # only flavors with a topology
    elif kind < 0.35:
        pool = [*topologies, *others]
    else:
        pool = others
    names = rng.sample(pool, len(pool))
    resources = ["cpu", "memory", GPU] + [name for name in (RDMA, "pods", "ephemeral-storage") if rng.random() < 0.3]
    if rng.random() < 0.4 and len(names) > 1:
        split = rng.randint(1, min(3, len(names) - 1))
        first = [name for name in resources if name not in (GPU, RDMA)]
        second = [name for name in resources if name in (GPU, RDMA)]
        return [(first, names[:split]), (second, names[split : split + rng.randint(1, 3)])]
    return [(resources, names[: rng.randint(1, 4)])]


def _resource_groups(rng: Random, groups: Groups, *, cohort: bool) -> list[Manifest]:
    """Resource groups with quotas. If `cohort` is set, some quotas have borrowing and lending limits."""
    return [
        {
            "coveredResources": resources,
            "flavors": [
                {"name": flavor, "resources": [_quota(rng, resource, limits=cohort) for resource in resources]}
                for flavor in flavors
            ],
        }
        for resources, flavors in groups
    ]


AMOUNTS = {
    "cpu": ("0", "3500m", "10", "64", "200", "400"),
    "memory": ("0", "1000M", "32Gi", "200Gi", "1Ti"),
    GPU: ("0", "4", "8", "32", "100"),
    RDMA: ("0", "2", "16", "64"),
    "pods": ("1", "5", "40", "100"),
    "ephemeral-storage": ("0", "10Gi", "1Ti", "9Ti"),
}


def _quota(rng: Random, resource: str, *, limits: bool) -> Manifest:
    amounts = AMOUNTS[resource]
    quota: Manifest = {"name": resource, "nominalQuota": rng.choice(amounts)}
    if limits and rng.random() < 0.35:
        quota["borrowingLimit"] = rng.choice(amounts)
    if limits and rng.random() < 0.35:
        quota["lendingLimit"] = rng.choice(
            amounts[: amounts.index(quota["nominalQuota"]) + 1]
        )  # at most the nominal quota
    return quota


def _cluster_queue(rng: Random, name: str, groups: Groups, cohort: str) -> Manifest:
    spec: Manifest = {"namespaceSelector": {}, "resourceGroups": _resource_groups(rng, groups, cohort=bool(cohort))}
    if cohort:
        spec["cohortName"] = cohort
        spec["preemption"] = {"reclaimWithinCohort": "Any"}
    if rng.random() < 0.3:
        spec["flavorFungibility"] = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}
    return manifest("ClusterQueue", name, spec)


TOLERATIONS = (
    {"key": GPU, "operator": "Exists"},
    {"key": GPU, "value": "present", "effect": "NoSchedule"},
    {"key": GPU, "value": "absent"},
    {"key": "spot", "operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists"},
)
SELECTORS = ({PRODUCT: "H100"}, {PRODUCT: "A100", "unrelated": "x"}, {"unrelated": "x"}, {"pool": "gpu"})
TERMS = (
    [{"key": PRODUCT, "operator": "In", "values": ["H100", "L40"]}],
    [{"key": PRODUCT, "operator": "NotIn", "values": ["H100"]}, {"key": "unrelated", "operator": "Exists"}],
    [{"key": "capacity", "operator": "Gt", "values": ["79"]}],
    [{"key": "capacity", "operator": "Lt", "values": ["80"]}],
    [{"key": "pool", "operator": "Exists"}],
    [{"key": ZONE, "operator": "DoesNotExist"}],
)
ANNOTATIONS = (
    {topology.REQUIRED: RACK},
    {topology.PREFERRED: ZONE},
    {topology.REQUIRED: HOST},
    {topology.UNCONSTRAINED: "true"},
    {topology.UNCONSTRAINED: "false"},
    {topology.SLICE: RACK, topology.SLICE_SIZE: "1"},
    {topology.SLICE: HOST, topology.SLICE_SIZE: "1"},
)


def job(rng: Random, name: str, namespace: str, *, topologies: bool) -> Manifest:
    """A job for the queue `queue` of the namespace. `topologies` says whether the queue's flavors have topologies."""
    chance = 0.6 if topologies else 0.05
    annotations = rng.choice(ANNOTATIONS) if rng.random() < chance else {}
    changes: dict[str, Any] = {
        "metadata": {"name": name, "namespace": namespace, "labels": {QUEUE_NAME: "queue"}},
        "Worker.replicas": rng.choice((1, 2, 2, 3, 4, 8, 20)),
        "Launcher.template": _template(rng, "launcher", annotations if rng.random() < 0.7 else {}),
        "Worker.template": _template(rng, "worker", annotations),
    }
    if rng.random() < 0.1 and topology.REQUIRED in annotations:
        for role in ("Launcher", "Worker"):
            changes[f"{role}.template"]["metadata"]["annotations"] = {**annotations, topology.POD_SET_GROUP: "all"}
    if rng.random() < 0.1:
        changes["Worker"] = {"template": changes["Worker.template"]}  # without `replicas`, Kueue assumes one worker
        del changes["Worker.replicas"], changes["Worker.template"]
    return changed(changes)


def _template(rng: Random, role: str, annotations: dict[str, str]) -> Manifest:
    limits: Manifest = {}
    if rng.random() < 0.9:
        limits["cpu"] = rng.choice(("500m", "1", "2", "8"))
    if rng.random() < 0.8:
        limits["memory"] = rng.choice(("100M", "1Gi", "16Gi"))
    if rng.random() < (0.6 if role == "worker" else 0.15):
        limits[GPU] = rng.choice((0, 1, 4, 8))
    if rng.random() < 0.08:
        limits[RDMA] = rng.choice((0, 1))
    if rng.random() < 0.1:
        limits[f"{EXCLUDED}nic"] = 1
    if rng.random() < 0.05:
        limits["ephemeral-storage"] = rng.choice(("1Gi", "2Ti"))
    container = {"name": role, "image": "registry.example.com/ml/train:1.4", "resources": {"limits": limits}}
    spec: Manifest = {"containers": [container]}
    if rng.random() < 0.7:
        spec["tolerations"] = rng.sample(TOLERATIONS, rng.randint(1, 2))
    if rng.random() < 0.15:
        spec["nodeSelector"] = rng.choice(SELECTORS)
    if rng.random() < 0.15:
        terms = [{"matchExpressions": each} for each in rng.sample(TERMS, rng.randint(1, 2))]
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if rng.random() < 0.1:
        spec["initContainers"] = [
            {
                **container,
                "name": "init",
                "restartPolicy": rng.choice(("Always", None)),
                "resources": {"requests": {"cpu": "3"}},
            }
        ]
    return {"metadata": {"annotations": annotations}, "spec": spec}


def has_topologies(view: ClusterView, cluster_queue: str) -> bool:
    queue = view.get(CLUSTER_QUEUES, cluster_queue)
    assert isinstance(queue, ClusterQueue)
    return any(name in TOPOLOGIES for group in queue.groups for name in group.flavors)
