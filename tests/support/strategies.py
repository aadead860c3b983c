"""For property tests: arbitrary JSON, and a job. The module `any_job` generates other jobs.

`COMPLETE` is a job with every field that the service reads. `replaced(value)` replaces each value of this job in turn.
"""

import copy
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from webhook.api import yaml

# An example has no time limit, because the machine may be busy.
PROPERTY = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

# JSON that Go and JavaScript parse to the same value: no NaN, no lone surrogates.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False) | text
)


def json_values() -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=8
    )


quantities = st.sampled_from(["1", "500m", "16Gi", 2, 0.5, "many"])


def paths(value: Any, prefix: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all values within `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*prefix, key)
        yield from paths(item, (*prefix, key))


def parent_of(value: Any, path: tuple[str | int, ...]) -> Any:
    """The mapping or list that contains the value at the path."""
    return reduce(getitem, path[:-1], value)


def replaced(value: Any) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """(path, COMPLETE with `value` at this path) for every path in COMPLETE."""
    for path in paths(COMPLETE):
        job: Any = copy.deepcopy(COMPLETE)
        parent_of(job, path)[path[-1]] = copy.deepcopy(value)
        yield path, job


_POD_SPEC = """
containers:
- name: mpi
  image: registry.example.com/mpi:1
  env: [{name: NCCL_DEBUG, value: INFO}]
  resources: {requests: {cpu: "1"}, limits: {cpu: "1"}}
  volumeMounts: [{name: data, mountPath: /data}]
  securityContext: {capabilities: {add: [CHOWN]}, runAsUser: 1000}
initContainers: [{name: fetch, image: busybox, env: []}]
volumes:
- {name: data, persistentVolumeClaim: {claimName: data}}
- {name: scratch, emptyDir: {medium: Memory}}
- {name: cache, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}
- {name: keys, csi: {driver: secrets-store.csi.k8s.io}}
- {name: node, hostPath: {path: /data}}
imagePullSecrets: [{name: pull}]
serviceAccountName: ""
serviceAccount: ""
restartPolicy: Never
schedulerName: default-scheduler
nodeSelector: {disk: ssd}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: In, values: [a100, h100]}]}]
tolerations: [{key: spot, operator: Exists, value: "", effect: NoSchedule}]
priorityClassName: high
securityContext: {runAsUser: 0, fsGroup: 100}
hostname: ""
subdomain: ""
"""
_JOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: train
  namespace: team
  labels: {app: train}
  annotations: {training.openshift.io/timeout: 72h}
  ownerReferences: [{kind: Workflow, controller: false}]
spec:
  slotsPerWorker: 1
  runLauncherAsWorker: false
  sshAuthMountPath: /root/.ssh
  launcherCreationPolicy: AtStartup
  mpiImplementation: OpenMPI
  runPolicy:
    ttlSecondsAfterFinished: 600
    backoffLimit: 3
    suspend: false
    schedulingPolicy: {minAvailable: 3, queue: q, priorityClass: p, scheduleTimeoutSeconds: 60}
"""


def _replica(replicas: int, **container: Any) -> dict[str, Any]:
    metadata = {"labels": {"app": "train"}, "annotations": {"note": "x"}}
    (spec,) = yaml.load_all(_POD_SPEC)
    spec["containers"][0] |= container
    return {"replicas": replicas, "restartPolicy": "Never", "template": {"metadata": metadata, "spec": spec}}


COMPLETE: dict[str, Any] = yaml.load_all(_JOB)[0]
COMPLETE["spec"]["mpiReplicaSpecs"] = {
    "Launcher": _replica(1, command=["mpirun", "-n", "2", "train"]),
    "Worker": _replica(2),
}
