"""NetworkPolicies for jobs, on a real API server with the real operator.

The last test creates 7 * MPIJOB_LIVES jobs; with `make lives`, it creates 504 jobs. The service has only the
permissions of the default overlay and of the component `network-policies`. The effect on traffic is tested in
`tests/unit/parts/network_policies/test_packets.py`, because no network plugin can run here.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import KEEP_RUNNING, gpu_nodes
from tests.support import jobs
from tests.support.installation import default_overlay, service
from tests.support.installation.installed import OURS
from tests.support.installation.service import Replica
from tests.support.paths import MANIFESTS
from tests.support.policies import HEADER
from tests.support.rule_checks import defaulted
from webhook.api.yaml import load_all
from webhook.cluster.view import NothingKnown
from webhook.parts.network_policies.job_policy import LABEL, NETWORK_POLICY_KIND, spec
from webhook.rules.network_policy import Posture, Settings

pytestmark = pytest.mark.timeout(1200)

RIGHTS = MANIFESTS / "components" / "network-policies" / "rbac.yaml"
record = NETWORK_POLICY_KIND.record
LIVES = 7 * int(os.environ.get("MPIJOB_LIVES", "2"))
POSTURES = ("default", "restricted", "isolated")
SETTINGS = {
    "posture": "restricted",
    "choices": ["none", *POSTURES],
    "egress": [{"cidrs": ["10.20.0.0/16"], "ports": [443, 9000]}],
    "ingress": [{"namespaces": ["monitoring"]}],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster in which jobs run, with the default overlay and without components."""
    with Cluster(log_dir=tmp_path_factory.mktemp("network-policies-logs")) as running:
        running.start_scheduler()
        running.start_kwok(gpu_nodes(4))
        running.start_operator()
        default_overlay.apply(running)
        yield running


@pytest.fixture(scope="module")
def flags(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Flags for a service that authenticates as its ServiceAccount and reads a policy file."""
    account = default_overlay.account(cluster)
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(f"{HEADER}rules: {{network-policy: {SETTINGS}}}\n")
    return ["--network-policies", "--kubeconfig", str(account), "--policy", str(policy)]


@pytest.fixture
def replica(cluster: Cluster, flags: list[str]) -> Iterator[Replica]:
    """A replica of the service with the permissions of the component `network-policies`."""
    cluster.apply(load_all(RIGHTS.read_text()))
    with service.running(cluster, *flags, name="one", register=False) as running:
        yield running


def job(namespace: str, name: str, posture: str = "", *, keep: bool = True, **policy: Any) -> Any:
    found = jobs.changed({"metadata": {"name": name, "namespace": namespace}, "Worker.replicas": 1})
    found["metadata"]["annotations"] = {LABEL: posture} if posture else {}
    launcher = found["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    launcher["metadata"] = {"annotations": {KEEP_RUNNING: "yes"} if keep else {}}
    for role in found["spec"]["mpiReplicaSpecs"].values():
        for container in role["template"]["spec"]["containers"]:
            container["resources"] = {"limits": {"cpu": "10m"}}
    found["spec"]["runPolicy"] = {"cleanPodPolicy": "All", **policy}
    return found


def create(cluster: Cluster, *found: Any) -> None:
    cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": list(found)}, timeout=300)


def policies(cluster: Cluster, namespace: str) -> dict[str, Any]:
    found = cluster.get("networkpolicies", "-n", namespace)["items"]
    return {each["metadata"]["name"]: each for each in found}


def made(cluster: Cluster, namespace: str, *names: str) -> dict[str, Any] | None:
    """The NetworkPolicies of the namespace, or None if one of the named jobs does not yet have a NetworkPolicy."""
    found = policies(cluster, namespace)
    return found if {f"mpijob-{name}" for name in names} <= found.keys() else None


def reasons(cluster: Cluster, namespace: str, name: str) -> list[str]:
    found = cluster.get("events", "-n", namespace)["items"]
    return [
        each["reason"]
        for each in found
        if each["involvedObject"]["name"] == name and each["source"]["component"] == OURS
    ]


def metric(replica: Replica, name: str) -> float:
    """The sum of the metric's series for the controller `network-policies`."""
    lines = [
        line for line in replica.ops("/metrics").splitlines() if line.startswith(f"mpijob_webhook_companion_{name}{{")
    ]
    return sum(float(line.rpartition(" ")[2]) for line in lines if 'companion="network-policies"' in line)


def idle(replica: Replica) -> bool:
    return metric(replica, "waiting") == 0


def test_missing_rights_for_network_policies_are_reported(cluster: Cluster, flags: list[str]) -> None:
    everything = [
        (verb, what)
        for what in ("networkpolicies.networking.k8s.io", "events")
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    ]
    reads = [(verb, "networkpolicies.networking.k8s.io") for verb in ("get", "list", "watch")]
    assert [each for each in everything if default_overlay.may(cluster, *each)] == reads, (
        "the rule `network-policy` reads them"
    )
    namespace = cluster.create_namespace()
    with service.running(cluster, *flags, name="denied", register=False) as replica:
        create(cluster, job(namespace, "train", suspend=True))
        cluster.wait_for("the refusal", lambda: metric(replica, "failing"), timeout=60)
        (line,) = [line for line in replica.ops("/readyz").splitlines() if line.startswith("[!]network-policies")]
        assert 'cannot create resource "networkpolicies"' in line
        assert "readyz check passed" in replica.ops("/readyz")
        assert policies(cluster, namespace) == {}
        cluster.apply(load_all(RIGHTS.read_text()))
        cluster.wait_for("the NetworkPolicy", partial(made, cluster, namespace, "train"))
    granted = [("get", "list", "watch", "create", "patch"), ("create",)]
    assert [each for each in everything if default_overlay.may(cluster, *each)] == [
        (verb, what)
        for what, verbs in zip(("networkpolicies.networking.k8s.io", "events"), granted, strict=True)
        for verb in verbs
    ]


def test_network_policy_exists_until_its_job_is_deleted(cluster: Cluster, replica: Replica) -> None:
    namespace = cluster.create_namespace()
    create(cluster, *(job(namespace, posture, posture) for posture in POSTURES))
    create(cluster, job(namespace, "free", "none"), job(namespace, "waits", suspend=True), job(namespace, "plain"))
    found = cluster.wait_for("all NetworkPolicies", partial(made, cluster, namespace, *POSTURES, "waits", "plain"))
    assert found.keys() == {f"mpijob-{name}" for name in (*POSTURES, "waits", "plain")}
    settings = Settings.model_validate(SETTINGS)
    for name, posture in (*zip(POSTURES, POSTURES, strict=True), ("plain", "restricted"), ("waits", "restricted")):
        stored = cluster.get("mpijob", name, "-n", namespace)
        policy = found[f"mpijob-{name}"]
        assert policy["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "name": name,
                "uid": stored["metadata"]["uid"],
                "controller": True,
            }
        ]
        wanted = {**policy, "spec": spec(defaulted(stored), Posture(posture), settings, NothingKnown())}
        assert record(policy) == record(wanted)
        pods = partial(selected, cluster, namespace, policy)
        assert not pods() if name == "waits" else cluster.wait_for("the pods of the job", pods, timeout=60)

    # While no object changes, the service writes nothing.
    cluster.wait_for("the service to be idle", partial(idle, replica))
    requests = metric(replica, "requests_total")
    versions = {name: each["metadata"]["resourceVersion"] for name, each in policies(cluster, namespace).items()}

    # The NetworkPolicy stays when the job ends. Background and foreground deletion of a job delete its NetworkPolicy.
    cluster.kubectl(
        "annotate", "pods", "-n", namespace, "-l", "training.kubeflow.org/job-name=default", f"{KEEP_RUNNING}-"
    )
    ended = lambda: has_condition(cluster.get("mpijob", "default", "-n", namespace), "Succeeded")  # noqa: E731
    cluster.wait_for("the end of a job", ended, timeout=60)
    cluster.wait_for("the service to be idle", partial(idle, replica))
    now = {name: each["metadata"]["resourceVersion"] for name, each in policies(cluster, namespace).items()}
    assert now == versions
    assert metric(replica, "requests_total") == requests
    for name, how in (("default", "background"), ("isolated", "foreground")):
        cluster.kubectl("delete", "mpijob", name, "-n", namespace, f"--cascade={how}")
        gone = lambda name=name: made(cluster, namespace, name) is None  # noqa: E731
        cluster.wait_for("the garbage collector", gone, timeout=60)
    cluster.wait_for("the service to be idle", partial(idle, replica))
    assert policies(cluster, namespace).keys() == {"mpijob-restricted", "mpijob-waits", "mpijob-plain"}
    assert metric(replica, "failing") == 0
    assert reasons(cluster, namespace, "isolated") == []


def selected(cluster: Cluster, namespace: str, policy: Any) -> list[Any]:
    """The pods that the API server returns for the policy's podSelector."""
    labels = policy["spec"]["podSelector"]["matchLabels"]
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    found: list[Any] = cluster.get("pods", "-n", namespace, "-l", selector)["items"]
    return found


def test_changed_or_removed_network_policy_is_restored(cluster: Cluster, replica: Replica) -> None:
    namespace = cluster.create_namespace()
    create(cluster, job(namespace, "train"), job(namespace, "other"))
    good = cluster.wait_for("both NetworkPolicies", partial(made, cluster, namespace, "train", "other"))["mpijob-train"]
    cluster.wait_for("the service to be idle", partial(idle, replica))

    def restored() -> bool:
        return record(policies(cluster, namespace).get("mpijob-train", good | {"spec": {}})) == record(good)

    where = ("networkpolicy", "mpijob-train", "-n", namespace)
    for patch in ('{"spec": {"ingress": [{}]}}', '{"spec": {"policyTypes": ["Egress"], "egress": [{}]}}'):
        cluster.kubectl("patch", *where, "--type=merge", "-p", patch)
        cluster.wait_for("the restored NetworkPolicy", restored)
    cluster.kubectl("label", *where, f"{LABEL}-")
    cluster.wait_for("the restored NetworkPolicy", restored)
    cluster.kubectl("label", *where, "team=a")
    cluster.kubectl("delete", *where)
    cluster.wait_for("the restored NetworkPolicy", partial(made, cluster, namespace, "train"))
    assert restored()
    assert reasons(cluster, namespace, "train") == ["NetworkPolicyPutBack"]
    assert reasons(cluster, namespace, "other") == []
    shown = cluster.kubectl("describe", "mpijob", "train", "-n", namespace).stdout
    assert "NetworkPolicyPutBack" in shown


def test_foreign_network_policy_is_not_changed(cluster: Cluster, replica: Replica) -> None:
    namespace = cluster.create_namespace()
    foreign = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "mpijob-train", "namespace": namespace},
        "spec": {"podSelector": {"matchLabels": {"a": "b"}}, "policyTypes": ["Ingress"]},
    }
    create(cluster, foreign)
    before = policies(cluster, namespace)
    # A foreign object may appear between a read and an apply of the service. The apply contains the uid from the read,
    # and the API server rejects an apply with a different uid.
    for name in ("mpijob-train", "mpijob-gone"):
        other = {**foreign, "metadata": {**foreign["metadata"], "name": name, "uid": "another"}}
        apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        refused = cluster.kubectl(*apply, stdin=other, check=False)
        assert "uid" in refused.stderr.lower(), refused
    create(cluster, job(namespace, "train"))
    cluster.wait_for("the Event", lambda: reasons(cluster, namespace, "train") or None)
    assert reasons(cluster, namespace, "train") == ["NetworkPolicyForeign"]
    assert policies(cluster, namespace) == before
    assert f"NetworkPolicy {namespace}/mpijob-train does not belong to the job" in replica.ops("/readyz")
    cluster.kubectl("delete", "networkpolicy", "mpijob-train", "-n", namespace)
    found = cluster.wait_for("the job's NetworkPolicy", partial(made, cluster, namespace, "train"), timeout=60)
    assert record(found["mpijob-train"]).owner


def test_network_policies_are_correct_while_jobs_change_and_a_replica_is_killed(
    cluster: Cluster, flags: list[str], replica: Replica
) -> None:
    namespace = cluster.create_namespace()
    settings = Settings.model_validate(SETTINGS)
    postures = {f"job-{number}": POSTURES[number % 3] for number in range(LIVES)}
    checked: set[str] = set()

    def check_policies() -> int:
        """Check that each NetworkPolicy is correct for its job. Returns the number of NetworkPolicies."""
        # Reading the policies first ensures that the list of jobs contains the job of each policy.
        policies_now = policies(cluster, namespace)
        stored = {each["metadata"]["name"]: each for each in cluster.get("mpijobs", "-n", namespace)["items"]}
        for name, policy in policies_now.items():
            job = stored.get(name.removeprefix("mpijob-"))
            if job is not None:
                wanted = spec(defaulted(job), Posture(postures[job["metadata"]["name"]]), settings, NothingKnown())
                assert record(policy) == record({**policy, "spec": wanted})
                assert record(policy).owner == job["metadata"]["uid"]
                checked.add(name)
        return len(policies_now)

    with ExitStack() as stack:
        stack.enter_context(service.running(cluster, *flags, name="killed", register=False))
        for start in range(0, LIVES, 10):
            names = list(postures)[start : start + 10]
            create(cluster, *(job(namespace, name, postures[name], keep=False) for name in names))
            check_policies()
            if start == LIVES // 20 * 10:
                os.killpg(cluster.programs["killed"].pid, signal.SIGKILL)
        cluster.wait_for("all NetworkPolicies", lambda: check_policies() == LIVES, timeout=60 + LIVES)
        succeeded = lambda: all(  # noqa: E731
            has_condition(each, "Succeeded") for each in cluster.get("mpijobs", "-n", namespace)["items"]
        )
        cluster.wait_for("the end of all jobs", succeeded, timeout=60 + 2 * LIVES)
        assert check_policies() == LIVES
        assert checked == {f"mpijob-{name}" for name in postures}
        cluster.kubectl("delete", "mpijobs", "--all", "-n", namespace, timeout=300)
        cluster.wait_for("the garbage collector", lambda: check_policies() == 0, timeout=60 + LIVES)
        cluster.wait_for("the service to be idle", partial(idle, replica))
        assert policies(cluster, namespace) == {}
        reasons_now = [each["reason"] for each in cluster.get("events", "-n", namespace)["items"]]
        assert not [reason for reason in reasons_now if reason.startswith("NetworkPolicy")]
        assert metric(replica, "failing") == 0
