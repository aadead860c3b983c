"""The service with exactly the rights of the manifests: everything works, and what it must not do is refused.

It authenticates as its ServiceAccount, and has the command line of the Deployment, at other addresses.
"""

import base64
import http.client
import json
import re
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import jobs
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import free_port, responds
from tests.integration import service
from tests.integration.custom_resources import custom_resource, install
from webhook.cluster.resources import looked_at
from webhook.registration import NAME, RESOURCES
from webhook.yaml import load_all

OURS = "mpijob-webhook"
ACCOUNT = f"system:serviceaccount:{OURS}:{OURS}"
OVERLAY = Path(__file__).parents[2] / "manifests" / "overlays" / "default"
TEAM = "team-a"
POLICY = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"
EXEMPT = {"training.openshift.io/exempt": "worker-count", "training.openshift.io/exempt-reason": "one-off"}
# What the cluster has of its own; of everything else that is looked at, there is a stand-in.
BUILT_IN = {"", "batch", "coordination.k8s.io", "kubeflow.org", "node.k8s.io", "scheduling.k8s.io"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of its own, with every kind that the service looks at."""
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
                for resource in looked_at()
                if resource.api_group not in BUILT_IN
            ],
        )
        yield running


@pytest.fixture(scope="module")
def manifests(cluster: Cluster) -> list[Any]:
    """What `kubectl apply -k` installs."""
    return load_all(cluster.kubectl("kustomize", OVERLAY).stdout)


@pytest.fixture(scope="module")
def account(cluster: Cluster, manifests: list[Any]) -> Path:
    """The service account's kubeconfig. All is installed but the webhooks: their Service has nobody behind it."""
    cluster.apply([found for found in manifests if found["kind"] not in RESOURCES])
    for name in (TEAM, "kueue-system"):
        cluster.kubectl("create", "namespace", name)
    cluster.kubectl("create", "-f", "-", stdin=jobs.changed({"metadata.namespace": TEAM}))
    return cluster.kubeconfig_for(ACCOUNT, ["system:serviceaccounts", f"system:serviceaccounts:{OURS}"])


@dataclass(frozen=True)
class Installed:
    """The running service."""

    cluster: Cluster
    address: str
    ops: str

    def synced(self) -> dict[str, str]:
        """Kind to "1" or "0"."""
        found = re.findall(r'^mpijob_webhook_cache_synced\{kind="(.+?)"\} (\d)', self.metrics(), re.MULTILINE)
        return dict(found)

    def metrics(self) -> str:
        return service.Replica(self.address, self.ops, Path()).ops("/metrics")

    def review(self, hook: str, manifest: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """The answer to a creation, over TLS that its CA vouches for."""
        ca = self.cluster.get("secret", f"{OURS}-ca", "-n", OURS)["data"]
        pem = "".join(base64.b64decode(text).decode() for name, text in ca.items() if name.endswith(".crt"))
        context = ssl.create_default_context(cadata=pem)
        context.check_hostname = False
        connection = http.client.HTTPSConnection(urlsplit(self.address).netloc, timeout=20, context=context)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"/{hook}", jobs.body(manifest, **fields), headers)
        response: dict[str, Any] = json.load(connection.getresponse())["response"]
        connection.close()
        return response

    def log(self, event: str) -> list[dict[str, Any]]:
        lines = self.cluster.programs[OURS].log.read_text().splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in found if line["event"] == event]


@pytest.fixture(scope="module")
def installed(cluster: Cluster, manifests: list[Any], account: Path) -> Iterator[Installed]:
    """The service, ready."""
    (deployment,) = (found for found in manifests if found["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    listen, ops = (f"127.0.0.1:{free_port()}" for _ in range(2))
    elsewhere = [f"--kubeconfig={account}", f"--listen={listen}", f"--ops-listen={ops}", "--drain-seconds=0"]
    command = [sys.executable, "-W", "error", "-m", "webhook"]
    cluster.launch(
        OURS, tuple(command), [*container["args"], *elsewhere], ready=lambda _: responds(f"http://{ops}/readyz")
    )
    yield Installed(cluster, f"https://{listen}", f"http://{ops}")
    cluster.programs.pop(OURS).stop(grace=20)


def test_every_cache_is_in_sync(installed: Installed) -> None:
    def lacking() -> list[str]:
        return [kind for kind, synced in installed.synced().items() if synced != "1"]

    installed.cluster.wait_for("the caches", lambda: not lacking() or None)
    assert len(installed.synced()) > len(looked_at())  # the policies too
    assert installed.log("watch failed") == []


def policy(rules: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "platform",
            "namespace": OURS,
            "labels": {"training.openshift.io/mpijob-policy": "true"},
        },
        "data": {"policy.yaml": f"{POLICY}rules: {rules}"},
    }


def test_policies_are_followed_remembered_and_complained_about(cluster: Cluster, installed: Installed) -> None:
    cluster.apply([policy("{worker-count: {max: 3}}")])
    remembered = ("configmap", "mpijob-webhook-last-good", "-n", OURS)
    cluster.wait_for("the policy to be remembered", lambda: cluster.get(*remembered)["data"].get("platform"))
    cluster.apply([policy("{worker-count: {max: 5}}")])
    cluster.wait_for("the new one", lambda: "max: 5" in cluster.get(*remembered)["data"]["platform"] or None)
    cluster.apply([policy("{worker-count: {max: many}}")])
    events = ("events", "-n", OURS, "--field-selector=reason=PolicyBroken")
    (event,) = cluster.wait_for("an Event", lambda: cluster.get(*events)["items"])
    assert event["involvedObject"]["name"] == "platform"
    cluster.kubectl("delete", "configmap", "platform", "-n", OURS)


def test_who_may_exempt_is_asked(cluster: Cluster, installed: Installed) -> None:
    metadata = {"metadata.namespace": TEAM, "metadata.annotations": EXEMPT}
    job = jobs.changed({"Worker.replicas": 1, **metadata})
    refused = installed.review("validate-mpijob", job, username="dora")
    assert not refused["allowed"]
    assert "you are not allowed to exempt a job from this rule" in refused["status"]["message"]
    cluster.kubectl("create", "rolebinding", "dora", "-n", TEAM, "--clusterrole=mpijob-admin", "--user=dora")
    ask = lambda: installed.review("validate-mpijob", job, username="dora")  # noqa: E731
    cluster.wait_for("the right to be known", lambda: ask()["allowed"] or None)


def test_what_a_policy_would_change_is_found_out(installed: Installed) -> None:
    said = installed.review(
        "validate-policy",
        policy("{worker-count: {max: 3}}"),
        kind={"group": "", "version": "v1", "kind": "ConfigMap"},
        resource={"group": "", "version": "v1", "resource": "configmaps"},
    )
    assert said["allowed"]
    assert "would newly deny 1 of 1" in " ".join(said["warnings"]), said


def test_a_quota_is_reserved_and_the_reservation_removed(cluster: Cluster, account: Path) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "quota-x", "namespace": OURS},
    }
    cluster.kubectl("create", "-f", "-", stdin=lease, kubeconfig=account)
    changed = {**lease, "spec": {"holderIdentity": "x"}}
    cluster.kubectl("replace", "-f", "-", stdin=changed, kubeconfig=account)
    cluster.kubectl("delete", "lease", "quota-x", "-n", OURS, kubeconfig=account)


def test_the_ca_is_kept_and_gets_into_every_ca_bundle(
    cluster: Cluster, installed: Installed, manifests: list[Any]
) -> None:
    secret = ("secret", f"{OURS}-ca", "-n", OURS)
    cluster.wait_for("the CA", lambda: cluster.get(*secret).get("data"))
    cluster.apply([found for found in manifests if found["kind"] in RESOURCES])
    try:

        def bundles() -> list[str]:
            hooks = [hook for resource in RESOURCES.values() for hook in cluster.get(resource, NAME)["webhooks"]]
            return [hook["clientConfig"].get("caBundle", "") for hook in hooks]

        cluster.wait_for("the caBundles", lambda: all(bundles()) or None)
        assert len(set(bundles())) == 1
    finally:
        for resource in RESOURCES.values():
            cluster.kubectl("delete", resource, NAME)


# What it must not do.


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
def test_forbidden(cluster: Cluster, account: Path, call: str) -> None:
    """The API server itself refuses the real call."""
    done = cluster.kubectl(*call.split(), check=False, kubeconfig=account)
    assert done.returncode == 1
    assert re.search(rf'forbidden: User "{ACCOUNT}" cannot ', done.stderr), done.stderr


@pytest.mark.parametrize(
    "asked",
    [
        *(f"create pods --subresource={way}" for way in ("exec", "attach", "portforward", "eviction")),
        "get pods --subresource=log",
        "escalate clusterroles",
        "bind clusterroles",
        "impersonate users",
        "create tokenreviews",
        "exempt mpijobs",
        "update configmaps",
        "patch configmaps",
        "deletecollection leases",
        "list secrets",
        "watch secrets",
    ],
)
def test_not_allowed(cluster: Cluster, account: Path, asked: str) -> None:
    """Calls that need an object, or a stream, to be tried: the authorizer is asked."""
    for where in (("-n", OURS), ("-n", TEAM), ("-A",)):
        done = cluster.kubectl("auth", "can-i", *asked.split(), *where, check=False, kubeconfig=account)
        assert done.stdout.strip() == "no", (asked, where)


# The roles for people.


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
def test_what_people_may_do_with_jobs(cluster: Cluster, role: str, allowed: set[str]) -> None:
    user = f"user-of-{role}"
    cluster.kubectl("create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}", "-n", TEAM)

    def may(verb: str) -> bool:
        return (
            cluster.kubectl("auth", "can-i", verb, "mpijobs", "-n", TEAM, f"--as={user}", check=False).returncode == 0
        )

    cluster.wait_for("the binding and the aggregation", lambda: may("get") or None)
    assert {verb for verb in ("get", "create", "delete", "exempt") if may(verb)} == allowed
