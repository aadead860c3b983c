"""Jobs that set every field of an API version before v2beta1.

`FIELDS` is copied from the Go types of these versions. v1: training-operator v1.9.3
`pkg/apis/kubeflow.org/v1/{mpi_types,common_types}.go`, which has more fields than mpi-operator's v1. Older versions:
mpi-operator v0.3.0 `pkg/apis/kubeflow/{v1alpha2,v1alpha1}/types.go`. tests/conformance/test_older_types.py compares
`FIELDS` with the Go types. The fields of a pod template are from the schema of MPIJobs.
"""

from typing import Any, Final

from webhook.api.crd_schema import Shape, packaged

V1: Final = "kubeflow.org/v1"
V1ALPHA2: Final = "kubeflow.org/v1alpha2"
V1ALPHA1: Final = "kubeflow.org/v1alpha1"
_REPLICAS: Final = tuple(
    f"spec.mpiReplicaSpecs.{role}.{key}"
    for role in ("Launcher", "Worker")
    for key in ("replicas", "template", "restartPolicy")
)
_LIMITS: Final = ("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
_GANG: Final = ("minAvailable", "queue", "minResources", "priorityClass")
_RUN_POLICY: Final = (
    *(f"spec.runPolicy.{key}" for key in _LIMITS),
    *(f"spec.runPolicy.schedulingPolicy.{key}" for key in _GANG),
)
_OF_V1ALPHA1: Final = (
    "gpus", "gpusPerNode", "processingUnits", "processingUnitsPerNode", "processingResourceType", "slotsPerWorker",
    "launcherOnMaster", "backoffLimit", "activeDeadlineSeconds", "replicas", "template",
)  # fmt: skip
_COMMON: Final = ("spec.slotsPerWorker", "spec.cleanPodPolicy", "spec.mainContainer", *_REPLICAS, *_RUN_POLICY)
FIELDS: Final = {
    V1: (
        *_COMMON,
        "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds",
        "spec.runPolicy.suspend",
        "spec.runPolicy.managedBy",
    ),
    V1ALPHA2: (*_COMMON, "spec.backoffLimit", "spec.activeDeadlineSeconds", "spec.mpiDistribution"),
    V1ALPHA1: tuple(f"spec.{key}" for key in _OF_V1ALPHA1),
}
_SPECIAL: Final[dict[str, Any]] = {
    "mpiDistribution": "IntelMPI",
    "cleanPodPolicy": "Running",
    "restartPolicy": "Never",
    "mainContainer": "name",
    "managedBy": "kubeflow.org/training-operator",
    "queue": "research",
    "priorityClass": "high",
    "minResources": {"cpu": "8"},
    "suspend": True,
    "launcherOnMaster": True,
    "processingResourceType": "nvidia.com/gpu",
}
METADATA: Final = {
    "name": "train",
    "namespace": "team-a",
    "uid": "1",
    "resourceVersion": "7",
    "labels": {"team": "a"},
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "mine"},
}

# Copies of published examples.
HOROVOD: Final = """
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: horovod-mnist, namespace: team-a}
spec:
  slotsPerWorker: 1
  runPolicy: {cleanPodPolicy: Running}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - image: registry.example.com/horovod:0.28.1
              name: mpi
              command: [mpirun]
              args: [-np, "2", --allow-run-as-root, -bind-to, none, -map-by, slot, -x, LD_LIBRARY_PATH,
                     -mca, pml, ob1, -mca, plm_rsh_agent, /etc/mpi/kubexec.sh, python, /examples/mnist.py]
              resources: {limits: {cpu: 1, memory: 2Gi}}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - image: registry.example.com/horovod:0.28.1
              name: mpi
              command: [sleep, infinity]
              resources: {limits: {cpu: 2, memory: 4Gi, nvidia.com/gpu: 1}}
"""
TENSORFLOW: Final = """
apiVersion: kubeflow.org/v1alpha2
kind: MPIJob
metadata: {name: tensorflow-benchmarks, namespace: team-a}
spec:
  slotsPerWorker: 1
  cleanPodPolicy: Running
  backoffLimit: 2
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - image: registry.example.com/tensorflow-benchmarks:0.2.3
              name: tensorflow-benchmarks
              command: [mpirun, --allow-run-as-root, -np, "2", python, tf_cnn_benchmarks.py]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - image: registry.example.com/tensorflow-benchmarks:0.2.3
              name: tensorflow-benchmarks
              resources: {limits: {nvidia.com/gpu: 1}}
"""


def full(version: str, *without: str) -> dict[str, Any]:
    """A job in this version with every field except the fields in `without`."""
    job: dict[str, Any] = {"apiVersion": version, "kind": "MPIJob", "metadata": METADATA, "status": {"startTime": "x"}}
    for number, path in enumerate(FIELDS[version], start=1):
        if path in without:
            continue
        *parents, key = path.split(".")
        target = job
        for parent in parents:
            target = target.setdefault(parent, {})
        target[key] = template() if key == "template" else _SPECIAL.get(key, number)
    return job


def template() -> dict[str, Any]:
    """A pod template in which every field has a valid value."""
    shape = packaged().root
    for key in ("spec", "mpiReplicaSpecs"):
        shape = shape.fields[key]
    assert shape.values
    value: dict[str, Any] = _value(shape.values.fields["template"], "template")
    return value


def _value(shape: Shape, name: str) -> Any:
    if shape.fields:
        return {key: _value(field, key) for key, field in shape.fields.items()}
    if shape.values is not None:
        return {"example.com/key": _value(shape.values, name)}
    if shape.items is not None:
        return [_value(shape.items, name)]
    if shape.choices:
        return shape.choices[0]
    return {"integer": 1, "number": 1, "boolean": True, "any": {"anything": 1}, "object": {}}.get(shape.type, name)
