"""MPIJobs and AdmissionReviews for tests: a valid job, and changes at dotted paths."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from webhook.api import review, yaml

REMOVE = object()

GOOD: dict[str, Any] = yaml.load_all("""
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train, namespace: team-a}
spec:
  slotsPerWorker: 2
  runPolicy: {cleanPodPolicy: Running, suspend: false}
  sshAuthMountPath: /root/.ssh
  mpiImplementation: OpenMPI
  launcherCreationPolicy: AtStartup
  runLauncherAsWorker: false
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - name: launcher
            image: registry.example.com/ml/train:1.4
            # With --oversubscribe, mpirun also starts if a test sets fewer workers.
            command: [mpirun, --oversubscribe, -np, "8", python, train.py]
            resources: {limits: {cpu: "1", memory: 1Gi}}
    Worker:
      replicas: 4
      template:
        spec:
          containers:
          - name: worker
            image: registry.example.com/ml/train:1.4
            resources: {limits: {cpu: "16", memory: 64Gi, nvidia.com/gpu: 2}}
""")[0]


# The injection `api-access` adds this field to both templates of GOOD, because they set no service account.
NO_TOKEN = {f"{role}.template.spec.automountServiceAccountToken": False for role in ("Launcher", "Worker")}


def changed(changes: Mapping[str, Any] | None = None, base: Mapping[str, Any] = GOOD) -> dict[str, Any]:
    """A copy of `base`. `changes` has the new value for each dotted path; REMOVE removes the value.

    `Worker` and `Launcher` are short for their replica specs. Digits are list indices.
    """
    job = copy.deepcopy(dict(base))
    for path, value in (changes or {}).items():
        full = path
        for role in ("Launcher", "Worker"):
            if path == role or path.startswith(role + "."):
                full = f"spec.mpiReplicaSpecs.{path}"
        *parents, last = full.replace("\\.", "\0").split(".")
        target: Any = job
        for token in parents:
            key = token.replace("\0", ".")
            target = target[int(key)] if isinstance(target, list) else target.setdefault(key, {})
        last = last.replace("\0", ".")
        if value is REMOVE:
            target.pop(last, None)
        elif isinstance(target, list):
            target[int(last)] = value
        else:
            target[last] = value
    return job


def request(
    job: Any, *, old: Any = None, operation: str | None = None, username: str = "alice", **fields: Any
) -> review.AdmissionRequest:
    """The decoded request that the API server would send for `job`. With `old` it is an UPDATE."""
    return review.decode(body(job, old=old, operation=operation, username=username, **fields))


def body(job: Any, *, old: Any = None, operation: str | None = None, username: str = "alice", **fields: Any) -> bytes:
    """The bytes of the AdmissionReview, as the API server writes it."""
    metadata = job.get("metadata") if isinstance(job, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    given = (metadata.get(key) for key in ("name", "namespace"))
    # the API server always writes strings
    name, namespace = (value if isinstance(value, str) else "" for value in given)
    return json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
                "kind": {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"},
                "resource": {"group": "kubeflow.org", "version": "v2beta1", "resource": "mpijobs"},
                "operation": operation or ("CREATE" if old is None else "UPDATE"),
                "name": name,
                "namespace": namespace,
                "userInfo": {"username": username, "groups": ["system:authenticated"]},
                "object": job,
                "oldObject": old,
                "dryRun": False,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
                **fields,
            },
        },
        separators=(",", ":"),
    ).encode()
