import pytest

from tests.support.injecting import Example, inject, mpijob

DEBUG = "training.openshift.io/debug-mode"
LOST = "a failed launcher's log is deleted without restartPolicy: Never"
RUNNING = "cleanPodPolicy: Running: workers end with the job"
ALL = "cleanPodPolicy: All: workers are deleted with the job"
NONE = "cleanPodPolicy: None: workers stay after the job"
EXAMPLE = Example({"policy": "All"})


@pytest.mark.parametrize(
    ("run_policy", "added"),
    [
        (None, {"/spec/runPolicy": {"cleanPodPolicy": "Running"}}),
        ({}, {"/spec/runPolicy/cleanPodPolicy": "Running"}),
        ({"cleanPodPolicy": None}, {"/spec/runPolicy/cleanPodPolicy": "Running"}),
        ({"backoffLimit": 2}, {"/spec/runPolicy/cleanPodPolicy": "Running"}),
    ],
)
def test_unset_clean_pod_policy_becomes_running(run_policy, added):
    assert inject("clean-pod-policy", mpijob(run_policy=run_policy)) == (added, [RUNNING, LOST])


@pytest.mark.parametrize("debug", [None, "yes"])
@pytest.mark.parametrize("value", ["None", "All", "Running", "", "running"])
def test_clean_pod_policy_of_the_user_stays(value, debug):
    metadata = {"annotations": {DEBUG: debug}} if debug else {}
    assert inject("clean-pod-policy", mpijob(run_policy={"cleanPodPolicy": value}, metadata=metadata)) == ({}, [LOST])


@pytest.mark.parametrize(("policy", "note"), [("Running", RUNNING), ("All", ALL), ("None", NONE)])
def test_setting_chooses_the_injected_policy(policy, note):
    assert len(f"clean-pod-policy: {note}") <= 120
    expected = ({"/spec/runPolicy": {"cleanPodPolicy": policy}}, [note, LOST])
    assert inject("clean-pod-policy", mpijob(), policy=policy) == expected


@pytest.mark.parametrize("debug", ["yes", "True", ""])
def test_invalid_debug_mode_is_reported(debug):
    added, notes = inject("clean-pod-policy", mpijob(metadata={"annotations": {DEBUG: debug}}))
    assert added == {"/spec/runPolicy": {"cleanPodPolicy": "Running"}}
    assert notes == [RUNNING, f'{DEBUG} "{debug}" is not "true", so it has no effect', LOST]


def test_value_false_of_debug_mode_is_not_reported():
    assert inject("clean-pod-policy", mpijob(metadata={"annotations": {DEBUG: "false"}}))[1] == [RUNNING, LOST]


def test_note_about_the_log_if_the_launcher_loses_it():
    job = mpijob(run_policy={"cleanPodPolicy": "All"})
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]
    launcher["restartPolicy"] = "OnFailure"
    assert inject("clean-pod-policy", job) == ({}, [LOST])
    launcher["restartPolicy"] = "Never"
    assert inject("clean-pod-policy", job) == ({}, [])
    del job["spec"]["mpiReplicaSpecs"]["Launcher"]
    assert inject("clean-pod-policy", job) == ({}, [])


RESTART = "/spec/mpiReplicaSpecs/Launcher/restartPolicy"
LOGS = "set the launcher's restartPolicy: Never, so its failed pods stay with their logs"


def inject_in_debug_mode(restart=None, run_policy=None):
    job = mpijob(metadata={"annotations": {DEBUG: "true"}}, run_policy=run_policy)
    if restart is not None:
        job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = restart
    return inject("clean-pod-policy", job)


def test_debug_mode_keeps_workers_and_the_launchers_log():
    assert inject_in_debug_mode() == ({"/spec/runPolicy": {"cleanPodPolicy": "None"}, RESTART: "Never"}, [NONE, LOGS])
    assert inject_in_debug_mode(run_policy={"cleanPodPolicy": "All"}) == ({RESTART: "Never"}, [LOGS])


def test_restart_policy_of_the_user_stays():
    caution = "the launcher's log is deleted with its pod: set its restartPolicy to Never to keep it"
    assert inject_in_debug_mode("OnFailure", {"cleanPodPolicy": "All"}) == ({}, [caution])
    assert inject_in_debug_mode("Never", {"cleanPodPolicy": "All"}) == ({}, [])


def test_debug_mode_as_a_label_is_reported():
    notes = inject("clean-pod-policy", mpijob(metadata={"labels": {DEBUG: "true"}}))[1]
    assert notes == [f"{DEBUG}: has no effect as a label, make it an annotation", RUNNING, LOST]
