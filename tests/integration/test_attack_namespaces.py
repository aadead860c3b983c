"""Attacks through objects that a replica has not read: a new namespace, or a newer version's policy."""

import json
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.api_proxy import ApiProxy, Trouble
from tests.controlplane.cluster import Cluster
from tests.support import jobs
from tests.support.installation import service
from tests.support.installation.service import review_of
from tests.support.object_api import kubeconfig
from tests.support.policies import HEADER, NAMESPACE, configmap, policy_configmap
from webhook import __version__
from webhook.policy.store import REMEMBERED

# API servers are stopped here, and asyncio does not close a connection whose peer dies in the TLS handshake.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
PREMIUM = "priority: 10\nnamespaces: {matchLabels: {tier: premium}}\nmode: warn"
OUTAGE_SECONDS = 20  # after such an outage, watches wait for up to half a minute before they connect again
LAST_GOOD = ("configmap", REMEMBERED, "-n", NAMESPACE)
NEWER = HEADER + "rules: {rule-of-a-newer-version: {action: deny}}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that these tests may break. A second policy weakens the first for namespaces with a label."""
    with Cluster(controller_manager=False, log_dir=tmp_path_factory.mktemp("attacked-cluster-logs")) as started:
        started.kubectl("create", "namespace", NAMESPACE)
        started.apply([policy_configmap("rules: {worker-count: {max: 3}}"), policy_configmap(PREMIUM, "premium")])
        yield started


def job_in(namespace: str) -> dict[str, Any]:
    return jobs.changed({"Worker.replicas": 4, "metadata.namespace": namespace, "metadata.name": "four"})


def create(cluster: Cluster, namespace: str) -> str:
    """kubectl's output for a job with one worker too many."""
    done = cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=job_in(namespace), check=False)
    return done.stdout + done.stderr


def refusal(replica: service.Replica, namespace: str) -> tuple[int, str]:
    """HTTP status and text of a review without a verdict."""
    with pytest.raises(urllib.error.HTTPError) as error:
        review_of(replica, job_in(namespace))
    return error.value.code, error.value.read().decode()


def test_job_in_namespace_created_right_after_an_outage_is_rejected(cluster: Cluster) -> None:
    with service.running(cluster, "--policy-namespace", NAMESPACE):
        cluster.stop_apiserver()
        time.sleep(OUTAGE_SECONDS)
        cluster.start_apiserver()
        for _ in range(3):
            namespace = cluster.create_namespace("new")
            answer = create(cluster, namespace)
            assert "4 workers, at most 3 allowed" in answer
            assert "created" not in answer
        premium = cluster.create_namespace("new", {"tier": "premium"})
        assert "created" in create(cluster, premium), "the policy for its labels applies at once"


def test_namespace_missing_from_the_cache_is_read_during_the_review(cluster: Cluster, tmp_path: Path) -> None:
    proxy = ApiProxy(cluster.kubeconfig)
    with proxy.running() as url:
        config = kubeconfig(tmp_path / "config", url)
        flags = ("--kubeconfig", str(config), "--policy-namespace", NAMESPACE)
        with service.running(cluster, *flags, name="lagging", register=False) as replica:
            with proxy.trouble(["namespaces"], Trouble.HANG):
                plain, premium = cluster.create_namespace("new"), cluster.create_namespace("new", {"tier": "premium"})
                rejected = review_of(replica, job_in(plain))
                assert not rejected["allowed"]
                assert "4 workers, at most 3 allowed" in rejected["status"]["message"]
                assert review_of(replica, job_in(premium))["allowed"]
                status, text = refusal(replica, "never-made")
                assert (status, text.partition(":")[0]) == (503, "the namespace could not be read (404)")
            with proxy.trouble(["namespaces", plain], Trouble.BROKEN):
                status, text = refusal(replica, plain)
                assert (status, text.partition(":")[0]) == (503, "the namespace could not be read (500)")


def test_review_without_permission_to_read_the_namespace_has_no_verdict(cluster: Cluster) -> None:
    user = "blind"
    cluster.kubectl("create", "role", user, "-n", NAMESPACE, "--verb=get,list,watch", "--resource=configmaps")
    cluster.kubectl("create", "rolebinding", user, "-n", NAMESPACE, f"--role={user}", f"--user={user}")
    flags = ("--kubeconfig", str(cluster.kubeconfig_for(user)), "--policy-namespace", NAMESPACE)
    with service.running(cluster, *flags, name=user, register=False) as replica:
        status, text = refusal(replica, "default")
        assert (status, text.partition(":")[0]) == (503, "the namespace could not be read (403)")
        cluster.kubectl("create", "clusterrole", user, "--verb=get", "--resource=namespaces")
        cluster.kubectl("create", "clusterrolebinding", user, f"--clusterrole={user}", f"--user={user}")

        def verdict() -> dict[str, Any] | None:
            try:
                return review_of(replica, job_in("default"))
            except urllib.error.HTTPError:  # RBAC takes a moment
                return None

        assert not cluster.wait_for("a verdict", verdict)["allowed"]


@pytest.fixture
def newer(cluster: Cluster) -> Iterator[Any]:
    """A function that stores a policy that this version cannot read, and a last good text for each version."""

    def store(**copies: str) -> None:
        data = {f"_{version}": json.dumps({"newer": text}) for version, text in copies.items()}
        cluster.apply([configmap("newer", NEWER), {**configmap(REMEMBERED, None, label=""), "data": data}])

    cluster.kubectl("delete", "configmap", REMEMBERED, "-n", NAMESPACE, "--ignore-not-found")
    yield store
    cluster.kubectl("delete", "configmap", "newer", REMEMBERED, "-n", NAMESPACE, "--ignore-not-found")


def starting(cluster: Cluster, ready: str) -> Any:
    flags = ("--policy-namespace", NAMESPACE)
    return service.running(cluster, *flags, name="older", register=False, ready=ready)


def test_starting_replica_that_cannot_read_a_policy_is_not_ready(cluster: Cluster, newer: Any) -> None:
    newer(**{"99.0": NEWER})
    with starting(cluster, "/healthz") as replica:

        def readiness() -> str | None:
            with pytest.raises(urllib.error.HTTPError) as error:
                replica.ops("/readyz")
            text = error.value.read().decode()
            return text if "newer" in text else None

        readyz = cluster.wait_for("the document's name", readiness)
        assert (
            '[-]policy failed: policy "newer": this version can read neither the document nor its last good' in readyz
        )
        cluster.apply([policy_configmap("rules: {gpus: {max: 4}}", "newer")])
        cluster.wait_for("readiness", lambda: _readyz(replica))
        # The newer version's copy stays next to the copy of this version.
        cluster.wait_for("our copy", lambda: f"_{__version__}" in cluster.get(*LAST_GOOD)["data"] or None)
        assert json.loads(cluster.get(*LAST_GOOD)["data"]["_99.0"]) == {"newer": NEWER}
        cluster.apply([configmap("newer", NEWER)])
        cluster.wait_for(
            "the replica to see the policy", lambda: 'state="last-good"} 1.0' in replica.ops("/metrics") or None
        )
        assert "readyz check passed" in replica.ops("/readyz"), "the replica stays ready with a readable copy"


def test_after_a_rollback_the_copy_of_the_older_version_applies(cluster: Cluster, newer: Any) -> None:
    newer(**{"99.0": NEWER, __version__: HEADER + "priority: 50\nrules: {worker-count: {max: 2}}"})
    with starting(cluster, "/readyz") as replica:
        message = review_of(replica, job_in("default"))["status"]["message"]
        assert "4 workers, at most 2 allowed" in message


def _readyz(replica: service.Replica) -> str | None:
    try:
        return replica.ops("/readyz")
    except urllib.error.HTTPError:
        return None
