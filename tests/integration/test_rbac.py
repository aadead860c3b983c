"""The service works with the permissions of the manifests. Other calls with its ServiceAccount are forbidden.

The service authenticates as its ServiceAccount. It has the flags of the Deployment, except for the addresses.
"""

import copy
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.process import free_port, responds
from tests.support import jobs
from tests.support.installation import default_overlay, service
from tests.support.installation.custom_resources import custom_resource, install
from tests.support.installation.exempting import may_exempt
from tests.support.installation.installed import OURS, Installed
from tests.support.paths import MANIFESTS
from tests.support.policies import policy_configmap
from webhook.api.yaml import load_all
from webhook.client.live_view import kinds
from webhook.cluster.resource import WatchedPlace
from webhook.cluster.resources import watched_resources
from webhook.cluster.resources.reservations import ENTRIES, LABEL, NAMESPACE
from webhook.installation.registration import NAME, RESOURCES
from webhook.policy import store

OVERLAY = MANIFESTS / "overlays" / "default"
TEAM = "team-a"
EXEMPT = {"training.openshift.io/exempt": "worker-count", "training.openshift.io/exempt-reason": "one-off"}
# API groups that the cluster has. Watched kinds of other groups get an artificial CRD.
BUILT_IN = {
    "", "batch", "coordination.k8s.io", "kubeflow.org", "networking.k8s.io", "node.k8s.io", "resource.k8s.io",
    "scheduling.k8s.io",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster with every kind that the service watches."""
    with Cluster(log_dir=tmp_path_factory.mktemp("rbac-logs")) as running:
        install(
            running,
            [
                custom_resource(
                    resource.api_group,
                    resource.plural,
                    resource.kind,
                    *(version.rpartition("/")[2] for version in resource.api_versions),
                    scope="Namespaced" if resource.is_namespaced else "Cluster",
                )
                for resource in watched_resources()
                if resource.api_group not in BUILT_IN
            ],
        )
        yield running


@pytest.fixture(scope="module")
def manifests(cluster: Cluster) -> list[Any]:
    """The objects that `kubectl apply -k` installs."""
    return load_all(cluster.kubectl("kustomize", OVERLAY).stdout)


@pytest.fixture(scope="module")
def account(cluster: Cluster, manifests: list[Any]) -> Path:
    """The service account's kubeconfig. The overlay is installed without the webhook configurations."""
    cluster.apply([found for found in manifests if found["kind"] not in RESOURCES])
    for name in (TEAM, "kueue-system"):
        cluster.kubectl("create", "namespace", name)
    cluster.kubectl("create", "-f", "-", stdin=jobs.changed({"metadata.namespace": TEAM}))
    return default_overlay.account(cluster)


@pytest.fixture(scope="module")
def installed(cluster: Cluster, manifests: list[Any], account: Path) -> Iterator[Installed]:
    """A ready replica of the service."""
    with running(cluster, manifests, account, OURS) as replica:
        yield replica


@contextmanager
def running(cluster: Cluster, manifests: list[Any], account: Path, name: str) -> Iterator[Installed]:
    """Yields a ready replica that has the flags of the Deployment."""
    (deployment,) = (found for found in manifests if found["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    listen, ops = (f"127.0.0.1:{free_port()}" for _ in range(2))
    elsewhere = [f"--kubeconfig={account}", f"--listen={listen}", f"--ops-listen={ops}", "--drain-seconds=0"]
    command = [sys.executable, "-W", "error", "-m", "webhook"]
    cluster.launch(
        name, tuple(command), [*container["args"], *elsewhere], ready=lambda _: responds(f"http://{ops}/readyz")
    )
    try:
        yield Installed(cluster, f"https://{listen}", f"http://{ops}")
    finally:
        cluster.programs.pop(name).stop(grace=20)


def test_every_cache_is_in_sync(installed: Installed) -> None:
    """Each watched resource is cached in one of its API versions."""
    places = {WatchedPlace.OWN: OURS, WatchedPlace.KUEUE: "kueue-system"}
    expected = [{kind.name for kind in kinds(resource, places)} for resource in watched_resources()]

    def missing_caches() -> list[set[str]]:
        synced = {kind for kind, value in installed.synced().items() if value == "1"}
        return [names for names in (*expected, {"policies"}) if not names & synced]

    with suppress(TimeoutError):
        installed.cluster.wait_for("the caches", lambda: not missing_caches() or None)
    assert missing_caches() == []
    # The API server returns "storage is (re)initializing" for a moment after a CRD is created.
    failed = [line["reason"] for line in installed.log("watch failed")]
    assert [reason for reason in failed if not reason.endswith("storage is (re)initializing")] == []


def test_valid_policy_is_stored_and_broken_policy_is_reported(cluster: Cluster, installed: Installed) -> None:
    cluster.apply([policy_configmap("rules: {worker-count: {max: 3}}")])
    last_good = ("configmap", "mpijob-webhook-last-good", "-n", OURS)

    def copy() -> str:
        return store.remembered_texts(cluster.get(*last_good).get("data", {})).get("platform", "")

    cluster.wait_for("a copy of the policy", lambda: copy() or None)
    cluster.apply([policy_configmap("rules: {worker-count: {max: 5}}")])
    cluster.wait_for("a copy of the new policy", lambda: "max: 5" in copy() or None)
    cluster.apply([policy_configmap("rules: {worker-count: {max: many}}")])
    events = ("events", "-n", OURS, "--field-selector=reason=PolicyBroken")
    (event,) = cluster.wait_for("an Event", lambda: cluster.get(*events)["items"])
    assert event["involvedObject"]["name"] == "platform"
    cluster.kubectl("delete", "configmap", "platform", "-n", OURS)


def test_missing_rights_and_configurations_are_reported_by_a_ready_replica(
    cluster: Cluster, manifests: list[Any], account: Path
) -> None:
    kinds = ("namespaces", "nodes", "pods", "resourcequotas")
    roles = [each for each in manifests if each["kind"] in {"ClusterRole", "Role"}]
    poorer = copy.deepcopy(roles)
    for rule in (rule for role in poorer for rule in role["rules"]):
        if "leases" in rule["resources"]:
            rule["verbs"] = [verb for verb in rule["verbs"] if verb in {"list", "watch"}] or ["list"]
        if {"list", "watch"} <= {*rule["verbs"]}:
            rule["resources"] = [each for each in rule["resources"] if each not in kinds] or ["none"]
        if "subjectaccessreviews" in rule["resources"]:
            rule["resources"] = ["none"]
    cluster.apply(poorer)
    try:
        with running(cluster, manifests, account, "poor") as poor:
            replica = service.Replica(poor.address, poor.ops, Path())
            expected = [
                *(f"[!]unknown-{kind}: no information about {kind}: forbidden" for kind in kinds),
                "leases.coordination.k8s.io in mpijob-webhook: two jobs may get the same quota",
                "subjectaccessreviews.authorization.k8s.io: exemptions by annotation are rejected",
                "there is no MutatingWebhookConfiguration: nothing is injected into jobs",
                "there is no ValidatingWebhookConfiguration: jobs are not checked",
                "readyz check passed",
            ]

            def missing() -> list[str]:
                report = replica.ops("/readyz")
                return [line for line in expected if line not in report]

            with suppress(TimeoutError):
                cluster.wait_for("the concerns", lambda: not missing() or None)
            assert missing() == []
            assert 'mpijob_webhook_cache_faulty{kind="nodes"} 1.0' in poor.metrics()
    finally:
        cluster.apply(roles)


def test_right_to_exempt_is_queried(cluster: Cluster, installed: Installed) -> None:
    metadata = {"metadata.namespace": TEAM, "metadata.annotations": EXEMPT}
    job = jobs.changed({"Worker.replicas": 1, **metadata})
    refused = installed.review("validate-mpijob", job, username="dora")
    assert not refused["allowed"]
    assert "you are not allowed to exempt a job from this rule" in refused["status"]["message"]
    cluster.kubectl("create", "rolebinding", "dora", "-n", TEAM, "--clusterrole=mpijob-admin", "--user=dora")

    def allowed() -> bool:
        return bool(installed.review("validate-mpijob", job, username="dora")["allowed"])

    cluster.wait_for("the permission to be seen", allowed)


def test_impact_of_a_policy_is_computed(installed: Installed) -> None:
    reply = installed.review(
        "validate-policy",
        policy_configmap("rules: {worker-count: {max: 3}}"),
        kind={"group": "", "version": "v1", "kind": "ConfigMap"},
        resource={"group": "", "version": "v1", "resource": "configmaps"},
    )
    assert reply["allowed"]
    assert "would newly deny 1 of 1" in " ".join(reply["warnings"]), reply


def test_quota_is_reserved_and_old_reservations_are_removed(cluster: Cluster, installed: Installed) -> None:
    space = "team-quota"
    cluster.kubectl("create", "namespace", space)
    cluster.kubectl("create", "quota", "q", "--hard=limits.cpu=1k", "-n", space)
    cluster.wait_for("the quota's status", lambda: cluster.get("quota", "q", "-n", space)["status"].get("used"))
    lease = ("lease", f"quota-{space}", "-n", OURS, "--ignore-not-found", "-o", "jsonpath={.metadata.annotations}")

    def reserved(name: str) -> bool:
        """Review the job. Returns False if the service has reserved nothing, because it has not yet seen the quota."""
        installed.review("validate-mpijob", jobs.changed({"metadata.namespace": space, "metadata.name": name}))
        return name in cluster.kubectl("get", *lease).stdout

    cluster.wait_for("a reservation", lambda: reserved("first") or None)
    cluster.wait_for("a second reservation", lambda: reserved("second") or None)
    assert 'outcome="unavailable"} 0.0' in installed.metrics()

    over = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "quota-over",
            "namespace": OURS,
            "labels": {LABEL: "true"},
            "annotations": {NAMESPACE: "over", ENTRIES: "[]"},
        },
    }
    cluster.apply([over])
    left = ("lease", "quota-over", "-n", OURS, "--ignore-not-found")
    cluster.wait_for("the old ledger to be removed", lambda: not cluster.kubectl("get", *left).stdout)


def test_ca_is_stored_and_written_into_every_ca_bundle(cluster: Cluster, installed: Installed) -> None:
    secret = ("secret", f"{OURS}-ca", "-n", OURS)
    cluster.wait_for("the CA", lambda: cluster.get(*secret).get("data"))
    cluster.apply(load_all((MANIFESTS / "components" / "hooks" / "webhooks.yaml").read_text()))
    try:

        def bundles() -> list[str]:
            hooks = [hook for resource in RESOURCES.values() for hook in cluster.get(resource, NAME)["webhooks"]]
            return [hook["clientConfig"].get("caBundle", "") for hook in hooks]

        cluster.wait_for("the caBundles", lambda: all(bundles()) or None)
        assert len(set(bundles())) == 1
    finally:
        for resource in RESOURCES.values():
            cluster.kubectl("delete", resource, NAME)


@pytest.mark.parametrize(
    "call",
    [
        f"get secrets -n {TEAM}",
        f"get secrets -n {OURS}",
        "get secrets -A",
        f"get secret train-ssh -n {TEAM}",
        f"get secret other -n {OURS}",
        f"delete secret train-ssh -n {TEAM}",
        f"delete secret {OURS}-ca -n {OURS}",
        f"create secret generic s -n {TEAM}",
        f"create secret generic s -n {OURS}",
        f"run p --image=i -n {TEAM}",
        f"run p --image=i -n {OURS}",
        f"create job j --image=i -n {TEAM}",
        f"create deployment d --image=i -n {OURS}",
        f"delete pod p -n {TEAM}",
        f"delete mpijobs train -n {TEAM}",
        f"annotate mpijobs train a=b -n {TEAM}",
        f"patch mpijobs train --subresource=status --type=merge -p {{}} -n {TEAM}",
        f"create configmap c -n {TEAM}",
        f"delete configmap mpijob-webhook-last-good -n {OURS}",
        f"label configmap kube-root-ca.crt a=b -n {OURS}",
        "create namespace n",
        f"label namespace {TEAM} a=b",
        f"delete mutatingwebhookconfiguration {NAME}",
        f"delete validatingwebhookconfiguration {NAME}",
        "get mutatingwebhookconfigurations",
        "get validatingwebhookconfiguration another",
        "patch validatingwebhookconfiguration another --type=merge -p {}",
        "patch crd mpijobs.kubeflow.org --type=merge -p {}",
        f"create role r --verb=get --resource=pods -n {OURS}",
        f"create rolebinding b --clusterrole=cluster-admin --serviceaccount={OURS}:{OURS} -n {OURS}",
        f"create clusterrolebinding b --clusterrole=cluster-admin --serviceaccount={OURS}:{OURS}",
        f"create token {OURS} -n {OURS}",
        f"create token default -n {TEAM}",
        "get pods --as=admin -n default",
        "get pods --as=somebody --as-group=system:masters -n default",
        f"create quota q -n {TEAM}",
        f"patch deployment {OURS} --type=merge -p {{}} -n {OURS}",
        f"delete lease quota-x -n {TEAM}",
        "get --raw /api/v1/nodes/n/proxy/",
        "get roles -A",
    ],
)
def test_call_with_the_service_account_is_forbidden(cluster: Cluster, account: Path, call: str) -> None:
    """kubectl makes the call, and the API server rejects the call."""
    done = cluster.kubectl(*call.split(), check=False, kubeconfig=account)
    assert done.returncode == 1
    assert re.search(rf'forbidden: User "{default_overlay.ACCOUNT}" cannot ', done.stderr), done.stderr


@pytest.mark.parametrize(
    "query",
    [
        *(f"create pods --subresource={way}" for way in ("exec", "attach", "portforward", "eviction")),
        "get pods --subresource=log",
        "escalate clusterroles",
        "bind clusterroles",
        "impersonate users",
        "create tokenreviews",
        "update configmaps",
        "patch configmaps",
        "deletecollection leases",
    ],
)
def test_service_account_lacks_permission(cluster: Cluster, account: Path, query: str) -> None:
    """The test queries the authorizer, because a real call would need an object or a stream."""
    for where in (("-n", OURS), ("-n", TEAM), ("-A",)):
        done = cluster.kubectl("auth", "can-i", *query.split(), *where, check=False, kubeconfig=account)
        assert done.stdout.strip() == "no", (query, where)


@pytest.mark.usefixtures("account")
def test_service_account_has_no_permission_to_exempt_jobs(cluster: Cluster) -> None:
    assert not may_exempt(cluster, TEAM, default_overlay.ACCOUNT)


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("view", {"get"}),
        ("mpijob-viewer", {"get"}),
        ("edit", {"get", "create", "delete"}),
        ("mpijob-user", {"get", "create", "delete"}),
        ("admin", {"get", "create", "delete"}),
        ("mpijob-admin", {"get", "create", "delete", "exempt"}),
    ],
)
@pytest.mark.usefixtures("account")
def test_permissions_of_user_roles(cluster: Cluster, role: str, allowed: set[str]) -> None:
    user = f"user-of-{role}"
    cluster.kubectl("create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}", "-n", TEAM)

    def may(verb: str) -> bool:
        if verb == "exempt":
            return may_exempt(cluster, TEAM, user)
        return (
            cluster.kubectl("auth", "can-i", verb, "mpijobs", "-n", TEAM, f"--as={user}", check=False).returncode == 0
        )

    cluster.wait_for("the binding and the aggregation", lambda: may("get") or None)
    assert {verb for verb in ("get", "create", "delete", "exempt") if may(verb)} == allowed


@pytest.mark.usefixtures("account")
def test_policy_author_can_write_only_configmaps_of_the_service_namespace(cluster: Cluster) -> None:
    bound = ("create", "rolebinding", "author", "--role=mpijob-policy-author", "--user=author", "-n", OURS)
    cluster.kubectl(*bound)

    def may(verb: str, what: str, namespace: str) -> bool:
        query = ("auth", "can-i", verb, what, "-n", namespace, "--as=author")
        return cluster.kubectl(*query, check=False).returncode == 0

    cluster.wait_for("the binding", lambda: may("create", "configmaps", OURS) or None)
    assert all(may(verb, "configmaps", OURS) for verb in ("get", "list", "update", "patch", "delete"))
    assert not any(may("get", *what) for what in (("secrets", OURS), ("configmaps", TEAM), ("mpijobs", TEAM)))
