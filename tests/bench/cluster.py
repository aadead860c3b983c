"""A simulated API server for a cluster of any size. The objects have all usual fields, and never change."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.bench.body import CREATED, user_job, with_crd_defaults
from tests.bench.managed_fields import managed_fields
from tests.controlplane.nodes import gpu_nodes
from tests.support.loopback import ENDING, served
from tests.support.object_api import kubeconfig as write_kubeconfig
from webhook.api.mpijob import API_VERSION
from webhook.cluster.resource import WatchedPlace
from webhook.cluster.resources import watched_resources
from webhook.server.policy_watch import policies

PLACES = {WatchedPlace.OWN: "mpijob-webhook", WatchedPlace.KUEUE: "kueue-system"}
ABSENT = ("resourcequotas", "leases")
JOBS_PER_NAMESPACE = 10
# The number of worker pods of each running job. The spec of the job has one worker more.
WORKERS = 4

Manifest = dict[str, Any]
Listed = tuple[int, Callable[[int], bytes]]
"""The number of objects, and a function that returns the JSON of an object by its index."""
KUEUE_CONFIG = {
    "controller_manager_config.yaml": "apiVersion: config.kueue.x-k8s.io/v1beta2\n"
    "kind: Configuration\nintegrations: {frameworks: [kubeflow.org/mpijob]}\n"
}


@dataclass(frozen=True)
class Size:
    """The size of the cluster, which depends on the number of `jobs`. Half of the jobs are finished."""

    jobs: int
    namespaces: int

    @classmethod
    def of(cls, jobs: int) -> "Size":
        """A cluster with the same number of jobs in each namespace."""
        return cls(jobs, max(1, jobs // JOBS_PER_NAMESPACE))

    def namespace(self, job: int) -> str:
        return f"team-{job % self.namespaces:04}"


@contextmanager
def kubeconfig(folder: Path, size: Size) -> Iterator[Path]:
    """A kubeconfig for a simulated API server, which runs until the block ends.

    The cluster has no quotas, because a review with a quota would write a reservation.
    """
    by_path = {place: listed for place, listed in collections(size).items() if not place[0].endswith(ABSENT)}
    configmaps = policies(PLACES[WatchedPlace.OWN])
    by_path[configmaps.path, configmaps.label_selector] = 0, lambda _: b""
    with served(_application(by_path), shutdown_timeout=0.1) as url:
        yield write_kubeconfig(folder / f"{size.jobs}-jobs.kubeconfig", url)


def _application(by_path: dict[tuple[str, str], Listed]) -> web.Application:
    async def handle(request: web.Request) -> web.StreamResponse:
        count, make = by_path.get((request.path, request.query.get("labelSelector", "")), (-1, bytes))
        if count < 0:
            return web.json_response({"kind": "Status", "code": 404, "message": "not found"}, status=404)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        with suppress(ConnectionResetError):  # the client closed the connection
            await response.prepare(request)
            if "watch" in request.query:
                await request.app[ENDING].wait()
                return response
            start, limit = int(request.query.get("continue", 0)), int(request.query["limit"])
            for piece in pages(count, make, start, limit):
                await response.write(piece)
        return response

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    return app


def collections(size: Size) -> dict[tuple[str, str], Listed]:
    """All objects, by the path and label selector of their collection."""
    made = objects(size)
    by_path = {}
    for resource in watched_resources():
        if resource.name in made:
            path = resource.path(resource.api_versions[0], PLACES[resource.place] if resource.place else "")
            by_path[path, resource.label_selector] = made[resource.name]
    return by_path


def objects(size: Size) -> dict[str, Listed]:
    jobs, teams = size.jobs, size.namespaces

    def team(index: int) -> str:
        return f"team-{index % teams:04}"

    def child(suffix: str) -> Listed:
        """An object for each job."""
        return jobs, lambda index: _child(index, f"job-{index}{suffix}", size)

    def teams_own(name: str, **fields: Any) -> Listed:
        """An object in each namespace."""
        return teams, lambda index: encode(name, team(index), **fields)

    return {
        "namespaces": (teams, lambda index: encode(team(index), labels={"tier": "base", "team": f"t{index}"})),
        "mpijobs": (jobs, lambda index: job_json(index, size.namespace(index))),
        "pods": (jobs // 2 * (WORKERS + 1), lambda index: _pod(index, size)),
        "other-pods": (jobs, lambda index: encode(f"store-worker-{index}", team(index))),
        "jobs": child("-launcher"),
        "services": child(""),
        "configmaps": (jobs + 2 * teams, lambda index: config_map(index, size)),
        "nodes": (max(1, jobs // 2), lambda index: _node(index % 40).replace(b"gpu-0", f"gpu-{index}".encode())),
        "resourcequotas": teams_own("team", spec={"hard": HARD}, status={"hard": HARD, "used": USED}),
        "limitranges": teams_own("bounds", spec={"limits": [{"type": "Container", "max": {"cpu": "96"}}]}),
        "localqueues": teams_own("training", spec={"clusterQueue": "cq-0"}),
        "persistentvolumeclaims": (2 * teams, lambda index: claim(index, team(index // 2))),
        "serviceaccounts": (2 * teams, lambda index: encode(("default", "pipeline")[index % 2], team(index // 2))),
        "network-attachment-definitions": teams_own("fast-net"),
        "networkpolicies": teams_own(
            "same-namespace", spec={"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}
        ),
        "clusterqueues": (max(1, teams // 10), lambda index: encode(f"cq-{index}", spec=CLUSTER_QUEUE)),
        "admissionchecks": (
            1,
            lambda index: encode("multikueue", spec={"controllerName": "kueue.x-k8s.io/multikueue"}),
        ),
        "cohorts": (3, lambda index: encode(f"cohort-{index}", spec={})),
        "resourceflavors": (1, lambda index: encode("h100", spec={"nodeLabels": {"nvidia.com/gpu.present": "true"}})),
        "topologies": (1, lambda index: encode("racks", spec={"levels": [{"nodeLabel": "kubernetes.io/hostname"}]})),
        "queues": (2, lambda index: encode(("default", "root")[index], status={"state": "Open"})),
        "priorityclasses": (5, lambda index: encode(("training", *"abcd")[index], value=index)),
        "workloadpriorityclasses": (3, lambda index: encode("abc"[index], value=index)),
        "deviceclasses": (2, lambda index: encode(("gpu.nvidia.com", "mig.nvidia.com")[index], spec={})),
        "resourceclaimtemplates": teams_own("gpus", spec=CLAIM_TEMPLATE),
        "imagedigestmirrorsets": (2, lambda index: encode("ab"[index], spec={"imageDigestMirrors": MIRRORED})),
        "imagetagmirrorsets": (1, lambda index: encode("tags", spec={"imageTagMirrors": MIRRORED})),
        "securitycontextconstraints": (2, lambda index: encode(("restricted-v2", "anyuid")[index], users=[])),
        "clusterresourcequotas": (1, lambda index: encode("all", spec={"quota": {"hard": HARD}}, status={})),
        "podgroups": (1, lambda index: encode("none", team(index))),
        "runtimeclasses": (2, lambda index: encode(("nvidia", "kata")[index], handler="x")),
        "own-leases": (
            max(1, teams // 100),
            lambda index: encode(
                team(index), PLACES[WatchedPlace.OWN], annotations={"training.openshift.io/reserved": "[]"}
            ),
        ),
        "kueue-configmaps": (
            1,
            lambda _: encode("kueue-manager-config", PLACES[WatchedPlace.KUEUE], data=KUEUE_CONFIG),
        ),
    }


HARD = {"requests.cpu": "1M", "requests.memory": "64Pi", "requests.nvidia.com/gpu": "1M", "pods": "1M"}
USED = {"requests.cpu": "100", "requests.memory": "1Ti", "requests.nvidia.com/gpu": "20", "pods": "30"}
_COVERED = ["cpu", "memory", "nvidia.com/gpu"]
_QUOTAS = [{"name": name, "nominalQuota": "50Ti"} for name in _COVERED]
MIRRORED = [{"source": "quay.io/platform", "mirrors": ["mirror.example.com/platform"]}]
CLAIM_TEMPLATE = {
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
}
CLUSTER_QUEUE = {
    "namespaceSelector": {},
    "cohortName": "cohort-0",
    "resourceGroups": [{"coveredResources": _COVERED, "flavors": [{"name": "h100", "resources": _QUOTAS}]}],
}


def encode(name: str, namespace: str = "", **fields: Any) -> bytes:
    """An object's JSON, with a typical managedFields entry."""
    metadata = {key: fields.pop(key) for key in ("labels", "annotations", "ownerReferences") if key in fields}
    managed = {"manager": "kubectl", "operation": "Update", "time": CREATED, "fieldsType": "FieldsV1"}
    whole = {"f:metadata": {"f:labels": {".": {}}}, "f:spec": {f"f:field-{index}": {} for index in range(12)}}
    metadata |= {"managedFields": [{**managed, "fieldsV1": whole}], "creationTimestamp": CREATED, "uid": f"uid-{name}"}
    metadata |= {"name": name, "resourceVersion": "7"} | ({"namespace": namespace} if namespace else {})
    return json.dumps({"metadata": metadata, **fields}, separators=(",", ":")).encode()


def job_json(number: int, namespace: str) -> bytes:
    """A stored job. There are twenty variants with different requests."""
    return _job(number % 20).replace(b"NUMBER", str(number).encode()).replace(b"NAMESPACE", namespace.encode())


@cache
def _job(variant: int) -> bytes:
    made = with_crd_defaults(user_job(variant))
    made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = WORKERS + 1
    managed = {"manager": "kubectl-create", "fieldsType": "FieldsV1", "fieldsV1": managed_fields(made)}
    made["metadata"] |= {
        "name": "job-NUMBER",
        "namespace": "NAMESPACE",
        "uid": "uid-NUMBER",
        "resourceVersion": "7",
        "managedFields": [managed],
    }
    made["status"] = {"conditions": [{"type": "Succeeded" if variant % 2 else "Running", "status": "True"}]}
    if variant % 2:
        made["status"]["completionTime"] = "2026-01-01T00:00:00Z"
    return json.dumps(made, separators=(",", ":")).encode()


def _child(number: int, name: str, size: Size, **labels: str) -> bytes:
    """An object that belongs to the job with this number."""
    job_name = f"job-{number}"
    owner = {"apiVersion": API_VERSION, "kind": "MPIJob", "name": job_name, "uid": f"uid-{number}", "controller": True}
    labels = {"training.kubeflow.org/job-name": job_name, **labels}
    return encode(name, size.namespace(number), labels=labels, ownerReferences=[owner])


def _pod(index: int, size: Size) -> bytes:
    """A worker or the launcher of a running job. Jobs with even numbers are running."""
    running, pod = divmod(index, WORKERS + 1)
    role, suffix = ("worker", f"worker-{pod}") if pod < WORKERS else ("launcher", "launcher-x7k2p")
    labels = {"training.kubeflow.org/job-role": role}
    return _child(2 * running, f"job-{2 * running}-{suffix}", size, **labels)


def config_map(index: int, size: Size) -> bytes:
    """The hostfile of a job, or one of two ConfigMaps in each namespace."""
    if index < size.jobs:
        return _child(index, f"job-{index}-config", size)
    name = ("resnet-config", "kube-root-ca.crt")[index % 2]
    return encode(name, f"team-{(index - size.jobs) // 2:04}")


def claim(index: int, namespace: str) -> bytes:
    """The claim `data` or `checkpoints` of a namespace."""
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "fast", "volumeName": f"pv-{index}"}
    return encode(("data", "checkpoints")[index % 2], namespace, spec=spec, status={"phase": "Bound"})


@cache
def _node(variant: int) -> bytes:
    """A node with its images and conditions."""
    (node,) = gpu_nodes(1, zone=f"zone-{variant % 4}", product=f"GPU-{variant % 10}", cpu=96 + variant)
    images = [
        {"names": [f"registry.example.com/image-{index}@sha256:{'0' * 64}"], "sizeBytes": 1} for index in range(50)
    ]
    status = {**node["status"], "images": images, "conditions": [{"type": "Ready", "status": "True"}] * 5}
    return json.dumps({"metadata": {**node["metadata"], "resourceVersion": "7"}, "status": status}).encode()


def pages(count: int, make: Callable[[int], bytes], start: int, limit: int) -> Iterator[bytes]:
    """The JSON of a page of a list, in pieces."""
    end = min(count, start + limit)
    token = f'"{end}"' if end < count else '""'
    yield f'{{"kind":"List","metadata":{{"resourceVersion":"7","continue":{token}}},"items":['.encode()
    yield b",".join(make(index) for index in range(start, end))
    yield b"]}"
