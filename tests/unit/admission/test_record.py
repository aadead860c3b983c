"""What was injected is recorded on the job: an update brings back that, and nothing else."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.injecting import DEFAULTS, everything_on, mpijob, mutate, only, operations_of, pod_spec, policy_of
from tests.support.strategies import COMPLETE, PROPERTY, json_values
from webhook.admission import places, record
from webhook.api.annotations import INJECTED
from webhook.kit.patch import MAX_ANNOTATIONS

SECRETS = only("image-pull-secrets", secrets=["ours"])
LAUNCHER = "/spec/mpiReplicaSpecs/Launcher/template/spec"


def annotations(job):
    return job["metadata"].setdefault("annotations", {})


def pod(job, role="Launcher"):
    return job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]


def update(new, old, policy=DEFAULTS):
    return mutate(new, policy, "UPDATE", stored=old)


def created(job=None, policy=DEFAULTS):
    return mutate(mpijob() if job is None else job, policy).document


def test_the_record_of_a_plain_job():
    places = json.loads(annotations(created(policy=only("api-access")))[INJECTED])
    assert places == {
        "api-access": [
            "Launcher:/spec/automountServiceAccountToken 2bcd6830",
            "Worker:/spec/automountServiceAccountToken 2bcd6830",
        ]
    }


def test_items_of_lists_are_known_by_their_names():
    toleration = {"key": "gpu", "operator": "Exists"}
    both = policy_of(
        {
            **{entry.id: {"enabled": False} for entry, _ in DEFAULTS.injections},
            "image-pull-secrets": {"enabled": True, "secrets": ["ours"]},
            "mpi-env": {"enabled": True},
            "tolerations": {"enabled": True, "tolerations": [toleration]},
        }
    )
    job = mpijob(mpiImplementation="MPICH")
    del job["spec"]["mpiReplicaSpecs"]["Worker"]
    places = json.loads(annotations(created(job, both))[INJECTED])
    shown = {author: [place.partition(" ")[0] for place in found] for author, found in places.items()}
    assert shown == {
        "image-pull-secrets": ["Launcher:/spec/imagePullSecrets/name=ours"],
        "mpi-env": ["Launcher:/spec/containers/name=mpi/env/name=HYDRA_LAUNCHER_EXTRA_ARGS"],
        "tolerations": ["Launcher:/spec/tolerations/-"],
    }


def test_applying_the_file_again_changes_nothing_under_any_later_policy():
    stored = created(policy=everything_on())
    kept = copy.deepcopy(mpijob())
    annotations(kept)[INJECTED] = annotations(stored)[INJECTED]  # a three-way merge leaves the record alone
    for policy in (everything_on(), DEFAULTS, policy_of({"job-timeout": {"default": "48h"}})):
        assert update(kept, stored, policy).document == stored
        assert update(mpijob(), stored, policy).document == stored, "the record itself comes back too"


def test_a_job_without_a_record_gets_nothing():
    stored = created()
    del annotations(stored)[INJECTED]
    assert update(mpijob(), stored, everything_on()).patch == []


def test_what_is_the_users_own_stays_away_once_it_is_taken_out():
    job = mpijob(launcher={"spec": pod_spec(imagePullSecrets=[{"name": "ours"}])})
    stored = created(job, SECRETS)
    assert operations_of(update(mpijob(), stored, SECRETS)) == [
        ("/spec/mpiReplicaSpecs/Worker/template/spec/imagePullSecrets", [{"name": "ours"}])
    ]


def test_what_the_user_changed_is_no_longer_ours():
    stored = created()
    stored["spec"]["runPolicy"]["cleanPodPolicy"] = "All"
    pod(stored)["containers"][0]["env"][0]["value"] = "/mine"
    again = update(mpijob(), stored).document
    assert "cleanPodPolicy" not in again["spec"]["runPolicy"]
    assert [variable["name"] for variable in pod(again)["containers"][0]["env"]] == ["PRTE_MCA_plm_ssh_args"]


def test_the_users_new_value_wins():
    new = mpijob(run_policy={"cleanPodPolicy": "None"})
    pod(new)["containers"][0]["env"] = [{"name": "PRTE_MCA_plm_ssh_args", "value": "mine"}]
    again = update(new, created()).document
    assert again["spec"]["runPolicy"]["cleanPodPolicy"] == "None"
    assert pod(again)["containers"][0]["env"][0]["value"] == "mine"
    assert len(pod(again)["containers"][0]["env"]) == 2


def test_a_container_is_found_wherever_it_stands():
    job = mpijob(launcher={"spec": {"containers": [{"name": "mpi"}, {"name": "log"}]}})
    new = mpijob(launcher={"spec": {"containers": [{"name": "log"}, {"name": "new"}, {"name": "mpi"}]}})
    containers = {one["name"]: one for one in pod(update(new, created(job)).document)["containers"]}
    assert containers["new"] == {"name": "new"}
    assert len(containers["mpi"]["env"]) == 2
    assert "env" not in containers["log"]
    assert "securityContext" in containers["log"]


def test_what_has_lost_its_place_is_let_go():
    new = mpijob()
    pod(new)["containers"] = [{"name": "other"}]
    assert pod(update(new, created()).document)["containers"] == [{"name": "other"}]
    pod(new)["containers"] = None
    assert pod(update(new, created()).document)["containers"] is None


def test_who_asks_to_go_without_gets_it_no_more():
    new = mpijob(metadata={"annotations": {"training.openshift.io/skip": "istio, labels"}})
    again = update(new, created())
    assert {"istio", "labels"}.isdisjoint(again.authors)
    assert "clean-pod-policy" in again.authors


def test_a_second_round_adds_to_the_record():
    first = created(policy=only("istio"))
    second = created(first, only("api-access"))
    assert list(json.loads(annotations(second)[INJECTED])) == ["istio", "api-access"]
    assert update(mpijob(), second).document == second


def test_of_a_record_that_a_file_brings_along_only_what_holds_is_kept():
    forged = {"istio": ["/spec/nothing 00000000", "/metadata/name 00000000"], "x": ["/metadata/name 00000000"]}
    job = mpijob(metadata={"annotations": {INJECTED: json.dumps(forged)}})
    assert list(json.loads(annotations(created(job, only("api-access")))[INJECTED])) == ["api-access"]
    assert mutate(created(job), DEFAULTS).patch == []


FORGED = [
    "",
    "{}",
    "[]",
    "null",
    "1",
    '"x"',
    "{",
    '{"istio":{}}',
    '{"istio":[1]}',
    '{"istio":["",  " ", "/", "//", "Launcher:", "Worker:x", "~", "/a/-1 0", "/a/99999999999999999999 0"]}',
    '{"istio":["/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0 ", "Launcher:/spec/containers/=x 0"]}',
    "[" * 5000,
    '{"a":' * 1000,
    "x" * 300_000,
    '{"istio":["/metadata/annotations"]}',
]


@pytest.mark.parametrize("text", FORGED, ids=range(len(FORGED)))
def test_a_forged_record_does_no_harm(text):
    stored = created()
    annotations(stored)[INJECTED] = text
    assert operations_of(update(mpijob(), stored)) == []
    job = mpijob(metadata={"annotations": {INJECTED: text}})
    assert update(job, created()).document["metadata"]["annotations"][INJECTED] == text, "the user's own stays"


def signed(value):
    return places.checksum(value)


@PROPERTY
@given(
    st.lists(st.sampled_from(["spec", "metadata", "name", "containers", "0", "-", "name=mpi", "env", "a"])),
    json_values(),
)
def test_a_record_with_good_checksums_brings_back_only_what_the_stored_job_has(tokens, value):
    stored = mpijob(launcher={"spec": pod_spec(tolerations=[value])})
    place = "/" + "/".join(tokens)
    paths = {place: value, f"Launcher:/spec{place}": value, "Launcher:/spec/tolerations/-": value, "/a/b": 1}
    annotations(stored)[INJECTED] = json.dumps({"istio": [f"{path} {signed(found)}" for path, found in paths.items()]})
    again = update(mpijob(), stored)
    assert again.skipped == ""
    for path, added in operations_of(again):
        assert (path, added) == (f"{LAUNCHER}/tolerations", [value])


def test_a_forged_author_is_no_label_of_a_metric():
    stored = created(policy=only("api-access"))
    annotations(stored)[INJECTED] = annotations(stored)[INJECTED].replace("api-access", "x" * 99)
    assert set(update(mpijob(), stored).authors) == {"retired"}


def test_the_record_is_bounded():
    spec = {"containers": [{"name": f"{number:03}" + "c" * 60} for number in range(50)]}
    stored = created(mpijob(worker={"spec": spec}))
    assert record.MAX_BYTES - 100 < len(annotations(stored)[INJECTED]) <= record.MAX_BYTES
    labels = {f"l{number}": "" for number in range(500)}
    stored = created(policy=only("labels", job=labels))
    assert len(record.read(stored)) == record.MAX_PLACES


@pytest.mark.parametrize("free", [0, 60, 200, 500, 20_000])
def test_a_job_is_not_refused_for_its_record(free):
    others = {"a": "x" * (MAX_ANNOTATIONS - free - 1)}
    job = created(mpijob(metadata={"annotations": others}), only("security-context"))
    total = sum(len(key) + len(value) for key, value in annotations(job).items())
    assert total <= MAX_ANNOTATIONS
    assert (INJECTED in annotations(job)) == (free >= 200)


def test_the_complete_job():
    stored = created(COMPLETE, everything_on())
    assert update(COMPLETE, stored).document == stored


def readiness(probe=None, policy="AtStartup"):
    job = mpijob(metadata={"annotations": {"training.openshift.io/worker-readiness": "2222"}})
    job["spec"]["launcherCreationPolicy"] = policy
    if probe:
        pod(job, "Worker")["containers"][0]["readinessProbe"] = probe
    return job


def test_a_default_of_the_schema_is_a_loss_beside_another_one():
    stored = created(readiness(), only("worker-readiness"))
    assert stored["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"
    assert update(readiness(), stored).document == stored
    edited = copy.deepcopy(stored)
    edited["spec"]["launcherCreationPolicy"] = "AtStartup"
    assert update(edited, stored).patch == []


def test_what_was_injected_as_one_comes_back_as_one_or_not_at_all():
    stored = created(readiness(), only("worker-readiness"))
    own = {"exec": {"command": ["true"]}}
    again = update(readiness(own, "WaitForWorkersReady"), stored).document
    assert pod(again, "Worker")["containers"][0]["readinessProbe"] == own
