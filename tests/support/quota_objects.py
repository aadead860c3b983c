"""A cluster with quotas as Kubernetes objects, for predictions about quotas."""

from collections.abc import Mapping
from typing import Any

from tests.support import limit_ranges
from tests.support.jobs import changed
from webhook.api import quantity
from webhook.api.mpijob import WORKER
from webhook.api.quota_charges import Charge
from webhook.api.quota_scopes import PodTraits
from webhook.cluster.resources import reservations
from webhook.cluster.resources.pods import JOB_NAME
from webhook.cluster.resources.reservations import LedgerEntry, Reservation, ReservedPods
from webhook.cluster.snapshot import Snapshot

Json = dict[str, Any]


def quota(
    hard: Mapping[str, Any],
    used: Mapping[str, Any] | None = None,
    *,
    name: str = "q",
    namespace: str = "team-a",
    scopes: list[str] | None = None,
) -> Json:
    """A ResourceQuota. By default nothing is used."""
    status = {"hard": dict(hard), "used": dict.fromkeys(hard, 0) if used is None else dict(used)}
    metadata = {"name": name, "namespace": namespace}
    spec = {"hard": dict(hard), "scopes": scopes}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec, "status": status}


def limit_range(*, namespace: str = "elsewhere", **default: Any) -> Json:
    return limit_ranges.limit_range("l", {"type": "Container", "default": default}, namespace=namespace)


def pods(job: str, workers: int, namespace: str = "team-a") -> list[Json]:
    """The pods of the job: launcher and workers. The job's uid is its name."""
    launcher = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{job}-launcher", "uid": "x"}
    worker = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": job, "uid": job}
    owners = {f"{job}-launcher-x": launcher, **{f"{job}-worker-{index}": worker for index in range(workers)}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {JOB_NAME: job},
                "ownerReferences": [owner | {"controller": True}],
            },
        }
        for name, owner in owners.items()
    ]


def reserved(job: str, each: Mapping[str, int], workers: int, namespace: str = "team-a") -> Json:
    """The reservation for the workers of a job. The job's uid is its name."""
    charge = Charge(PodTraits(), {name: amount * quantity.NANO for name, amount in each.items()})
    entry = LedgerEntry(Reservation(job, job, (ReservedPods(WORKER, workers, (charge,)),)), 0)
    annotations = {
        reservations.NAMESPACE: namespace,
        reservations.ENTRIES: reservations.encode((entry,))[0],
    }
    metadata = {"name": f"quota-{namespace}-{job}", "namespace": "system", "annotations": annotations}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}


def cluster(*objects: Json) -> Snapshot:
    """A cluster in which all relevant kinds can be read."""
    elsewhere = {"metadata.namespace": "elsewhere"}
    return Snapshot([limit_range(), changed(elsewhere), *pods("x", 0, "elsewhere"), *objects])
