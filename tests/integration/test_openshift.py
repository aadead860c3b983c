"""Jobs in a namespace like an OpenShift project: with SCCs, permissions to use SCCs, and ClusterResourceQuotas."""

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from tests.controlplane.cluster import Cluster
from tests.support import openshift
from tests.support.installation import service
from tests.support.installation.custom_resources import custom_resource
from tests.support.jobs import changed
from tests.support.paths import EXAMPLES
from webhook.api import yaml
from webhook.cli.main import main

pytestmark = pytest.mark.timeout(240)
SCCS, QUOTAS = "securitycontextconstraints", "clusterresourcequotas"
DEFINITIONS = [
    custom_resource("security.openshift.io", SCCS, "SecurityContextConstraints", "v1", scope="Cluster"),
    custom_resource("quota.openshift.io", QUOTAS, "ClusterResourceQuota", "v1", scope="Cluster"),
]
RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}


def role(scc: str) -> dict[str, Any]:
    """The ClusterRole that OpenShift creates for each SCC."""
    rule = {"apiGroups": ["security.openshift.io"], "resources": [SCCS], "resourceNames": [scc], "verbs": ["use"]}
    return {**RBAC, "kind": "ClusterRole", "metadata": {"name": f"system:openshift:scc:{scc}"}, "rules": [rule]}


def bound(scc: str, subject: dict[str, str], namespace: str = "") -> dict[str, Any]:
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    metadata = {"name": f"test-{scc}", **({"namespace": namespace} if namespace else {})}
    to = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"system:openshift:scc:{scc}"}
    return {**RBAC, "kind": kind, "metadata": metadata, "roleRef": to, "subjects": [subject]}


EVERYONE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}


@pytest.fixture(scope="module")
def of_openshift(operator_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with OpenShift's kinds and roles. Every service account may use restricted-v2."""
    operator_cluster.apply(DEFINITIONS)
    for plural, group in ((SCCS, "security.openshift.io"), (QUOTAS, "quota.openshift.io")):
        operator_cluster.kubectl("wait", "--for=condition=Established", f"crd/{plural}.{group}", "--timeout=60s")
    operator_cluster.apply(openshift.DEFAULT_SCCS)
    operator_cluster.apply([role(name) for name in openshift.ORDER])
    operator_cluster.apply([bound("restricted-v2", EVERYONE)])
    with service.running(operator_cluster):
        yield operator_cluster
    operator_cluster.kubectl("delete", "clusterrolebinding", "test-restricted-v2")
    operator_cluster.kubectl("delete", "crd", *(each["metadata"]["name"] for each in DEFINITIONS))


@pytest.fixture
def project(of_openshift: Cluster, namespace: str) -> str:
    """A namespace with the annotations and labels of an OpenShift project."""
    made = openshift.project(namespace)["metadata"]
    annotations = [f"{key}={value}" for key, value in made["annotations"].items()]
    labels = [f"{key}={value}" for key, value in made["labels"].items()]
    of_openshift.kubectl("annotate", "namespace", namespace, *annotations)
    of_openshift.kubectl("label", "namespace", namespace, *labels)
    of_openshift.wait_for("the service to see SCCs", lambda: tried(of_openshift, namespace, as_root())[1] or None)
    return namespace


def example(name: object, **changes: Any) -> dict[str, Any]:
    (job,) = yaml.load_all((EXAMPLES / f"{name}.yaml").read_text())
    return changed(changes, job)


def as_root() -> dict[str, Any]:
    """A job that restricted-v2 rejects, because its workers use the host network."""
    return example("openmpi-pi", **{"Worker.template.spec.hostNetwork": True})


def tried(cluster: Cluster, namespace: str, job: dict[str, Any]) -> tuple[str, str]:
    """kubectl's output and error for a job. The error is empty if the job is admitted."""
    result = cluster.kubectl("create", "-n", namespace, "-f", "-", "--dry-run=server", stdin=job, check=False)
    return result.stdout + result.stderr, result.stderr if result.returncode else ""


def allow(cluster: Cluster, binding: dict[str, Any], project: str) -> None:
    """Allow the pods to use an SCC, and wait until the service sees the permission."""
    cluster.apply([binding])
    cluster.wait_for("the permission to be seen", lambda: not tried(cluster, project, example("openmpi-pi"))[1] or None)


def test_job_is_rejected_until_it_may_use_an_scc_that_accepts_it(of_openshift: Cluster, project: str) -> None:
    told = tried(of_openshift, project, example("openmpi-pi"))[1]
    assert 'SCC "restricted-v2" rejects 1000: must be in the ranges: [1000680000, 1000689999]' in told
    assert f"oc adm policy add-scc-to-user nonroot-v2 -z default -n {project}" in told
    account = {"kind": "ServiceAccount", "name": "default", "namespace": project}
    allow(of_openshift, bound("nonroot-v2", account, project), project)


def test_examples_are_admitted_and_the_pods_of_an_example_are_created(of_openshift: Cluster, project: str) -> None:
    allow(of_openshift, bound("restricted-v3", EVERYONE, project), project)
    for path in EXAMPLES.rglob("*.yaml"):
        if not path.stem.startswith("bad-"):
            job = example(path.relative_to(EXAMPLES).with_suffix(""))
            job["metadata"].pop("namespace", None)
            output, refusal = tried(of_openshift, project, job)
            assert "SCC" not in refusal, path
            assert "PodSecurity" not in output, path
            assert "ssh-paths" not in output, path
    of_openshift.kubectl("create", "-n", project, "-f", "-", stdin=example("openmpi-pi"))
    stored = of_openshift.get("mpijob", "openmpi-pi", "-n", project)["spec"]["mpiReplicaSpecs"]
    assert [replica["template"]["spec"]["hostUsers"] for replica in stored.values()] == [False, False]

    def worker() -> Any:
        return of_openshift.get("pod", "openmpi-pi-worker-0", "-n", project)

    assert of_openshift.wait_for("a worker", worker)["spec"]["hostUsers"] is False


def test_command_init_writes_the_ssh_path_of_the_image_user(of_openshift: Cluster, project: str) -> None:
    cluster = ["--kubeconfig", str(of_openshift.kubeconfig), "-n", project]
    arguments = ["init", "--framework", "pytorch", "--image", "registry.example.com/ml/train:1.4", *cluster]
    done = CliRunner().invoke(main, [*arguments, "--", "train.py"], catch_exceptions=False)
    (job,) = yaml.load_all(done.stdout)
    assert job["spec"]["sshAuthMountPath"] == "/home/mpiuser/.ssh"


def test_warning_says_that_openshift_chooses_the_user_id(of_openshift: Cluster, project: str) -> None:
    output, refusal = tried(of_openshift, project, changed({"metadata.name": "plain", "metadata.namespace": project}))
    assert refusal == ""
    assert "SCC restricted-v2 runs the pods as user 1000680000" in output
    assert "PodSecurity" not in output


def test_cluster_resource_quota_is_applied(of_openshift: Cluster, project: str) -> None:
    hard = {"requests.cpu": "1"}
    of_openshift.apply([openshift.cluster_quota(hard, {"requests.cpu": "0"}, name="teams", namespaces=[project])])
    job = example(
        "openmpi-pi", **{f"{each}.template.spec.containers.0.securityContext": {} for each in ("Launcher", "Worker")}
    )

    def exceeded() -> str:
        told = tried(of_openshift, project, job)[1]
        return told if "Quota exceeded" in told else ""

    assert "cluster quota is 1 CPU" in of_openshift.wait_for("the quota to count", exceeded)
    of_openshift.kubectl("delete", QUOTAS, "teams")
