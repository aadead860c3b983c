"""At least one object of every resource that rules read, and jobs that refer to these objects."""

from collections.abc import Iterator
from typing import Any

import yaml

from tests.controlplane import kueue
from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import gpu_nodes
from tests.support import kueue_objects, openshift, volcano_objects
from tests.support.installation import custom_resources
from tests.support.installation.custom_resources import custom_resource
from tests.support.jobs import REMOVE, changed
from webhook import rules
from webhook.admission.pipelines import Policy, load_policy
from webhook.cluster.resource import WatchedPlace
from webhook.cluster.resources import watched_resources

Manifest = dict[str, Any]
TEAM = "team-full"
OWN = "mpijob-webhook"
PLACES = {WatchedPlace.OWN: OWN, WatchedPlace.KUEUE: kueue.NAMESPACE}
NETWORKS = "k8s.v1.cni.cncf.io/networks"
DEVICES = "resource.k8s.io/v1"
OPENSHIFT = "config.openshift.io/v1"
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"


def strict() -> Policy:
    """A policy in which every rule denies, so that a verdict shows every violation."""
    actions: dict[str, Manifest] = {name: {"action": "deny"} for name in rules.REGISTRY}
    actions["accelerator-available"]["autoscaled"] = False  # without this setting, missing nodes cause only a warning
    actions["volcano-queue"]["gangScheduling"] = True
    document = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy", "rules": actions}
    return load_policy(yaml.safe_dump(document))


def full_job(**changes: Any) -> Manifest:
    """A job that refers to an object of each kind, and violates no rule."""
    spec = "Worker.template.spec"
    refers = {
        "metadata.namespace": TEAM,
        "metadata.labels": {QUEUE: "training", PRIORITY: "urgent"},
        "Worker.template.metadata": {"annotations": {NETWORKS: "fast-net"}},
        f"{spec}.volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "settings", "configMap": {"name": "settings"}},
        ],
        f"{spec}.serviceAccountName": "runner",
        "Launcher.template.spec.automountServiceAccountToken": False,
        f"{spec}.runtimeClassName": "nvidia",
        f"{spec}.priorityClassName": "training",
        f"{spec}.nodeSelector": {"nvidia.com/gpu.present": "true"},
        "spec.runPolicy": {"cleanPodPolicy": "Running", "suspend": True},
    }
    return changed(changes, changed(refers))


def jobs() -> list[Manifest]:
    """The full job, and jobs with one violation each. Each job has a different name."""
    spec = "Worker.template.spec"
    limits = f"{spec}.containers.0.resources.limits"
    unqueued = {"metadata.labels": REMOVE, "spec.runPolicy.suspend": False}
    faults: dict[str, dict[str, Any]] = {
        "full": {},
        "unqueued": unqueued,
        "claim": {f"{spec}.volumes.0.persistentVolumeClaim.claimName": "dta"},
        "config-map": {f"{spec}.volumes.1.configMap.name": "nope"},
        "account": {f"{spec}.serviceAccountName": "nope"},
        "runtime": {f"{spec}.runtimeClassName": "nope"},
        "network": {"Worker.template.metadata.annotations": {NETWORKS: "slow-net"}},
        "priority": {f"{spec}.priorityClassName": "nope"},
        "workload-priority": {"metadata.labels": {QUEUE: "training", PRIORITY: "nope"}},
        "queue": {"metadata.labels": {QUEUE: "nope"}},
        "volcano": {**unqueued, "spec.runPolicy.schedulingPolicy": {"queue": "nope"}},
        "never": {"metadata.labels": {QUEUE: "training"}, "Worker.replicas": 60},
        "node": {**unqueued, f"{limits}.nvidia\\.com/gpu": 16},
        "selector": {**unqueued, f"{spec}.runtimeClassName": REMOVE, f"{spec}.nodeSelector": {"disk": "ssd"}},
        "quota": {**unqueued, "Worker.replicas": 40},
        "too-large": {f"{limits}.memory": "900Gi"},
        "devices": {f"{spec}.resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]},
        "taken": {"metadata.labels": {}},
        "stored": {"Worker.replicas": 5},
    }
    return [full_job(**{"metadata.name": name, **changes}) for name, changes in faults.items()]


def objects() -> list[Manifest]:
    """The objects of the cluster in the order of creation. The CRDs of `definitions` must exist."""
    return [*_namespaces(), *_cluster_wide(), *_in_team(), *_children()]


def _namespaces() -> Iterator[Manifest]:
    yield _object("v1", "Namespace", TEAM, "", labels={"tier": "base"})
    for name in PLACES.values():
        yield _object("v1", "Namespace", name, "")
    for name in (TEAM, *PLACES.values()):
        yield _object("v1", "ServiceAccount", "default", name)


def _cluster_wide() -> Iterator[Manifest]:
    yield from gpu_nodes(3)
    yield from gpu_nodes(2, gpus=0, prefix="cpu")
    yield _object("scheduling.k8s.io/v1", "PriorityClass", "training", "", value=1000)
    runtime = {"handler": "nvidia", "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}}
    yield _object("node.k8s.io/v1", "RuntimeClass", "nvidia", "", **runtime)
    device_class = {"spec": {"extendedResourceName": "example.com/gpu"}}
    yield _object(DEVICES, "DeviceClass", "gpu.nvidia.com", "", **device_class)
    yield {**kueue_objects.workload_priority_class("urgent"), "value": 10}
    yield kueue_objects.topology("racks", "topology.kubernetes.io/rack", "kubernetes.io/hostname")
    yield kueue_objects.manifest("AdmissionCheck", "elsewhere", {"controllerName": "example.com/checks"})
    yield kueue_objects.cohort("all")
    yield volcano_objects.queue("default", {"nvidia.com/gpu": 64})
    mirrored = [{"source": "quay.io/platform", "mirrors": ["mirror.example.com/platform"]}]
    yield _object(OPENSHIFT, "ImageDigestMirrorSet", "platform", "", spec={"imageDigestMirrors": mirrored})
    yield _object(OPENSHIFT, "ImageTagMirrorSet", "platform", "", spec={"imageTagMirrors": mirrored})
    yield from (scc for scc in openshift.DEFAULT_SCCS if scc["metadata"]["name"] == "restricted-v2")
    yield openshift.cluster_quota({"pods": "100"}, {"pods": "0"}, name="teams", namespaces=[TEAM])
    yield _object("scheduling.x-k8s.io/v1alpha1", "PodGroup", "none", TEAM)
    yield kueue_objects.flavor("h100", {"nvidia.com/gpu.present": "true"})
    quotas = {"h100": {"cpu": 400, "memory": "4Ti", "nvidia.com/gpu": 64}}
    yield kueue_objects.cluster_queue("gpu", quotas, cohort="all")
    config = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    config["integrations"] = {"frameworks": list(kueue.FRAMEWORKS)}  # type: ignore[assignment]
    data = {kueue.CONFIG_KEY: yaml.safe_dump(config)}
    yield _object("v1", "ConfigMap", kueue.CONFIG_MAP, kueue.NAMESPACE, data=data)


def _in_team() -> Iterator[Manifest]:
    yield kueue_objects.local_queue("training", "gpu", namespace=TEAM)
    yield _object("v1", "ServiceAccount", "runner", TEAM)
    yield _object("v1", "ConfigMap", "settings", TEAM, data={"password": "nobody's business"})
    yield _object("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "fast-net", TEAM, spec={"config": "{}"})
    open_to_all = {
        "podSelector": {},
        "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}, {"podSelector": {}}]}],
    }
    yield _object("networking.k8s.io/v1", "NetworkPolicy", "open", TEAM, spec=open_to_all)
    storage = {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}
    claim = {"accessModes": ["ReadWriteMany"], **storage}
    yield _object("v1", "PersistentVolumeClaim", "data", TEAM, spec=claim)
    request = {"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 20}}
    yield _object(DEVICES, "ResourceClaimTemplate", "gpus", TEAM, spec={"spec": {"devices": {"requests": [request]}}})
    annotations = {"training.openshift.io/reserved": "[]", "training.openshift.io/for-namespace": TEAM}
    labels = {"training.openshift.io/reservations": "true"}
    yield _object("coordination.k8s.io/v1", "Lease", TEAM, OWN, labels=labels, annotations=annotations)
    yield changed({"metadata.name": "stored"}, full_job())
    limit = {"type": "Container", "max": {"memory": "800Gi"}, "defaultRequest": {"cpu": "100m"}}
    yield _object("v1", "LimitRange", "bounds", TEAM, spec={"limits": [limit]})


def _children() -> Iterator[Manifest]:
    """Objects with the names that the job `taken` needs. The quota is last, because it would reject the pods."""
    container = {"name": "x", "image": "x"}
    yield _object("v1", "Service", "taken", TEAM, spec={"clusterIP": "None", "ports": [{"port": 22}]})
    yield _object("v1", "ConfigMap", "taken-config", TEAM)
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    yield _object("batch/v1", "Job", "taken-launcher", TEAM, spec={"template": template, "suspend": True})
    labels = {"training.kubeflow.org/job-name": "taken", "training.kubeflow.org/job-role": "worker"}
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "taken", "uid": "u-1", "controller": True}
    for index in range(2):
        name = f"taken-worker-{index}"
        pod = {"spec": {"containers": [container]}}
        yield _object("v1", "Pod", name, TEAM, labels=labels, ownerReferences=[owner], **pod)
    yield _object("v1", "Pod", "taken-worker-2", TEAM, spec={"containers": [container]})
    hard = {"requests.cpu": "300", "requests.nvidia.com/gpu": "64", "pods": "50"}
    yield _object("v1", "ResourceQuota", "team", TEAM, spec={"hard": hard})


def definitions(cluster: Cluster) -> list[Manifest]:
    """CRDs of Kueue (without conversion, because Kueue does not run), Multus, Volcano, coscheduling and OpenShift."""
    text = cluster.kubectl("kustomize", cluster.assets.kueue_installation).stdout
    watched = {resource.kind for resource in watched_resources()}
    documents = yaml.load_all(text, Loader=yaml.CSafeLoader)
    definitions = [document for document in documents if document["kind"] == "CustomResourceDefinition"]
    crds = [crd for crd in definitions if crd["spec"]["names"]["kind"] in watched]
    for crd in crds:
        crd["spec"].pop("conversion", None)
    cluster_wide = (
        ("scheduling.volcano.sh", "queues", "Queue", "v1beta1"),
        ("config.openshift.io", "imagedigestmirrorsets", "ImageDigestMirrorSet", "v1"),
        ("config.openshift.io", "imagetagmirrorsets", "ImageTagMirrorSet", "v1"),
        ("security.openshift.io", "securitycontextconstraints", "SecurityContextConstraints", "v1"),
        ("quota.openshift.io", "clusterresourcequotas", "ClusterResourceQuota", "v1"),
    )
    return [
        *crds,
        networks_definition(),
        custom_resource("scheduling.x-k8s.io", "podgroups", "PodGroup", "v1alpha1"),
        *(custom_resource(*names, scope="Cluster") for names in cluster_wide),
    ]


def networks_definition() -> Manifest:
    """The CRD of Multus."""
    names = ("network-attachment-definitions", "NetworkAttachmentDefinition")
    return custom_resource("k8s.cni.cncf.io", *names, "v1", singular="network-attachment-definition")


def install(cluster: Cluster) -> None:
    custom_resources.install(cluster, definitions(cluster))
    cluster.apply(objects())


def _object(api_version: str, kind: str, name: str, namespace: str, **fields: Any) -> Manifest:
    in_metadata = ("labels", "annotations", "ownerReferences")
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    metadata |= {key: fields.pop(key) for key in in_metadata if key in fields}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
