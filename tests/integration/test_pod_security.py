"""The service's Pod Security verdict about a job equals the API server's verdict about the operator's pods."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import KEEP_RUNNING
from tests.support.installation.service import example
from tests.support.jobs import REMOVE, changed
from webhook.predict.pod_security import LATEST, Level, evaluate
from webhook.predict.pod_security.labels import PREFIX
from webhook.predict.pod_security.pod import convert, templates

pytestmark = [pytest.mark.usefixtures("webhook"), pytest.mark.timeout(300)]
EXAMPLES = assets().upstream_examples
HOST_PATH = {"Worker.template.spec.volumes": [{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}]}
FIELD = "spec.mpiReplicaSpecs[Worker].template.spec.volumes[0].hostPath"


NOT_AS_ROOT = '"/root/.ssh" is for root, but this namespace starts nothing as root [ssh-paths]'


def pi(**metadata: Any) -> dict[str, Any]:
    """An upstream example without security contexts."""
    changes = {f"{role}.template.spec.containers.0.securityContext": REMOVE for role in ("Launcher", "Worker")}
    return changed({**changes, "spec.sshAuthMountPath": REMOVE}, example(EXAMPLES["pi"], **metadata))


@contextmanager
def labelled(cluster: Cluster, **modes: str) -> Iterator[str]:
    """A namespace with these Pod Security levels. It is deleted after the test."""
    name = cluster.create_namespace(labels={PREFIX + mode: level for mode, level in modes.items()})
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def dry_run(cluster: Cluster, job: dict[str, Any]) -> str:
    """kubectl's warnings and errors for a creation with a server-side dry run."""
    return cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=job, check=False).stderr


@pytest.fixture
def restricted(cluster: Cluster) -> Iterator[str]:
    """A namespace that enforces `restricted`. The service has seen the label."""
    with labelled(cluster, enforce="restricted") as name:
        job = pi(namespace=name)
        cluster.wait_for("the service to see the label", lambda: NOT_AS_ROOT in dry_run(cluster, job) or None)
        yield name


def test_job_without_security_contexts_runs_in_a_restricted_namespace(
    operator_cluster: Cluster, restricted: str
) -> None:
    job = changed({"Launcher.template.metadata.annotations": {KEEP_RUNNING: "yes"}}, pi(namespace=restricted))
    created = operator_cluster.kubectl("create", "-f", "-", stdin=job)
    assert NOT_AS_ROOT in created.stderr

    def get(*what: str) -> Any:
        return operator_cluster.get(*what, "-n", restricted)

    operator_cluster.wait_for(
        "the job to run", lambda: has_condition(get("mpijob", "pi"), "Running") or None, timeout=120
    )
    pods = get("pods")["items"]
    assert len(pods) == 3
    of_role = {role: template for role, _, template in templates(json.dumps(get("mpijob", "pi")).encode())}
    for pod in pods:
        role = pod["metadata"]["labels"]["training.kubeflow.org/job-role"].title()
        (container,) = pod["spec"]["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]} | ({"add": ["NET_BIND_SERVICE"]} if role == "Worker" else {}),
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        # Neither the created pods nor the stored templates have violations.
        assert evaluate(Level.RESTRICTED, LATEST, convert(pod)) == []
        assert evaluate(Level.RESTRICTED, LATEST, of_role[role]) == []


def test_pods_of_the_operator_get_the_verdict_of_their_template(operator_cluster: Cluster, namespace: str) -> None:
    job = changed(
        {
            **HOST_PATH,
            "Worker.template.spec.hostIPC": True,
            "Worker.template.spec.containers.0.ports": [{"containerPort": 2222, "hostPort": 2222}],
            "Launcher.template.spec.containers.0.securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
            "Launcher.template.metadata.annotations": {KEEP_RUNNING: "yes"},
        },
        pi(namespace=namespace),
    )
    operator_cluster.kubectl("create", "-f", "-", stdin=job)

    def pods() -> Any:
        found = operator_cluster.get("pods", "-n", namespace)["items"]
        return found if len(found) == 3 else None

    made = operator_cluster.wait_for("the pods", pods, timeout=60)
    stored = operator_cluster.get("mpijob", "pi", "-n", namespace)
    of_role = {role: template for role, _, template in templates(json.dumps(stored).encode())}
    for pod in made:
        role = pod["metadata"]["labels"]["training.kubeflow.org/job-role"].title()
        for level in (Level.BASELINE, Level.RESTRICTED):
            verdict = evaluate(level, LATEST, of_role[role])
            assert evaluate(level, LATEST, convert(pod)) == verdict
            assert len(verdict) == {"Launcher": (1, 4), "Worker": (3, 7)}[role][level is Level.RESTRICTED]


def test_host_path_is_rejected_with_its_field_and_pod_securitys_message(cluster: Cluster, restricted: str) -> None:
    job = changed(HOST_PATH, pi(namespace=restricted))
    refused = cluster.kubectl("create", "-f", "-", stdin=job, check=False)
    assert refused.returncode == 1
    fault = 'restricted volume types (volume "ib" uses restricted volume type "hostPath")'
    assert f'{FIELD}: violates PodSecurity "restricted:latest": {fault}' in refused.stderr
    assert "a device resource such as rdma/hca in limits brings the devices" in refused.stderr
    assert f'label the namespace "{restricted}" pod-security.kubernetes.io/enforce=privileged' in refused.stderr
    assert cluster.get("mpijobs", "-n", restricted)["items"] == []
    # The API server reports the same error for a pod of the template.
    spec = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": restricted}, "spec": spec}
    assert fault in dry_run(cluster, pod)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_upstream_examples_are_admitted_to_a_restricted_namespace(cluster: Cluster, restricted: str, name: str) -> None:
    assert dry_run(cluster, example(EXAMPLES[name], namespace=restricted)).count("Error") == 0


def test_repeated_apply_does_not_change_the_spec(cluster: Cluster, restricted: str) -> None:
    job = pi(namespace=restricted)
    cluster.kubectl("apply", "-f", "-", stdin=job)
    before = cluster.get("mpijob", "pi", "-n", restricted)
    cluster.kubectl("apply", "-f", "-", stdin=changed({"metadata.labels": {"a": "b"}}, job))
    after = cluster.get("mpijob", "pi", "-n", restricted)
    assert after["spec"] == before["spec"]
    worsened = cluster.kubectl("apply", "-f", "-", stdin=changed(HOST_PATH, job), check=False)
    assert FIELD in worsened.stderr


def test_violation_of_the_warn_level_causes_a_warning(cluster: Cluster) -> None:
    with labelled(cluster, warn="baseline") as namespace:
        job = changed(HOST_PATH, pi(namespace=namespace))

        def warned() -> str | None:
            output = dry_run(cluster, job)
            return output if "PodSecurity" in output else None

        output = cluster.wait_for("the service to see the label", warned)
        assert (
            'Warning: spec.mpiReplicaSpecs[Worker]...hostPath: would violate PodSecurity "baseline:latest": '
            "hostPath volumes [pod-security]"
        ) in output
        assert "security-context" not in output
        cluster.kubectl("create", "-f", "-", stdin=job)


def test_violation_of_the_audit_level_is_reported_only_in_the_api_audit_log(cluster: Cluster) -> None:
    key = "validate.mpijob.training.openshift.io/audit-violations"
    with labelled(cluster, audit="baseline") as namespace:
        job = changed(HOST_PATH, pi(namespace=namespace, name="audited-level"))

        def audited() -> tuple[str, str] | None:
            output = dry_run(cluster, job)
            events = cluster.audit_events("audited-level")
            found = [text for event in events if (text := event.get("annotations", {}).get(key))]
            return (output, found[-1]) if found else None

        output, text = cluster.wait_for("the audit annotation", audited)
        assert text == (
            f'{FIELD}: would violate PodSecurity "baseline:latest": hostPath volumes (volume "ib") [pod-security]'
        )
        assert "PodSecurity" not in output
        assert "rror" not in output
