"""Policy ConfigMaps on a real API server with two replicas of the service."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.service import example, review_of
from tests.support.jobs import changed
from tests.support.paths import MANIFESTS
from tests.support.policies import policy_configmap
from webhook.policy import store

PI = assets().upstream_examples["pi"]
POLICIES = "mpijob-webhook"
LAST_GOOD = ("configmap", "mpijob-webhook-last-good", "-n", POLICIES)


@pytest.fixture(scope="module")
def replicas(cluster: Cluster) -> Iterator[list[service.Replica]]:
    """Two replicas that watch the cluster. The API server calls the first one."""
    # An earlier test may have left the namespace.
    if cluster.kubectl("get", "namespace", POLICIES, check=False).returncode:
        cluster.kubectl("create", "namespace", POLICIES)
    with ExitStack() as stack:
        first = stack.enter_context(service.running(cluster))
        second = stack.enter_context(service.running(cluster, name="second", register=False))
        yield [first, second]
    cluster.kubectl("delete", "namespace", POLICIES, "--wait=false")


@pytest.fixture(autouse=True)
def no_policies(cluster: Cluster, replicas: list[service.Replica]) -> Iterator[None]:
    """Each test begins and ends without policy ConfigMaps."""
    yield
    cluster.kubectl("delete", "configmaps", "-n", POLICIES, "-l", "training.openshift.io/mpijob-policy=true")
    for replica in replicas:
        cluster.wait_for("the defaults", lambda replica=replica: verdict(replica, "default", 4) or None)


def verdict(replica: service.Replica, namespace: str, workers: int) -> bool:
    """Whether the replica admits a job with this number of workers."""
    job = changed({"Worker.replicas": workers}, example(PI, namespace=namespace))
    allowed: bool = review_of(replica, job)["allowed"]
    return allowed


def remembered(cluster: Cluster) -> dict[str, str]:
    """The stored last good policies, by name."""
    return store.remembered_texts(cluster.get(*LAST_GOOD).get("data", {}))


def apply(cluster: Cluster, manifest: dict[str, Any], *flags: str) -> str:
    done = cluster.kubectl("apply", *flags, "-f", "-", stdin=manifest, check=False)
    return done.stdout + done.stderr


def create(cluster: Cluster, namespace: str, workers: int, *flags: str, **metadata: Any) -> str:
    # A single worker gets more slots for the ranks, so that the job has no second violation.
    slots = {"spec.slotsPerWorker": 8} if workers == 1 else {}
    job = changed({"Worker.replicas": workers, **slots}, example(PI, namespace=namespace, **metadata))
    done = cluster.kubectl("create", "--dry-run=server", *flags, "-f", "-", stdin=job, check=False)
    return done.stdout + done.stderr


def test_change_and_deletion_of_a_policy_reach_both_replicas(
    cluster: Cluster, namespace: str, replicas: list[service.Replica]
) -> None:
    assert "created" in apply(cluster, policy_configmap("rules: {worker-count: {max: 3}}"))
    for replica in replicas:
        cluster.wait_for("the policy", lambda replica=replica: not verdict(replica, namespace, 4) or None)
    assert "4 workers, at most 3 allowed" in create(cluster, namespace, 4)

    assert "configured" in apply(cluster, policy_configmap("rules: {worker-count: {max: 5}}"))
    for replica in replicas:
        cluster.wait_for("the new policy", lambda replica=replica: verdict(replica, namespace, 4) or None)
        assert not verdict(replica, namespace, 6)

    cluster.kubectl("delete", "configmap", "platform", "-n", POLICIES)
    for replica in replicas:
        cluster.wait_for("the defaults", lambda replica=replica: verdict(replica, namespace, 6) or None)


def test_policies_apply_by_the_labels_of_the_namespace(
    cluster: Cluster, namespace: str, replicas: list[service.Replica]
) -> None:
    apply(cluster, policy_configmap("rules: {worker-count: {max: 3}}"))
    premium = "priority: 10\nnamespaces: {matchLabels: {tier: premium}}\nrules: {worker-count: {max: 64}}"
    apply(cluster, policy_configmap(premium, name="premium"))
    for replica in replicas:
        cluster.wait_for("the base tier", lambda replica=replica: not verdict(replica, namespace, 4) or None)
    cluster.kubectl("label", "namespace", namespace, "tier=premium")
    for replica in replicas:
        cluster.wait_for("the premium tier", lambda replica=replica: verdict(replica, namespace, 40) or None)
    cluster.kubectl("label", "namespace", namespace, "tier-")
    for replica in replicas:
        cluster.wait_for("the base tier", lambda replica=replica: not verdict(replica, namespace, 4) or None)


def test_every_shipped_policy_can_be_applied(cluster: Cluster) -> None:
    folder = MANIFESTS / "policies"
    files = (*folder.glob("*.yaml"), *folder.glob("published/*.yaml"))
    named = [flag for path in files if path.name != "kustomization.yaml" for flag in ("-f", str(path))]
    done = cluster.kubectl("apply", "--dry-run=server", "-n", POLICIES, *named)
    assert done.stdout.count("created (server dry run)") >= len(named) / 2


def test_last_good_policy_applies_when_a_broken_policy_bypasses_the_hook(
    cluster: Cluster, namespace: str, replicas: list[service.Replica]
) -> None:
    apply(cluster, policy_configmap("rules: {worker-count: {max: 3}}"))
    for replica in replicas:
        cluster.wait_for("the policy", lambda replica=replica: not verdict(replica, namespace, 4) or None)
    cluster.wait_for("the copy of the policy", lambda: "platform" in remembered(cluster) or None)
    bypassed = ("validatingwebhookconfiguration", "admission.mpijob.training.openshift.io")
    never = [{"name": "never", "expression": "false"}]
    add = json.dumps([{"op": "add", "path": "/webhooks/1/matchConditions", "value": never}])
    cluster.kubectl("patch", *bypassed, "--type=json", "-p", add)
    try:
        cluster.wait_for(
            "the broken policy to be stored",
            lambda: "configured" in apply(cluster, policy_configmap("mode: loud")) or None,
        )
    finally:
        remove = '[{"op": "remove", "path": "/webhooks/1/matchConditions"}]'
        cluster.kubectl("patch", *bypassed, "--type=json", "-p", remove)

    def events_of_policy() -> list[dict[str, Any]]:
        found = cluster.get("events", "-n", POLICIES, "--field-selector=reason=PolicyBroken")["items"]
        return [event for event in found if event["involvedObject"]["name"] == "platform"]

    cluster.wait_for("an Event", lambda: events_of_policy() or None)
    [event] = events_of_policy()  # one Event, although there are two replicas
    assert "its last good document stays in force" in event["message"]
    assert "mode: must be" in event["message"]
    for replica in replicas:
        cluster.wait_for(
            "the metric", lambda r=replica: 'policy_documents{state="last-good"} 1.0' in r.ops("/metrics") or None
        )
        assert not verdict(replica, namespace, 4)
        assert replica.ops("/readyz").endswith("readyz check passed\n")
    with service.running(cluster, name="third", register=False) as restarted:  # reads the stored copy
        assert not verdict(restarted, namespace, 4)
        assert 'policy_documents{state="last-good"} 1.0' in restarted.ops("/metrics")


def test_warning_shows_the_impact_of_a_policy(cluster: Cluster, namespace: str) -> None:
    for index in range(3):
        cluster.kubectl("create", "-f", "-", stdin=example(PI, namespace=namespace, name=f"pi-{index}"))
    output = apply(cluster, policy_configmap("rules: {worker-count: {min: 3}}"), "--dry-run=server")
    counts = re.search(r"Warning: would newly deny (\d+) of (\d+) jobs: worker-count (\d+) \(", output)
    assert counts is not None, output
    assert min(map(int, counts.groups())) >= 3  # other tests may have left jobs
    output = apply(cluster, policy_configmap("rules: {worker-count: {max: 200}}"), "--dry-run=server")
    assert "Warning: would newly deny none of " in output, output
    assert "changed injections" not in output, output
    more = "injections: {node-selector: {labels: {pool: gpu}}}"
    [line] = re.findall(
        r"Warning: changed injections: (.*)", apply(cluster, policy_configmap(more), "--dry-run=server")
    )
    assert re.fullmatch(r"node-selector newly into \d+", line), line


TENANT = ("--as=tenant", "--as-group=tenants")


class TestTenant:
    @pytest.fixture(autouse=True)
    def tenant(self, cluster: Cluster, namespace: str) -> None:
        """Allow the user `tenant` to create jobs in the namespace."""
        cluster.kubectl("create", "role", "jobs", "--verb=create", "--resource=mpijobs.kubeflow.org", "-n", namespace)
        cluster.kubectl("create", "rolebinding", "jobs", "--role=jobs", "--group=tenants", "-n", namespace)

    def test_tenant_cannot_write_policies_or_disable_checks_by_labels(self, cluster: Cluster, namespace: str) -> None:
        for verb in ("create", "update", "delete"):
            can_i = ("auth", "can-i", verb, "configmaps", "-n", POLICIES, *TENANT)
            assert cluster.kubectl(*can_i, check=False).stdout.strip() == "no"
        labels = {"training.openshift.io/mpijob-policy": "true", "kueue.x-k8s.io/queue-name": "q", "admission": "off"}
        job = changed({"Worker.replicas": 1}, example(PI, namespace=namespace, labels=labels))
        refused = cluster.kubectl("create", *TENANT, "--dry-run=server", "-f", "-", stdin=job, check=False)
        assert "1 worker, at least 2 required" in refused.stderr


def test_audit_log_contains_the_versions_of_policies(cluster: Cluster, namespace: str) -> None:
    apply(cluster, policy_configmap("rules: {worker-count: {max: 3}}"))
    cluster.wait_for("the policy", lambda: "at most 3" in create(cluster, namespace, 4) or None)
    stored = cluster.get("configmap", "platform", "-n", POLICIES)
    create(cluster, namespace, 4, name="by-version")
    digest = sha256(stored["data"]["policy.yaml"].encode()).hexdigest()[:12]
    expected = f"platform@{stored['metadata']['resourceVersion']} sha256:{digest}"
    key = "validate.mpijob.training.openshift.io/policy"
    found = [event.get("annotations", {}).get(key) for event in cluster.audit_events("by-version")]
    assert expected in found
