"""A job refers to missing objects, or a foreign object already has a name that the operator needs for the job."""

from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.installation.service import Replica, review_of, running
from tests.support.jobs import changed

pytestmark = pytest.mark.timeout(240)


def job(namespace: str, name: str, **changes: Any) -> dict[str, Any]:
    return changed({"metadata.namespace": namespace, "metadata.name": name, "Worker.replicas": 2, **changes})


def foreign(kind: str, name: str) -> dict[str, Any]:
    """An object of a different owner, with the name of an object that the operator creates."""
    pod = {"containers": [{"name": "a", "image": "x"}], "restartPolicy": "Never"}
    kinds: dict[str, dict[str, Any]] = {
        "Service": {"apiVersion": "v1", "spec": {"ports": [{"port": 80}]}},
        "ConfigMap": {"apiVersion": "v1", "data": {"a": "b"}},
        "Job": {"apiVersion": "batch/v1", "spec": {"suspend": True, "template": {"spec": pod}}},
        "Pod": {"apiVersion": "v1", "spec": pod},
    }
    labels = {"training.kubeflow.org/job-name": "somebody-elses"}
    return {"kind": kind, "metadata": {"name": name, "labels": labels}, **kinds[kind]}


NAMES = {"Service": "train", "ConfigMap": "train-config", "Job": "train-launcher", "Pod": "train-worker-1"}


@pytest.mark.parametrize("kind", NAMES)
def test_operator_never_starts_a_job_if_the_name_of_one_of_its_objects_is_taken(
    operator_cluster: Cluster, namespace: str, kind: str
) -> None:
    """The service, which would reject the job, does not run here."""
    operator_cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=foreign(kind, NAMES[kind]))
    operator_cluster.kubectl("create", "-f", "-", stdin=job(namespace, "train"))

    def reported() -> str:
        events = operator_cluster.get("events", "-n", namespace)["items"]
        found = [event["message"] for event in events if event["reason"] == "ErrResourceExists"]
        return found[0] if found else ""

    message = operator_cluster.wait_for("the operator to report the conflict", reported)
    assert f'Resource "{NAMES[kind]}"' in message
    assert "conditions" not in operator_cluster.get("mpijob", "train", "-n", namespace).get("status", {})


@pytest.fixture(scope="module")
def replica(operator_cluster: Cluster) -> Any:
    """The registered service. It starts after the tests above, because they need a cluster without the service."""
    with running(operator_cluster) as started:
        yield started


@pytest.mark.parametrize("kind", NAMES)
def test_job_is_rejected_if_the_name_of_one_of_its_objects_is_taken(
    operator_cluster: Cluster, replica: Replica, namespace: str, kind: str
) -> None:
    operator_cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=foreign(kind, NAMES[kind]))
    refused = job(namespace, "train")
    operator_cluster.wait_for(
        "the service to see the object", lambda: not review_of(replica, refused)["allowed"] or None, timeout=10
    )
    result = operator_cluster.kubectl("create", "-f", "-", stdin=refused, check=False)
    assert result.returncode == 1
    assert f'{kind} "{NAMES[kind]}" exists and is not the job\'s' in result.stderr
    assert operator_cluster.get("mpijobs", "-n", namespace)["items"] == []


def test_new_job_is_rejected_because_of_orphaned_objects_of_a_former_job(
    operator_cluster: Cluster, replica: Replica, namespace: str
) -> None:
    made = job(namespace, "train")
    operator_cluster.kubectl("create", "-f", "-", stdin=made)
    operator_cluster.wait_for("the Service", lambda: operator_cluster.get("service", "train", "-n", namespace))
    operator_cluster.kubectl("delete", "mpijob", "train", "-n", namespace, "--cascade=orphan")
    operator_cluster.wait_for("the refusal", lambda: not review_of(replica, made)["allowed"] or None)


def warned(replica: Replica, made: dict[str, Any], text: str) -> bool:
    return any(text in warning for warning in review_of(replica, made).get("warnings", ()))


def test_missing_objects_cause_warnings(operator_cluster: Cluster, replica: Replica, namespace: str) -> None:
    """The warnings end when the objects exist."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "datset"}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]
    pod = "Worker.template.spec"
    made = job(
        namespace,
        "train",
        **{f"{pod}.volumes": volumes, f"{pod}.serviceAccountName": "trainer", f"{pod}.runtimeClassName": "sandboxed"},
    )
    metadata = {"name": "dataset", "namespace": namespace}
    stored = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim}
    operator_cluster.kubectl("create", "-f", "-", stdin=stored)
    operator_cluster.wait_for("the similar name", lambda: warned(replica, made, 'but "dataset" does') or None)
    warnings = operator_cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=made).stderr
    for kind, name in (("ConfigMap", "settings"), ("ServiceAccount", "trainer"), ("RuntimeClass", "sandboxed")):
        assert f'{kind} "{name}" does not exist' in warnings

    volumes[0]["persistentVolumeClaim"] = {"claimName": "dataset"}
    made = job(namespace, "train", **{f"{pod}.volumes": volumes, f"{pod}.serviceAccountName": "trainer"})
    operator_cluster.kubectl("create", "configmap", "settings", "-n", namespace)
    operator_cluster.kubectl("create", "serviceaccount", "trainer", "-n", namespace)
    operator_cluster.wait_for("all objects to be seen", lambda: not warned(replica, made, "does not exist") or None)
    assert warned(replica, made, "ReadWriteOnce keeps them on one node")


def test_missing_key_of_a_config_map_causes_a_warning(
    operator_cluster: Cluster, replica: Replica, namespace: str
) -> None:
    """The service requests only the metadata of ConfigMaps, which includes the names of the keys."""

    def with_key(key: str) -> dict[str, Any]:
        source = {"configMapKeyRef": {"name": "settings", "key": key}}
        env = [{"name": "A", "valueFrom": source}]
        return job(namespace, "train", **{"Worker.template.spec.containers.0.env": env})

    operator_cluster.kubectl("create", "configmap", "settings", "-n", namespace, "--from-literal=level=1")
    other = with_key("levle")
    fault = 'ConfigMap "settings" has no key "levle". Write level.'
    operator_cluster.wait_for("the key to be missing", lambda: warned(replica, other, fault) or None)
    assert not warned(replica, with_key("level"), "[references]")
    operator_cluster.kubectl("patch", "configmap", "settings", "-n", namespace, "-p", '{"data":{"levle":"2"}}')
    operator_cluster.wait_for("the key to be there", lambda: not warned(replica, other, "[references]") or None)
