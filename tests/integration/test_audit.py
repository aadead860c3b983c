"""The audit of stored jobs by a replica with only the permissions of the manifests.

Reports use the CRDs that other projects publish: Kyverno's PolicyReport, and Report of OpenReports.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support import jobs
from tests.support.installation import default_overlay, go_module, service
from tests.support.installation.service import Replica
from tests.support.paths import MANIFESTS
from tests.support.policies import policy_configmap
from tests.support.rare import rare
from webhook.api.yaml import load_all
from webhook.parts.standing_audit.reports import LABEL

pytestmark = pytest.mark.timeout(600)

RIGHTS = MANIFESTS / "components" / "audit-reports" / "rbac.yaml"
KYVERNO = ("github.com/kyverno/kyverno", "v1.19.1", "h1:/MkgFii3/VlQfKR1JpC9tVwNNVNQTt2S4U6qCsafsTU=")
KYVERNOS = "config/crds/policyreport/wgpolicyk8s.io_policyreports.yaml"
OPEN_REPORTS = ("github.com/openreports/reports-api", "v0.2.1", "h1:g9KS3yle9Y1elmww4TK9EkD1rl6inIaiIJPX6e+u680=")
OPEN = "config/crd/openreports.io_reports.yaml"
FEW = "rules: {worker-count: {max: 3}}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster with the default overlay, without its components and without registered webhooks."""
    with Cluster(log_dir=tmp_path_factory.mktemp("audit-logs")) as running:
        default_overlay.apply(running)
        yield running


@pytest.fixture(scope="module")
def account(cluster: Cluster) -> Path:
    return default_overlay.account(cluster)


def create(cluster: Cluster, namespace: str, name: str, workers: int) -> None:
    fields = {"metadata": {"name": name, "namespace": namespace}, "Worker.replicas": workers}
    cluster.kubectl("create", "-f", "-", stdin=jobs.changed(fields))


def scale(cluster: Cluster, namespace: str, name: str, workers: int) -> None:
    patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}}
    cluster.kubectl("patch", "mpijob", name, "-n", namespace, "--type=merge", "-p", json.dumps(patch))


def metric(replica: Replica, namespace: str, rule: str = "worker-count", action: str = "deny") -> float:
    """The value of the metric that counts the jobs of a namespace that violate a rule."""
    wanted = f'mpijob_webhook_audit_violations{{action="{action}",namespace="{namespace}",rule="{rule}"}} '
    lines = [line for line in replica.ops("/metrics/jobs").splitlines() if line.startswith(wanted)]
    return float(lines[0].removeprefix(wanted)) if lines else 0


def running(cluster: Cluster, account: Path, *flags: str, name: str) -> Any:
    return service.running(cluster, *flags, "--kubeconfig", str(account), name=name, register=False)


def reports(cluster: Cluster, namespace: str, plural: str) -> dict[str, Any]:
    """The reports by the name of their job."""
    found = cluster.get(plural, "-n", namespace, "-l", LABEL)["items"]
    return {each["scope"]["name"]: each for each in found}


def install(cluster: Cluster, file: Path) -> None:
    cluster.apply(load_all(file.read_text()))
    cluster.kubectl("wait", "--for=condition=Established", "-f", file, "--timeout=30s")


@rare
def test_reports_are_written_to_the_installed_kind_and_deleted_with_the_job(cluster: Cluster, account: Path) -> None:
    namespace = cluster.create_namespace()
    cluster.apply([policy_configmap(FEW)])
    create(cluster, namespace, "large", 5)
    create(cluster, namespace, "small", 2)
    kyverno, open_reports = go_module.module(*KYVERNO), go_module.module(*OPEN_REPORTS)
    with running(cluster, account, "--audit-reports", name="reports") as replica:
        forbidden = "[!]unknown-policyreports"
        cluster.wait_for("the missing right", lambda: forbidden in replica.ops("/readyz") or None, timeout=60)
        cluster.wait_for("the first audit", lambda: metric(replica, namespace) == 1 or None, timeout=60)
    cluster.apply(load_all(RIGHTS.read_text()))

    with running(cluster, account, "--audit-reports", name="reports-2") as replica:
        # Neither kind is installed, so no report is written, but the audit runs.
        missing = "[!]audit-reports: no report is written: neither"
        cluster.wait_for("the concern in readyz", lambda: missing in replica.ops("/readyz") or None, timeout=60)
        cluster.wait_for("the first audit", lambda: metric(replica, namespace) == 1 or None, timeout=60)
        install(cluster, kyverno / KYVERNOS)
        cluster.wait_for("the installed kind", lambda: missing not in replica.ops("/readyz") or None)
        found = cluster.wait_for("a report", lambda: reports(cluster, namespace, "policyreports"))
        assert set(found) == {"large"}
        assert found["large"]["summary"]["fail"] >= 1
        assert "worker-count" in {each["rule"] for each in found["large"]["results"]}
        version = found["large"]["metadata"]["resourceVersion"]
        scale(cluster, namespace, "small", 4)
        cluster.wait_for(
            "a second report",
            lambda: set(reports(cluster, namespace, "policyreports")) == {"large", "small"} or None,
            timeout=60,
        )
        scale(cluster, namespace, "small", 3)
        cluster.wait_for(
            "the deletion of the second report",
            lambda: set(reports(cluster, namespace, "policyreports")) == {"large"} or None,
            timeout=60,
        )
        # An unchanged report is not written again.
        assert reports(cluster, namespace, "policyreports")["large"]["metadata"]["resourceVersion"] == version

    install(cluster, open_reports / OPEN)
    with running(cluster, account, "--audit-reports", name="reports-3"):
        found = cluster.wait_for("a report", lambda: reports(cluster, namespace, "reports"))
        assert found["large"]["apiVersion"] == "openreports.io/v1alpha1"
        assert found["large"]["results"]
        cluster.wait_for(
            "the reports of the other kind to be deleted",
            lambda: not reports(cluster, namespace, "policyreports") or None,
        )
        # The garbage collector deletes the report.
        cluster.kubectl("delete", "mpijob", "large", "-n", namespace)
        cluster.wait_for("the deletion of the report", lambda: not reports(cluster, namespace, "reports") or None)
    for what in ("reports.openreports.io", "policyreports.wgpolicyk8s.io"):
        assert default_overlay.may(cluster, "delete", what)
        for verb in ("get", "update", "deletecollection"):
            assert not default_overlay.may(cluster, verb, what)
