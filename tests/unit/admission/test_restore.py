"""What an update gets back: nothing that speaks against what the job is wanted to be now."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.injecting import DEFAULTS, mpijob, mutate, only, operations_of, policy_of
from tests.support.kueue_objects import namespace
from tests.support.strategies import PROPERTY
from webhook.admission import places
from webhook.api.annotations import INJECTED
from webhook.cluster.resources import watched_resources
from webhook.cluster.snapshot import API_VERSION, KIND, Snapshot

NETWORKS = "k8s.v1.cni.cncf.io/networks"
T = "training.openshift.io/"
COMPLETE: dict[str, Any] = {entry.name: {} for entry in watched_resources()}
KNOWN = Snapshot([{"apiVersion": API_VERSION, "kind": KIND, "known": COMPLETE}, namespace("team")])


def job(annotations=None, **spec):
    found = mpijob(metadata={"annotations": {T + key: value for key, value in (annotations or {}).items()}})
    worker = found["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 8}}
    worker.update(spec)
    return found


def pod(found, role="Worker") -> Any:
    return found["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]


def replaced(before, after, policy):
    stored = mutate(before, policy, view=KNOWN).document
    same = mutate(before, policy, "UPDATE", view=KNOWN, stored=stored)
    assert same.document == stored, "the same file changes nothing"
    return same, mutate(after, policy, "UPDATE", view=KNOWN, stored=stored)


def resources(role, amounts):
    found = job({"rdma": "true"})
    pod(found, role)["containers"][0]["resources"] = amounts
    return found


IN_MESH = job()
IN_MESH["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {
    "annotations": {"sidecar.istio.io/inject": "true"}
}
OWN_SHM = job(volumes=[{"name": "mine", "emptyDir": {}}])
pod(OWN_SHM)["containers"][0]["volumeMounts"] = [{"name": "mine", "mountPath": "/dev/shm/"}]
OWN_ARGS = job()
pod(OWN_ARGS, "Launcher")["containers"][0]["env"] = [{"name": "OMPI_MCA_plm_rsh_args", "value": "-p 2222"}]
RDMA = {"resource": "rdma/ib", "perPod": 1}
WISHES: dict[str, tuple[str, dict[str, Any], Any, Any, str]] = {
    # the injection, its settings, the file before, the file now, what must not come back
    "a service account": ("api-access", {}, job(), job(serviceAccountName="ci"), "Worker/template/spec/automount"),
    "the mesh": ("istio", {}, job(), IN_MESH, "Worker/template/metadata"),
    "another timeout": ("job-timeout", {}, job({"timeout": "24h"}), job({"timeout": "72h"}), "runPolicy"),
    "no end": ("job-timeout", {}, job(), job({"timeout-action": "notify-only"}), "runPolicy"),
    "debugging": ("clean-pod-policy", {}, job(), job({"debug-mode": "true"}), "runPolicy"),
    "no waiting": (
        "worker-readiness",
        {},
        job({"worker-readiness": "true"}),
        job({"worker-readiness": "false"}),
        "spec",
    ),
    "another GPU": ("gpu-nodes", {}, job({"gpu-product": "A100"}), job({"gpu-product": "H100"}), "required"),
    "no RDMA": ("rdma", RDMA, job({"rdma": "true"}), job({"rdma": "false"}), "rdma"),
    "own memory": ("shared-memory", {}, job(), OWN_SHM, "olume"),
    "own arguments": ("mpi-env", {}, job(), OWN_ARGS, "plm_ssh_args"),
    "more devices": (
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
def test_what_the_file_wants_now_wins(wish):
    injection_id, settings, before, after, gone = WISHES[wish]
    outcomes = replaced(before, after, only(injection_id, **settings))
    same, again = ([each for each in operations_of(one) if gone in f"{each[0]} {each[1]}"] for one in outcomes)
    assert same
    assert again == []


def test_what_is_required_comes_back_though_the_wish_is_another():
    policy = only("job-timeout", required="deny")
    _, again = replaced(job({"timeout": "24h"}), job({"timeout": "72h"}), policy)
    assert again.document["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400


@pytest.mark.parametrize("amounts", [{"limits": {"cpu": "50m"}}, {"requests": {"cpu": "50m"}}])
def test_request_and_limit_come_back_as_they_were_or_not_at_all(amounts):
    stored = mutate(job(), only("launcher-resources", when="always"), view=KNOWN).document
    after = job()
    pod(after, "Launcher")["containers"][0]["resources"] = amounts
    again = mutate(after, DEFAULTS, "UPDATE", stored=stored).document or after
    found = pod(again, "Launcher")["containers"][0]["resources"]
    assert found.get("limits", {}).get("cpu") == amounts.get("limits", {}).get("cpu")
    assert found.get("requests", {}).get("cpu") == amounts.get("requests", {}).get("cpu")
    assert found["requests"]["memory"] == "512Mi"


def test_a_probe_of_the_users_own_is_no_reason_to_lose_the_policy():
    before = job({"worker-readiness": "true"})
    before["spec"]["launcherCreationPolicy"] = "AtStartup"  # by the API server
    pod(before)["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 22}}
    _, again = replaced(before, before, only("worker-readiness"))
    assert again.document["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"


def test_an_annotation_that_finds_no_room_is_not_injected():
    full = mpijob(metadata={"annotations": {"k": "x" * (256 * 1024 - 11)}})
    document = mutate(full, policy_of({})).document
    assert document["metadata"]["annotations"] == full["metadata"]["annotations"]
    assert document["spec"]["runPolicy"]["activeDeadlineSeconds"]


POINTERS = st.lists(
    st.sampled_from(
        [
            *("spec", "mpiReplicaSpecs", "Worker", "template", "metadata", "annotations", NETWORKS.replace("/", "~1")),
            *("containers", "tolerations", "resources", "limits", "a", "0", "-", "=", "=x", "name=mpi", "key=a"),
        ]
    ),
    max_size=9,
)


@PROPERTY
@given(POINTERS, st.sampled_from(["", "Worker:", "Launcher:", "Worker:/spec", "/spec"]), st.sampled_from(["a", {}, []]))
def test_no_forged_record_raises(tokens, start, value):
    stored = job(tolerations=[value, {"key": "a"}])
    stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {"annotations": {NETWORKS: "a, b"}}
    for item in (value, {"key": "a"}, {"name": "mpi"}, "a", 8):
        checksum = places.checksum(item)
        paths = [start + "/" + "/".join(tokens), f"Worker:/spec/tolerations/={checksum}", f"{start}/={checksum}"]
        stored["metadata"]["annotations"] = {INJECTED: json.dumps({"istio": [f"{each} {checksum}" for each in paths]})}
        assert mutate(job(tolerations=[{"key": "other"}]), DEFAULTS, "UPDATE", stored=stored).skipped == ""
