"""Reviews of pods for Kubernetes' Pod Security webhook. A pod has 6 kB, like each template of the benchmarks' jobs."""

import json
from typing import Any, Final

from tests.bench.body import JOBS, MARK, user_job
from tests.controlplane.cluster import Cluster
from tests.support.jobs import body
from tests.support.namespaces import namespace
from tests.support.pod_security.pods import COMPLIANT
from webhook.predict.pod_security.labels import PREFIX

NAMESPACE: Final = "restricted"
TEMPLATE_BYTES: Final = 6_000


def template(number: int) -> dict[str, Any]:
    """A worker's template that `restricted` admits, with environment variables up to 6 kB of JSON."""
    made: dict[str, Any] = user_job(number)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    made["spec"].pop("priorityClassName", None)  # the cluster has no PriorityClasses
    for container in made["spec"]["containers"] + made["spec"].get("initContainers", []):
        container["securityContext"] = COMPLIANT
    env = made["spec"]["containers"][0].setdefault("env", [])
    while len(json.dumps(made)) < TEMPLATE_BYTES:
        env.append({"name": f"SETTING_{len(env)}", "value": f"value of job {number} for setting {len(env)}"})
    return made


def pod_bodies() -> bytes:
    """JOBS lines, each with a review of the creation of a pod."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return b"".join(body(_pod(number), kind=kind, resource=resource) + b"\n" for number in range(JOBS))


def _pod(number: int) -> dict[str, Any]:
    made = template(number)
    metadata = {**made["metadata"], "name": f"worker-{MARK}", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made["spec"]}


def label_namespace(cluster: Cluster) -> None:
    """Create the namespace of all requests, with the enforced level."""
    cluster.kubectl("create", "-f", "-", stdin=namespace(NAMESPACE, **{f"{PREFIX}enforce": "restricted"}))
