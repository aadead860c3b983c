"""An update restores injected values that do not contradict the new file."""

import copy
import json
from typing import Any

import pytest

from tests.support.injecting import DEFAULTS, mpijob, mutate, only, operations_of, policy_of, without_list
from tests.support.kueue_objects import namespace
from tests.support.namespaces import labelled
from tests.support.networks import network
from webhook.admission.mutate.updates import KUBECTL_APPLY, LAST_APPLIED
from webhook.api.annotations import INJECTED
from webhook.cluster.resources import watched_resources
from webhook.cluster.snapshot import API_VERSION, KIND, Snapshot

NETWORKS = "k8s.v1.cni.cncf.io/networks"
T = "training.openshift.io/"
COMPLETE: dict[str, Any] = {entry.name: {} for entry in watched_resources()}
KNOWN = Snapshot(
    [
        {"apiVersion": API_VERSION, "kind": KIND, "known": COMPLETE},
        namespace("team"),
        *(network(name, namespace="team") for name in "abc"),
    ]
)


def job(annotations=None, **spec):
    document = mpijob(metadata={"annotations": {T + key: value for key, value in (annotations or {}).items()}})
    worker = document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 8}}
    worker.update(spec)
    return document


def pod(document, role="Worker") -> Any:
    return document["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]


def replaced(before, after, policy):
    stored = mutate(before, policy, view=KNOWN).document
    same = mutate(before, policy, "UPDATE", view=KNOWN, stored=stored)
    assert without_list(same.document) == without_list(stored), "the same file changes nothing"
    return same, mutate(after, policy, "UPDATE", view=KNOWN, stored=stored)


def update(after, stored, policy):
    return mutate(after, policy, "UPDATE", view=KNOWN, stored=stored)


def at(document, path):
    for token in path:
        document = document[token]
    return document


def resources(role, amounts):
    document = job({"rdma": "true"})
    pod(document, role)["containers"][0]["resources"] = amounts
    return document


IN_MESH = job()
IN_MESH["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {
    "annotations": {"sidecar.istio.io/inject": "true"}
}
OWN_SHM = job(volumes=[{"name": "mine", "emptyDir": {}}])
pod(OWN_SHM)["containers"][0]["volumeMounts"] = [{"name": "mine", "mountPath": "/dev/shm/"}]
OWN_ARGS = job()
OWN_ARGUMENT = {"name": "OMPI_MCA_plm_rsh_args", "value": "-p 2222"}
pod(OWN_ARGS, "Launcher")["containers"][0]["env"] = [OWN_ARGUMENT]
RDMA = {"resource": "rdma/ib", "perPod": 1}
WISHES: dict[str, tuple[str, dict[str, Any], Any, Any, str]] = {
    # the injection, its settings, the old file, the new file, the value that must not be restored
    "a service account": ("api-access", {}, job(), job(serviceAccountName="ci"), "Worker/template/spec/automount"),
    "a requested sidecar": ("istio", {}, job(), IN_MESH, "Worker/template/metadata"),
    "a timeout that only notifies": ("job-timeout", {}, job(), job({"timeout-action": "notify-only"}), "runPolicy"),
    "no RDMA": ("rdma", RDMA, job({"rdma": "true"}), job({"rdma": "false"}), "rdma"),
    "an own volume for shared memory": ("shared-memory", {}, job(), OWN_SHM, "olume"),
    "own RDMA devices": (
        "rdma",
        RDMA,
        job({"rdma": "true"}),
        resources("Worker", {"limits": {"nvidia.com/gpu": 8, "rdma/ib": 2}}),
        "rdma",
    ),
    "limits of the launcher": (
        "launcher-resources",
        {"when": "always"},
        job({"rdma": "true"}),
        resources("Launcher", {"limits": {"cpu": "50m", "memory": "256Mi"}}),
        "resources",
    ),
}


@pytest.mark.parametrize("wish", list(WISHES))
def test_setting_in_the_new_file_takes_precedence_over_an_injected_value(wish):
    injection_id, settings, before, after, gone = WISHES[wish]
    outcomes = replaced(before, after, only(injection_id, **settings))
    same, again = ([each for each in operations_of(one) if gone in f"{each[0]} {each[1]}"] for one in outcomes)
    assert same
    assert again == []


RUN_POLICY = ("spec", "runPolicy")
DEADLINE = (*RUN_POLICY, "activeDeadlineSeconds")
WORKER = ("spec", "mpiReplicaSpecs", "Worker", "template", "spec")
TERMS = (*WORKER, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
ENV = ("spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "containers", 0, "env")
H100 = [{"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["H100"]}]}]
ATTEMPTS = "-o ConnectionAttempts=10"
PRTE = [
    {"name": "PRTE_MCA_prte_default_hostfile", "value": "/etc/mpi/hostfile"},
    {"name": "PRTE_MCA_plm_ssh_args", "value": f"-p 2222 {ATTEMPTS}"},
]
MPICH = job()
MPICH["spec"]["mpiImplementation"] = "MPICH"
OTHERS: dict[str, tuple[str, Any, Any, tuple[Any, ...], Any]] = {
    # the injection, the old file, the new file, the path and the value that the injection writes for the new file
    "timeout": ("job-timeout", job({"timeout": "24h"}), job({"timeout": "72h"}), DEADLINE, 259200),
    "debugging": ("clean-pod-policy", job(), job({"debug-mode": "true"}), (*RUN_POLICY, "cleanPodPolicy"), "None"),
    "another GPU": ("gpu-nodes", job({"gpu-product": "A100"}), job({"gpu-product": "H100"}), TERMS, H100),
    "own arguments for ssh": ("mpi-env", job(), OWN_ARGS, ENV, [OWN_ARGUMENT, *PRTE]),
    "another MPI implementation": (
        "mpi-env",
        job(),
        MPICH,
        ENV,
        [{"name": "HYDRA_LAUNCHER_EXTRA_ARGS", "value": ATTEMPTS}],
    ),
}


@pytest.mark.parametrize("case", list(OTHERS))
@pytest.mark.parametrize("required", ["off", "deny"])
def test_injection_follows_the_new_file(case, required):
    injection_id, before, after, path, value = OTHERS[case]
    policy = only(injection_id, required=required)
    _, again = replaced(before, after, policy)
    assert at(again.document, path) == value
    assert again.news == [injection_id]
    assert again.warnings, "the user is informed"
    same = update(after, again.document, policy)
    assert same.document == again.document, "a second update with the same file changes nothing"
    assert (same.news, same.warnings) == ([], [])
    back = update(before, again.document, policy).document
    assert without_list(back) == without_list(mutate(before, policy, view=KNOWN).document)


def test_changed_list_of_networks_replaces_injected_networks():
    def networks(*names):
        return job({"networks": ", ".join(names)})

    key = ("spec", "mpiReplicaSpecs", "Worker", "template", "metadata", "annotations", NETWORKS)
    _, again = replaced(networks("a", "b"), networks("a", "c"), only("networks"))
    assert at(again.document, key) == "a, c"
    assert update(networks("a", "c"), again.document, only("networks")).document == again.document
    _, fewer = replaced(networks("a", "b"), networks("b"), only("networks"))
    assert at(fewer.document, key) == "b"
    _, more = replaced(networks("a"), networks("a", "b", "c"), only("networks"))
    assert at(more.document, key) == "a, b, c"


def test_value_in_both_the_users_file_and_the_policy_is_restored():
    mine, ours = ({"key": key, "operator": "Exists"} for key in ("mine", "ours"))
    policy = only("tolerations", tolerations=[mine, ours])
    stored = mutate(job(tolerations=[mine]), policy, view=KNOWN).document
    wide = [{"key": "ours", "operator": "Exists", "effect": ""}]
    again = update(job(tolerations=wide), stored, policy)
    assert pod(again.document)["tolerations"] == [*wide, mine]


def test_later_policy_does_not_change_a_stored_job():
    stored = mutate(job(), only("job-timeout", default="24h"), view=KNOWN).document
    later = only("job-timeout", default="48h")
    assert at(update(job(), stored, later).document, DEADLINE) == 86400
    assert at(update(job({"timeout": "24h"}), stored, later).document, DEADLINE) == 86400


def test_invalid_annotation_in_the_new_file_is_reported():
    stored = mutate(job({"timeout": "24h"}), only("job-timeout"), view=KNOWN).document
    again = update(job({"timeout": "soon"}), stored, only("job-timeout"))
    assert again.warnings == [
        'job-timeout: training.openshift.io/timeout "soon" is not a duration like 72h or 7d; 24h applies'
    ]
    assert update(job({"timeout": "soon"}), again.document, only("job-timeout")).warnings == []


@pytest.mark.parametrize("amounts", [{"limits": {"cpu": "50m"}}, {"requests": {"cpu": "50m"}}])
def test_request_and_limit_are_restored_together_or_not_at_all(amounts):
    stored = mutate(job(), only("launcher-resources", when="always"), view=KNOWN).document
    after = job()
    pod(after, "Launcher")["containers"][0]["resources"] = amounts
    for document in (stored, after):
        document["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(job())}
    again = mutate(after, DEFAULTS, "UPDATE", stored=stored).document or after
    launcher_resources = pod(again, "Launcher")["containers"][0]["resources"]
    assert launcher_resources.get("limits", {}).get("cpu") == amounts.get("limits", {}).get("cpu")
    assert launcher_resources.get("requests", {}).get("cpu") == amounts.get("requests", {}).get("cpu")
    assert launcher_resources["requests"]["memory"] == "512Mi"


def test_launcher_creation_policy_is_restored_despite_the_users_probe():
    before = job()
    before["spec"]["launcherCreationPolicy"] = "AtStartup"  # the API server's default
    pod(before)["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 22}}
    _, again = replaced(before, before, only("worker-readiness", enabled=True))
    assert again.document["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"


def test_annotation_beyond_the_size_limit_is_not_injected():
    full = mpijob(metadata={"annotations": {"k": "x" * (256 * 1024 - 11)}})
    document = mutate(full, policy_of({})).document
    assert document["metadata"]["annotations"] == full["metadata"]["annotations"]
    assert document["spec"]["runPolicy"]["activeDeadlineSeconds"]


FORBIDDEN: dict[str, tuple[tuple[Any, ...], Any]] = {
    "host network": ((*WORKER, "hostNetwork"), True),
    "host path": ((*WORKER, "volumes"), [{"name": "root", "hostPath": {"path": "/"}}]),
    "privileged": ((*WORKER, "containers", 0, "securityContext"), {"privileged": True}),
    "escalation": ((*WORKER, "containers", 0, "securityContext"), {"allowPrivilegeEscalation": True}),
    "capability": ((*WORKER, "containers", 0, "securityContext"), {"capabilities": {"add": ["SYS_ADMIN"]}}),
    "environment": (ENV, [{"name": "LD_PRELOAD", "value": "/evil.so"}]),
    "environment from a secret": (ENV, [{"name": "NCCL_DEBUG", "valueFrom": {"secretKeyRef": {"name": "s"}}}]),
    "finalizers": (("metadata", "finalizers"), ["example.com/stay"]),
    "owners": (("metadata", "ownerReferences"), [{"kind": "Node", "name": "n", "uid": "u", "apiVersion": "v1"}]),
    "priority": ((*WORKER, "priorityClassName"), "system-node-critical"),
    "scheduler": ((*WORKER, "schedulerName"), "mine"),
    "service account": ((*WORKER, "serviceAccountName"), "admin"),
    "token": ((*WORKER, "automountServiceAccountToken"), True),
    "GPUs": ((*WORKER, "containers", 0, "resources", "requests"), {"nvidia.com/gpu": "8"}),
    "another list of injections": (("metadata", "annotations"), {INJECTED: '{"rdma": ["/spec 00000000"]}'}),
}


@pytest.mark.parametrize("applied", [False, True], ids=["replaced", "applied"])
@pytest.mark.parametrize("name", list(FORBIDDEN))
def test_value_that_no_injection_writes_is_not_restored(name: str, applied: bool) -> None:
    path, value = FORBIDDEN[name]
    plain = job()
    stored = mutate(plain, DEFAULTS, view=KNOWN).document
    parent = at(stored, path[:-1])
    there = parent.get(path[-1])
    parent[path[-1]] = (
        [*there, *value]
        if isinstance(there, list)
        else {**there, **value}
        if there and isinstance(there, dict)
        else value
    )
    if applied:
        stored["metadata"].setdefault("annotations", {})[LAST_APPLIED] = json.dumps(plain)
    again = update(plain, stored, DEFAULTS).document or plain
    item = value[0] if isinstance(value, list) else value
    assert not isinstance(item, dict) or json.dumps(item) not in json.dumps(again), "the value came back"
    assert mutate(plain, DEFAULTS, view=KNOWN).document["spec"] == again["spec"]
    assert again["metadata"].get(path[-1]) is None or path[0] != "metadata" or path[-1] == "annotations"


def test_forged_list_of_injections_does_not_affect_an_update() -> None:
    stored = mutate(job(), DEFAULTS, view=KNOWN).document
    for forged in ("", "rdma,hostPath", '{"job-timeout": ["/spec/runPolicy/activeDeadlineSeconds 00000000"]}', None):
        annotations = {key: value for key, value in stored["metadata"]["annotations"].items() if key != INJECTED}
        if forged is not None:
            annotations[INJECTED] = forged
        stored["metadata"]["annotations"] = annotations
        new = copy.deepcopy(stored)
        new["metadata"]["annotations"] = {key: value for key, value in annotations.items() if key != INJECTED}
        again = update(new, stored, DEFAULTS)
        assert again.patch == [], "the list of injections that the user removed stays removed"


TAKEN_OUT = {
    # the client, whether the document is from the cluster, whether the value is restored
    "edited": ("kubectl-edit", True, False),
    "patched": ("kubectl-patch", True, False),
    "the output of kubectl get": ("kubectl-replace", True, False),
    "a file": ("kubectl-replace", False, True),
    "another program": ("argocd-controller", True, True),
}


@pytest.mark.parametrize("case", list(TAKEN_OUT))
def test_removed_value_is_restored_unless_kubectl_edits_the_stored_job(case: str) -> None:
    manager, from_the_cluster, comes_back = TAKEN_OUT[case]
    policy = policy_of({"worker-readiness": {"enabled": True, "port": 2222}})
    created = mutate(job(), policy, view=KNOWN).document
    stored = copy.deepcopy(created)
    stored["metadata"]["uid"] = "a1"
    new = copy.deepcopy(stored) if from_the_cluster else copy.deepcopy(created)
    new["metadata"]["labels"] = {}
    del (
        pod(new)["containers"][0]["readinessProbe"],
        pod(new)["volumes"],
        new["spec"]["runPolicy"]["activeDeadlineSeconds"],
    )
    again = mutate(new, policy, "UPDATE", view=KNOWN, stored=stored, manager=manager).document
    assert again["spec"]["runPolicy"] == stored["spec"]["runPolicy"], "the time limit is always restored"
    assert (pod(again).get("volumes") == pod(stored)["volumes"]) == comes_back
    assert ("readinessProbe" in pod(again)["containers"][0]) == comes_back
    assert (again["metadata"]["labels"] == stored["metadata"]["labels"]) == comes_back


WIDE = {
    "tolerations": ("tolerations", {"tolerations": [{"key": "team", "operator": "Exists"}]}),
    "node-selector": ("nodeSelector", {"labels": {"pool": "a"}}),
    "image-pull-secrets": ("imagePullSecrets", {"secrets": ["ours"]}),
}


CLEAN = json.dumps(job())
FILES = {
    # the file applied before, the file applied now, the client, whether the value is restored
    "the same file": (CLEAN, CLEAN, KUBECTL_APPLY, True),
    "another file": (json.dumps(job(hostname="x")), CLEAN, KUBECTL_APPLY, False),
    "a forged file before": ("{}", CLEAN, KUBECTL_APPLY, False),
    "no file before": (None, CLEAN, KUBECTL_APPLY, False),
    "an editor": (CLEAN, CLEAN, "kubectl-edit", False),
    "replaced": (CLEAN, None, "kubectl-replace", False),
    "server side": (None, None, "kubectl", False),
}


@pytest.mark.parametrize("case", list(FILES))
@pytest.mark.parametrize("injection_id", list(WIDE))
def test_value_of_an_older_policy_is_restored_only_if_the_same_file_is_applied(injection_id: str, case: str) -> None:
    """The new policy does not inject the value, so a user may have written the value."""
    before, now, manager, comes_back = FILES[case]
    field, settings = WIDE[injection_id]
    stored, new = mutate(job(), only(injection_id, **settings), view=KNOWN).document, job()
    value = pod(stored)[field]
    for document, file in ((stored, before), (new, now)):
        document["metadata"]["annotations"] = {} if file is None else {LAST_APPLIED: file}
    again = mutate(new, only(injection_id), "UPDATE", view=KNOWN, stored=stored, manager=manager).document or new
    assert (pod(again).get(field) == value) == comes_back


@pytest.mark.parametrize("manager", [KUBECTL_APPLY, "kubectl-edit", "kubectl-replace"])
@pytest.mark.parametrize("forged", ["{}", "[" * 1100, "null", CLEAN])
def test_forged_last_applied_annotation_restores_nothing(forged: str, manager: str) -> None:
    stored = job(tolerations=[{"operator": "Exists"}], nodeSelector={"node-role.kubernetes.io/control-plane": "x"})
    env = [
        {"name": "NCCL_NET_PLUGIN", "value": "/evil.so"},
        {"name": "PRTE_MCA_plm_ssh_args", "value": "-o ProxyCommand=x"},
    ]
    pod(stored, "Launcher")["containers"][0]["env"] = env
    template = stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"annotations": {NETWORKS: "kube-system/evil"}}
    stored["metadata"]["annotations"] = {LAST_APPLIED: forged}
    clean = job()
    clean["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(job(hostname="of-an-administrator"))}
    assert mutate(clean, DEFAULTS, "UPDATE", stored=stored, manager=manager).patch == []


def test_added_workers_get_injections_and_the_launcher_gets_none() -> None:
    alone = job()
    workers = alone["spec"]["mpiReplicaSpecs"].pop("Worker")
    both = copy.deepcopy(alone)
    both["spec"]["mpiReplicaSpecs"]["Worker"] = workers
    again = update(both, alone, DEFAULTS)
    assert again.patch
    assert {str(operation["path"]).split("/")[3] for operation in again.patch} == {"Worker"}
    assert again.document["spec"]["mpiReplicaSpecs"]["Launcher"] == alone["spec"]["mpiReplicaSpecs"]["Launcher"]


def test_debug_mode_of_a_running_job_keeps_its_workers_and_their_time_limit() -> None:
    stored = mutate(job(), DEFAULTS, view=KNOWN).document
    spec = update(job({"debug-mode": "true"}), stored, DEFAULTS).document["spec"]
    assert spec["runPolicy"]["cleanPodPolicy"] == "None"
    assert spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["activeDeadlineSeconds"] == 7 * 86400


def test_time_limit_is_restored_if_the_policy_has_no_default() -> None:
    policy = only("job-timeout", default=None)
    stored = mutate(job({"timeout": "24h"}), policy, view=KNOWN).document
    assert at(update(job(), stored, policy).document, DEADLINE) == 86400


@pytest.mark.parametrize("manager", [KUBECTL_APPLY, "kubectl-replace"])
def test_removed_template_is_not_restored(manager: str) -> None:
    stored = mutate(job(), DEFAULTS, view=KNOWN).document
    new = job()
    del new["spec"]["mpiReplicaSpecs"]["Worker"]
    document = mutate(new, DEFAULTS, "UPDATE", view=KNOWN, stored=stored, manager=manager).document
    assert "Worker" not in document["spec"]["mpiReplicaSpecs"]


def test_value_of_a_skipped_injection_is_not_restored() -> None:
    policy = only("shared-memory")
    stored = mutate(job(), policy, view=KNOWN).document
    back = mutate(job(), policy, "UPDATE", view=KNOWN, stored=stored, manager="kubectl-replace").document
    assert pod(back)["volumes"] == pod(stored)["volumes"]
    skipping = job({"skip": "shared-memory"})
    assert not mutate(skipping, policy, "UPDATE", view=KNOWN, stored=stored, manager="kubectl-replace").patch


@pytest.mark.parametrize("enforced", ["restricted", "privileged"])
@pytest.mark.parametrize("manager", [KUBECTL_APPLY, "kubectl-replace"])
def test_changed_security_context_is_not_restored_in_part(manager: str, enforced: str) -> None:
    """The API server rejects `allowPrivilegeEscalation: false` next to `privileged: true`."""
    policy, new = only("security-context"), job()
    stored = mutate(job(), policy, view=labelled("team", enforce="restricted")).document
    pod(new)["containers"][0]["securityContext"] = {"privileged": True}
    view = labelled("team", enforce=enforced)
    document = mutate(new, policy, "UPDATE", view=view, stored=stored, manager=manager).document or new
    context = pod(document)["containers"][0]["securityContext"]
    assert context["privileged"] is True
    assert "allowPrivilegeEscalation" not in context


def test_status_in_the_file_does_not_count_towards_the_size() -> None:
    """The API server drops the status after the mutating hook, so the status must not make the job too large."""
    for status in ({"conditions": [{"type": "x", "status": "True", "message": "{" * 20_001}]}, [[]] * 800_000):
        big = {**job(), "status": status}
        assert mutate(big, DEFAULTS, view=KNOWN).document["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400
