"""Launchers that wait for their workers, the permissions of the init container, and its script in real shells."""

import shutil
import subprocess
from datetime import date
from pathlib import Path

import pytest

from tests.support.injecting import PATHS, Example, hold, inject, mpijob, mutate, only, pod_spec
from tests.support.jobs import changed, request
from tests.support.kueue_objects import config, local_queue, namespace
from tests.support.namespaces import labelled
from tests.support.quota_objects import quota
from tests.support.rule_checks import run as judged
from webhook.admission import pipelines
from webhook.admission.pipelines import load_policy
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.injections.launcher_wait import SCRIPT

ID = "launcher-wait"
KEY = "training.openshift.io/worker-readiness"
INIT = f"{PATHS['Launcher']}/spec/initContainers"
SCRIPTED = {"command": ["bash", "-c", "prepare; mpirun -np 2 x"]}
OTHER = {"image": "registry.example.com/launcher:1"}
SHOWN = {"ports": [{"containerPort": 2222}]}
QUEUED = {"kueue.x-k8s.io/queue-name": "q"}
NOTE = ["the launcher waits for its workers, for 600 s at most"]


def job(answer=None, *, labels=None, worker=None, launcher=None, pod=None, **spec):
    """`worker` and `launcher` are fields of the first container, `pod` of the launcher's pod."""
    pods = {}
    for role, fields in (("worker", worker), ("launcher", launcher)):
        pods[role] = {"spec": pod_spec()}
        pods[role]["spec"]["containers"][0] |= fields or {}
    pods["launcher"]["spec"] |= pod or {}
    metadata = {"annotations": {} if answer is None else {KEY: answer}, "labels": labels or {}}
    return mpijob(metadata=metadata, launcherCreationPolicy=spec.pop("policy", "AtStartup"), **pods, **spec)


EXAMPLE = Example(job=job())


def container(given=None, **settings):
    """The init container of the job."""
    added, notes = inject(ID, given or job(), **settings)
    (one,) = added[INIT]
    assert len(added) == len(notes) == 1
    return one


def test_an_init_container_of_the_launchers_image_waits_for_the_workers():
    assert inject(ID, job())[1] == NOTE
    assert container() == {
        "name": "wait-for-workers",
        "image": "registry.example.com/mpi:1",
        "command": ["/bin/sh", "-c", SCRIPT, "wait-for-workers", "600"],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": ""}],
        "volumeMounts": [{"name": "mpi-job-config", "mountPath": "/etc/mpi", "readOnly": True}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def test_it_has_the_launchers_resources_and_user_and_none_of_its_rights():
    rights = {"runAsUser": 1000, "runAsNonRoot": True, "privileged": True, "capabilities": {"add": ["IPC_LOCK"]}}
    amounts = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi", "nvidia.com/gpu": 1}}
    launcher = {
        "imagePullPolicy": "Always",
        "resources": {**amounts, "claims": [{"name": "gpu"}]},
        "securityContext": rights,
        "env": [{"name": "A", "value": "b"}],
    }
    found = container(job(launcher=launcher))
    assert found["imagePullPolicy"] == "Always"
    assert found["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    assert found["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsUser": 1000,
        "runAsNonRoot": True,
    }
    assert [each["name"] for each in found["env"]] == ["NVIDIA_VISIBLE_DEVICES"]


def all_of_them(given, view):
    template = hold(given, view=view).document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    (found,) = template["spec"]["initContainers"]
    return found


def test_resources_and_rights_that_other_injections_add_are_there_too():
    bounds = {"metadata": {"name": "b", "namespace": "team"}, "spec": {"limits": [{"type": "PersistentVolumeClaim"}]}}
    none_is_hidden = {"apiVersion": "v1", "kind": "LimitRange", **bounds}
    stated = Snapshot([quota({"requests.cpu": "100"}, namespace="team"), none_is_hidden])
    assert all_of_them(job(), stated)["resources"] == {"requests": {"cpu": "100m"}}
    gpu = {"limits": [{"type": "Container", "default": {"nvidia.com/gpu": "1"}}]}
    default = {"apiVersion": "v1", "kind": "LimitRange", **bounds, "spec": gpu}
    assert all_of_them(job(), Snapshot([default]))["resources"]["limits"] == {"nvidia.com/gpu": "0"}
    rights = all_of_them(job(), labelled("team", enforce="restricted"))["securityContext"]
    assert (rights["runAsNonRoot"], rights["seccompProfile"]) == (True, {"type": "RuntimeDefault"})


def test_copied_fault_is_reported_at_the_user_field():
    root = {"Launcher.template.spec.containers.0.securityContext": {"runAsUser": 0}}
    mutated = mutate(changed(root)).document
    assert mutated["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["initContainers"]
    first = "Launcher.template.spec.containers.0"
    user = {"runAsUser": 0, "runAsNonRoot": True}
    faults = {f"{first}.securityContext": user, f"{first}.resources": {"limits": {"memory": "-1Gi"}}}
    faulty = mutate(changed(faults)).document
    decision = pipelines.validate(request(faulty), policy=load_policy(None), view=NothingKnown(), today=date.min)
    paths = [finding.violation.path for finding in (*decision.denied, *decision.warned)]
    assert len([path for path in paths if path.endswith(("runAsUser", "[memory]"))]) == 2
    assert not [path for path in paths if "initContainers" in path]
    (violation, *_) = judged("pod-security", mutated, view=labelled("team-a", enforce="restricted"))
    assert violation.path.endswith("[Launcher].template.spec.containers[0].securityContext.runAsUser")


@pytest.mark.parametrize(
    ("command", "shell"),
    [
        (["bash", "-c", "mpirun x"], "bash"),
        (["/usr/bin/dash", "-c", "mpirun x"], "/usr/bin/dash"),
        (["sh", "/run.sh"], "sh"),
        (["tini", "--", "/bin/bash", "-c", "mpirun x"], "/bin/bash"),
        (["timeout", "1h", "bash", "-c", "mpirun x"], "bash"),
        (["zsh", "-c", "mpirun x"], "/bin/sh"),
        (["mpirun", "x"], "/bin/sh"),
        (None, "/bin/sh"),
    ],
)
def test_the_shell_is_the_launchers_own(command, shell):
    assert container(job(launcher={"command": command}))["command"][0] == shell


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({}, []),
        ({"worker": {"command": ["/usr/sbin/sshd", "-De", "-p", "2222"]}}, ["-p2222"]),
        ({"launcher": {"command": ["mpirun", "-mca", "plm_rsh_args", "-p 2022", "x"]}}, ["-p2022"]),
        ({"worker": {"ports": [{"containerPort": 2222}]}}, ["-p2222"]),
        ({"answer": "2023", "labels": QUEUED}, ["-p2023"]),
    ],
)
def test_the_port_is_the_one_that_the_job_shows(given, option):
    assert container(job(**given))["command"][5:] == option


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({}, {}),
        ({"launcher": OTHER | SCRIPTED}, {}),
        ({"launcher": OTHER | SCRIPTED}, {"when": "ownShell"}),
        ({"launcher": OTHER | {"command": ["tini", "--", "bash", "-c", "mpirun x"]}}, {}),
        ({"launcher": {"command": ["bash", "-c", "echo Port check; nc -z db 5432; mpirun x"]}}, {}),
        ({"launcher": {"command": ["mpirun", "python", "train.py", "--min-nodes", "2"]}}, {}),
        ({"launcher": OTHER}, {"when": "always"}),
        ({"labels": QUEUED}, {}),
        ({"run_policy": {"suspend": True}}, {}),
        ({"run_policy": {"suspend": True}, "policy": "WaitForWorkersReady"}, {}),
        ({"run_policy": {"schedulingPolicy": {}}}, {}),
        ({"worker": {"command": ["bash", "-c", "service ssh start; sleep infinity"]}}, {}),
        ({"worker": {"command": ["sh", "-c", "apt-get install -y ssh; /etc/init.d/ssh start; sleep inf"]}}, {}),
        ({"answer": "true", "launcher": OTHER, "labels": QUEUED}, {}),
        ({"answer": "true", "launcher": OTHER, "run_policy": {"schedulingPolicy": {}}}, {}),
        ({"answer": "2222", "worker": {"command": ["/start.sh"]}, "labels": QUEUED}, {}),
        ({"answer": "true", "launcher": OTHER}, {}),
        ({"answer": "true", "policy": "WaitForWorkersReady"}, {}),
        ({"answer": "true", "worker": SHOWN}, {}),
        ({"answer": "2222", "launcher": OTHER}, {}),
        ({"launcher": {"resources": {"limits": {"hugepages-2Mi": "1Gi"}}}}, {}),
    ],
)
def test_launchers_that_wait(given, settings):
    assert container(job(**given), **settings)["name"] == "wait-for-workers"


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        pytest.param({"launcher": OTHER}, {}, id="whether the image has a shell is not known"),
        pytest.param({"launcher": {"image": None}, "worker": {"image": None}}, {}, id="nor without an image"),
        pytest.param({}, {"when": "ownShell"}, id="the policy counts on own shells only"),
        pytest.param({"worker": {"command": ["/start.sh"]}}, {}, id="the image may start anything"),
        pytest.param({"worker": {"command": ["sleep", "infinity"]}}, {}, id="no sshd"),
        pytest.param({"worker": {"command": ["python", "train.py"]}, "launcher": SCRIPTED}, {}, id="no sshd, a shell"),
        pytest.param(
            {"launcher": {"command": ["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "x"]}},
            {},
            id="elastic",
        ),
        pytest.param({"launcher": {"command": ["horovodrun", "--min-np", "2", "x"]}}, {}, id="elastic, by its size"),
        pytest.param(
            {"launcher": {"command": ["sh", "-c", "echo Port 2222 >> ~/.ssh/config; mpirun x"]}}, {}, id="own port"
        ),
        pytest.param(
            {"launcher": {"volumeMounts": [{"name": "c", "mountPath": "/etc/ssh/ssh_config.d"}]}}, {}, id="mounted"
        ),
        pytest.param(
            {"launcher": {"env": [{"name": "OMPI_MCA_plm_rsh_agent", "value": "/kubexec"}]}}, {}, id="no ssh at all"
        ),
        pytest.param({"answer": "false"}, {}, id="turned off"),
        pytest.param({"answer": "false", "labels": QUEUED}, {"when": "always"}, id="turned off in a queue"),
        pytest.param({"policy": "WaitForWorkersReady"}, {}, id="the operator waits"),
        pytest.param(
            {"policy": "WaitForWorkersReady", "answer": "true", "worker": {"readinessProbe": {"exec": {}}}},
            {},
            id="the operator waits for a probe",
        ),
        pytest.param({"pod": {"os": {"name": "windows"}}}, {}, id="Windows"),
    ],
)
def test_launchers_that_do_not_wait(given, settings):
    assert inject(ID, job(**given), **settings) == ({}, [])


def test_no_wait_with_a_requested_sidecar():
    given = job()
    given["metadata"]["annotations"]["sidecar.istio.io/inject"] = "true"
    assert inject(ID, given) == ({}, [])


@pytest.mark.parametrize("worker", [None, {"replicas": 0}, {"replicas": 1}, {"replicas": 1, "template": {"spec": {}}}])
def test_no_wait_without_workers(worker):
    given = job()
    given["spec"]["mpiReplicaSpecs"]["Worker"] = worker
    assert inject(ID, given) == ({}, [])


def test_init_containers_of_the_user_come_first():
    given = job(pod={"initContainers": [{"name": "data", "image": "x"}]})
    added, _ = inject(ID, given)
    assert list(added) == [f"{INIT}/-"]


def test_unknown_queue_does_not_prevent_the_wait():
    for objects in (
        [config(), namespace("team")],
        [config(), namespace("team"), local_queue("default", "cq", namespace="team")],
    ):
        assert inject(ID, job("true"), view=Snapshot(objects))[1] == NOTE


@pytest.mark.parametrize(
    ("answer", "shown"),
    [("yes", "yes"), ("", ""), ("0", "0"), ("65536", "65536"), ("9" * 5000, "999999999...")],
)
def test_invalid_wait_annotation_is_reported(answer, shown):
    caution = f'{KEY} "{shown}" is not "true", "false" or a port'
    assert inject(ID, job(answer, launcher=OTHER)) == ({}, [caution])
    assert inject(ID, job(answer))[1] == [caution, *NOTE]


def test_an_update_adds_no_container_to_a_job_that_has_none():
    stored = job()
    changed = job(run_policy={"backoffLimit": 3})
    assert mutate(changed, only(ID), "UPDATE", stored=stored).patch == []


def test_update_does_not_restore_a_privileged_container():
    stored = mutate(job(), only(ID)).document
    (one,) = stored["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["initContainers"]
    assert mutate(job(), only(ID), "UPDATE", stored=stored).patch, "what is injected comes back"
    for change in (
        {"securityContext": {"privileged": True}},
        {"securityContext": {**one["securityContext"], "privileged": True}},
        {"env": [{"name": "LD_PRELOAD", "value": "x"}]},
        {"command": ["/bin/sh", "-c", "curl x | sh", "wait-for-workers", "600"]},
        {"command": ["/x", *one["command"][1:]]},
        {"volumeMounts": [{"name": "host", "mountPath": "/etc/mpi"}]},
    ):
        kept = {**one, **change}
        stored["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["initContainers"] = [kept]
        assert mutate(job(), only(ID), "UPDATE", stored=stored).patch == [], change


SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
SSH = """#!/bin/sh
for host; do case $host in *.svc) break ;; esac; done
echo "$host" >>{folder}/calls
count=$(grep -c "^$host" {folder}/calls)
case $host in
  *-worker-0.*) echo "Host key verification failed." >&2; exit 255 ;;
  *-worker-1.*) [ "$count" -gt 2 ] || echo "ssh: Could not resolve hostname $host: Name or service not known" >&2 ;;
  *) echo "ssh: connect to host $host port 22: Connection refused" >&2 ;;
esac
exit 255
"""


def run(folder: Path, shell: str, hosts: list[str], *, seconds: str = "20", option: str = "", ssh: str | None = SSH):
    """Runs the script with a hostfile and an ssh from the test."""
    (folder / "bin").mkdir()
    for name in ("date", "sleep", "grep"):
        (folder / "bin" / name).symlink_to(shutil.which(name) or "")
    if ssh is not None:
        (folder / "bin/ssh").write_text(ssh.format(folder=folder))
        (folder / "bin/ssh").chmod(0o755)
    (folder / "hostfile").write_text("".join(f"{host}\n" for host in hosts))
    script = SCRIPT.replace("/etc/mpi/hostfile", str(folder / "hostfile"))
    program = shutil.which(shell) or ""
    words = [program, *(["sh"] if shell == "busybox" else []), "-c", script, "wait-for-workers", seconds]
    done = subprocess.run(
        [*words, *([option] if option else [])],
        env={"PATH": str(folder / "bin")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("end", [" slots=8", ":8", ""])
def test_the_script_waits_for_names(tmp_path, shell, end):
    hosts = [f"{name}.j.team.svc{end}" for name in ("j-launcher", "j-worker-0", "j-worker-1")]
    code, text = run(tmp_path, shell, hosts, option="-p2222")
    assert code == 0
    why = "ssh: Could not resolve hostname j-worker-1.j.team.svc: Name or service not known"
    assert text == f"waiting for j-worker-1.j.team.svc ({why})\nevery worker answers\n"
    assert "launcher" not in (tmp_path / "calls").read_text()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_gives_up_by_name_and_without_failing(tmp_path, shell):
    code, text = run(tmp_path, shell, ["j-worker-0.j.team.svc", "j-worker-2.j.team.svc"], seconds="1")
    assert code == 0
    assert text.splitlines()[-1] == (
        "no answer within 1 s from j-worker-2.j.team.svc"
        " (ssh: connect to host j-worker-2.j.team.svc port 22: Connection refused): the launcher starts without"
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_tries_each_worker_until_it_answers_and_no_longer_than_its_time(tmp_path, shell):
    hosts = [f"j-worker-{index}.j.team.svc" for index in range(2, 40)]
    slow = SSH.replace('echo "$host" >>', 'sleep 1; echo "$host" >>')
    run(tmp_path, shell, ["j-worker-0.j.team.svc", *hosts], seconds="2", ssh=slow)
    assert len((tmp_path / "calls").read_text().splitlines()) < len(hosts) / 2
    assert (tmp_path / "calls").read_text().count("j-worker-0") == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_without_ssh_or_a_hostfile_the_launcher_starts_at_once(tmp_path, shell):
    code, text = run(tmp_path, shell, ["j-worker-0.j.team.svc"], ssh=None)
    assert (code, text) == (0, "no ssh in this image: the launcher starts at once\n")
    (tmp_path / "hostfile").unlink()


def test_a_script_without_a_clock_does_not_fail(tmp_path):
    code, _ = run(tmp_path, "sh", ["j-worker-9.j.team.svc"], seconds="x")
    assert code == 0
