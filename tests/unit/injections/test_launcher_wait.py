"""`launcher-wait`: the launcher's init container waits for the workers. Some tests run its script in real shells."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.injecting import PATHS, Example, hold, inject, mutate, only
from tests.support.jobs import changed
from tests.support.kueue_objects import config, local_queue, namespace
from tests.support.limit_ranges import limit_range
from tests.support.namespaces import labelled
from tests.support.quota_objects import quota
from tests.support.rule_checks import decide
from tests.support.rule_checks import run as judged
from tests.support.waiting_jobs import READINESS, waiting_job
from webhook.cluster.snapshot import Snapshot
from webhook.injections.launcher_wait import SCRIPT

ID = "launcher-wait"
INIT = f"{PATHS['Launcher']}/spec/initContainers"
SCRIPTED = {"command": ["bash", "-c", "prepare; mpirun -np 2 x"]}
OTHER = {"image": "registry.example.com/launcher:1"}
SHOWN = {"ports": [{"containerPort": 2222}]}
QUEUED = {"kueue.x-k8s.io/queue-name": "q"}
NOTE = ["the launcher waits for its workers, for 600 s at most"]


EXAMPLE = Example(job=waiting_job())


def container(mpi_job=None, **settings):
    """The init container that the injection adds."""
    added, notes = inject(ID, mpi_job or waiting_job(), **settings)
    (init_container,) = added[INIT]
    assert len(added) == len(notes) == 1
    return init_container


def test_init_container_has_the_launchers_image_and_the_script():
    assert inject(ID, waiting_job())[1] == NOTE
    assert container() == {
        "name": "wait-for-workers",
        "image": "registry.example.com/mpi:1",
        "command": ["/bin/sh", "-c", SCRIPT, "wait-for-workers", "600"],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": ""}],
        "volumeMounts": [{"name": "mpi-job-config", "mountPath": "/etc/mpi", "readOnly": True}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def test_init_container_has_the_launchers_resources_and_user_but_no_privileges():
    rights = {"runAsUser": 1000, "runAsNonRoot": True, "privileged": True, "capabilities": {"add": ["IPC_LOCK"]}}
    amounts = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi", "nvidia.com/gpu": 1}}
    launcher = {
        "imagePullPolicy": "Always",
        "resources": {**amounts, "claims": [{"name": "gpu"}]},
        "securityContext": rights,
        "env": [{"name": "A", "value": "b"}],
    }
    init_container = container(waiting_job(launcher=launcher))
    assert init_container["imagePullPolicy"] == "Always"
    assert init_container["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    assert init_container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsUser": 1000,
        "runAsNonRoot": True,
    }
    assert [variable["name"] for variable in init_container["env"]] == ["NVIDIA_VISIBLE_DEVICES"]


def container_by_all_injections(mpi_job, view):
    template = hold(mpi_job, view=view).document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    (init_container,) = template["spec"]["initContainers"]
    return init_container


def test_init_container_has_fields_that_other_injections_add():
    without_effect = limit_range("b", {"type": "PersistentVolumeClaim"}, namespace="team")
    requiring = Snapshot([quota({"requests.cpu": "100"}, namespace="team"), without_effect])
    assert container_by_all_injections(waiting_job(), requiring)["resources"] == {"requests": {"cpu": "100m"}}
    default = limit_range("b", {"type": "Container", "default": {"nvidia.com/gpu": "1"}}, namespace="team")
    assert container_by_all_injections(waiting_job(), Snapshot([default]))["resources"]["limits"] == {
        "nvidia.com/gpu": "0"
    }
    rights = container_by_all_injections(waiting_job(), labelled("team", enforce="restricted"))["securityContext"]
    assert (rights["runAsNonRoot"], rights["seccompProfile"]) == (True, {"type": "RuntimeDefault"})


def test_fault_that_the_init_container_copies_is_reported_only_at_the_users_container():
    root = {"Launcher.template.spec.containers.0.securityContext": {"runAsUser": 0}}
    mutated = mutate(changed(root)).document
    assert mutated["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["initContainers"]
    first = "Launcher.template.spec.containers.0"
    user = {"runAsUser": 0, "runAsNonRoot": True}
    faults = {f"{first}.securityContext": user, f"{first}.resources": {"limits": {"memory": "-1Gi"}}}
    faulty = mutate(changed(faults)).document
    decision = decide(faulty)
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
def test_init_container_uses_the_shell_of_the_launcher(command, shell):
    assert container(waiting_job(launcher={"command": command}))["command"][0] == shell


@pytest.mark.parametrize(
    ("fields", "option"),
    [
        ({}, []),
        ({"worker": {"command": ["/usr/sbin/sshd", "-De", "-p", "2222"]}}, ["-p2222"]),
        ({"launcher": {"command": ["deepspeed", "--ssh_port", "2024", "t.py"]}}, ["-p2024"]),
        ({"launcher": {"command": ["horovodrun", "--ssh-port=2024", "x"]}}, ["-p2024"]),
        ({"launcher": {"env": [{"name": "PDSH_SSH_ARGS_APPEND", "value": "-p 2025"}]}}, ["-p2025"]),
        ({"annotation": "2023", "labels": QUEUED}, ["-p2023"]),
    ],
)
def test_script_gets_the_ssh_port_that_the_job_states(fields, option):
    assert container(waiting_job(**fields))["command"][5:] == option


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({}, {}),
        ({"launcher": OTHER | SCRIPTED}, {}),
        ({"launcher": OTHER | SCRIPTED}, {"when": "ownShell"}),
        ({"launcher": {"command": ["bash", "-c", "echo Port check; nc -z db 5432; mpirun x"]}}, {}),
        ({"launcher": {"command": ["mpirun", "python", "train.py", "--min-nodes", "2"]}}, {}),
        ({"launcher": OTHER}, {"when": "always"}),
        ({"labels": QUEUED}, {}),
        ({"run_policy": {"suspend": True}}, {}),
        ({"run_policy": {"suspend": True}, "policy": "WaitForWorkersReady"}, {}),
        ({"run_policy": {"schedulingPolicy": {}}}, {}),
        ({"worker": {"command": ["bash", "-c", "service ssh start; sleep infinity"]}}, {}),
        ({"worker": {"command": ["sh", "-c", "apt-get install -y ssh; /etc/init.d/ssh start; sleep inf"]}}, {}),
        ({"annotation": "true", "launcher": OTHER, "labels": QUEUED}, {}),
        ({"annotation": "2222", "worker": {"command": ["/start.sh"]}, "labels": QUEUED}, {}),
        ({"annotation": "true", "launcher": OTHER}, {}),
        ({"annotation": "true", "policy": "WaitForWorkersReady"}, {}),
        ({"annotation": "true", "worker": SHOWN}, {}),
        ({"annotation": "2222", "launcher": OTHER}, {}),
        ({"launcher": {"resources": {"limits": {"hugepages-2Mi": "1Gi"}}}}, {}),
    ],
)
def test_launcher_waits_for_the_workers(fields, settings):
    assert container(waiting_job(**fields), **settings)["name"] == "wait-for-workers"


def launched(*command):
    return {"launcher": {"command": list(command)}}


AGENT = {"name": "OMPI_MCA_plm_rsh_agent", "value": "/kubexec"}
OPERATOR_WAITS = {"policy": "WaitForWorkersReady"}
NOT_WAITING = {
    "image may have no shell": ({"launcher": OTHER}, {}),
    "no image": ({"launcher": {"image": None}, "worker": {"image": None}}, {}),
    "policy allows only the launcher's own shell": ({}, {"when": "ownShell"}),
    "worker may not start sshd": ({"worker": {"command": ["/start.sh"]}}, {}),
    "no sshd": ({"worker": {"command": ["sleep", "infinity"]}}, {}),
    "no sshd, and the launcher runs a shell": (
        {"worker": {"command": ["python", "train.py"]}, "launcher": SCRIPTED},
        {},
    ),
    "elastic Horovod": (launched("horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "x"), {}),
    "elastic Horovod by --min-np": (launched("horovodrun", "--min-np", "2", "x"), {}),
    "script configures ssh": (launched("sh", "-c", "echo Port 2222 >> ~/.ssh/config; mpirun x"), {}),
    "mounted configuration of ssh": (
        {"launcher": {"volumeMounts": [{"name": "c", "mountPath": "/etc/ssh/ssh_config.d"}]}},
        {},
    ),
    "an agent other than ssh": ({"launcher": {"env": [AGENT]}}, {}),
    "turned off by annotation": ({"annotation": "false"}, {}),
    "turned off by annotation, in a queue": ({"annotation": "false", "labels": QUEUED}, {"when": "always"}),
    "the operator waits": (OPERATOR_WAITS, {}),
    "the operator waits for a probe": (
        {**OPERATOR_WAITS, "annotation": "true", "worker": {"readinessProbe": {"exec": {}}}},
        {},
    ),
    "Windows": ({"pod": {"os": {"name": "windows"}}}, {}),
}


@pytest.mark.parametrize(("fields", "settings"), NOT_WAITING.values(), ids=NOT_WAITING)
def test_launcher_does_not_wait_for_the_workers(fields, settings):
    assert inject(ID, waiting_job(**fields), **settings) == ({}, [])


def test_launcher_with_a_requested_sidecar_does_not_wait():
    mpi_job = waiting_job()
    mpi_job["metadata"]["annotations"]["sidecar.istio.io/inject"] = "true"
    assert inject(ID, mpi_job) == ({}, [])


@pytest.mark.parametrize("worker", [None, {"replicas": 0}, {"replicas": 1}, {"replicas": 1, "template": {"spec": {}}}])
def test_launcher_without_workers_does_not_wait(worker):
    mpi_job = waiting_job()
    mpi_job["spec"]["mpiReplicaSpecs"]["Worker"] = worker
    assert inject(ID, mpi_job) == ({}, [])


def test_init_containers_of_the_user_come_first():
    added, _ = inject(ID, waiting_job(pod={"initContainers": [{"name": "data", "image": "x"}]}))
    assert list(added) == [f"{INIT}/-"]


def test_unknown_queue_does_not_prevent_the_wait():
    for queues in ([], [local_queue("default", "cq", namespace="team")]):
        assert inject(ID, waiting_job("true"), view=Snapshot([config(), namespace("team"), *queues]))[1] == NOTE


@pytest.mark.parametrize(
    ("annotation", "shown"),
    [("yes", "yes"), ("", ""), ("0", "0"), ("65536", "65536"), ("9" * 5000, "999999999...")],
)
def test_invalid_wait_annotation_is_reported(annotation, shown):
    caution = f'{READINESS} "{shown}" is not "true", "false" or a port'
    assert inject(ID, waiting_job(annotation, launcher=OTHER)) == ({}, [caution])
    assert inject(ID, waiting_job(annotation))[1] == [caution, *NOTE]


def test_update_adds_no_init_container():
    stored = waiting_job()
    changed = waiting_job(run_policy={"backoffLimit": 3})
    assert mutate(changed, only(ID), "UPDATE", stored=stored).patch == []


def test_update_does_not_restore_a_privileged_container():
    stored = mutate(waiting_job(), only(ID)).document
    (injected,) = stored["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["initContainers"]
    assert mutate(waiting_job(), only(ID), "UPDATE", stored=stored).patch, "an unchanged init container is restored"
    for change in (
        {"securityContext": {"privileged": True}},
        {"securityContext": {**injected["securityContext"], "privileged": True}},
        {"env": [{"name": "LD_PRELOAD", "value": "x"}]},
        {"command": ["/bin/sh", "-c", "curl x | sh", "wait-for-workers", "600"]},
        {"command": ["/x", *injected["command"][1:]]},
        {"volumeMounts": [{"name": "host", "mountPath": "/etc/mpi"}]},
    ):
        stored["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["initContainers"] = [{**injected, **change}]
        assert mutate(waiting_job(), only(ID), "UPDATE", stored=stored).patch == [], change


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


def run(folder: Path, shell: str, hosts: list[str], *options: str, seconds="20", ssh: str | None = SSH, date=True):
    """Run the script with `hosts` in the hostfile and `ssh` as the program ssh. Return (exit code, output)."""
    (folder / "bin").mkdir()
    for name in ("sleep", "grep", *(["date"] if date else [])):
        (folder / "bin" / name).symlink_to(shutil.which(name) or "")
    if ssh is not None:
        (folder / "bin/ssh").write_text(ssh.format(folder=folder))
        (folder / "bin/ssh").chmod(0o755)
    (folder / "hostfile").write_text("".join(f"{host}\n" for host in hosts))
    script = SCRIPT.replace("/etc/mpi/hostfile", str(folder / "hostfile"))
    program = shutil.which(shell) or ""
    words = [program, *(["sh"] if shell == "busybox" else []), "-c", script, "wait-for-workers", seconds]
    done = subprocess.run(
        [*words, *options],
        env={"PATH": str(folder / "bin")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("end", [" slots=8", ":8", ""])
def test_script_waits_until_every_worker_answers(tmp_path, shell, end):
    hosts = [f"{name}.j.team.svc{end}" for name in ("j-launcher", "j-worker-0", "j-worker-1")]
    code, text = run(tmp_path, shell, hosts, "-p2222")
    assert code == 0
    reason = "ssh: Could not resolve hostname j-worker-1.j.team.svc: Name or service not known"
    assert text == f"waiting for j-worker-1.j.team.svc ({reason})\nevery worker answers\n"
    assert "launcher" not in (tmp_path / "calls").read_text()


@pytest.mark.parametrize("shell", SHELLS)
def test_script_ends_with_success_and_names_the_missing_worker(tmp_path, shell):
    code, text = run(tmp_path, shell, ["j-worker-0.j.team.svc", "j-worker-2.j.team.svc"], seconds="1")
    assert code == 0
    assert text.splitlines()[-1] == (
        "no answer within 1 s from j-worker-2.j.team.svc"
        " (ssh: connect to host j-worker-2.j.team.svc port 22: Connection refused): the launcher starts without"
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_script_stops_at_its_time_limit_and_calls_each_worker_until_it_answers(tmp_path, shell):
    hosts = [f"j-worker-{index}.j.team.svc" for index in range(2, 40)]
    slow = SSH.replace('echo "$host" >>', 'sleep 1; echo "$host" >>')
    run(tmp_path, shell, ["j-worker-0.j.team.svc", *hosts], seconds="2", ssh=slow)
    assert len((tmp_path / "calls").read_text().splitlines()) < len(hosts) / 2
    assert (tmp_path / "calls").read_text().count("j-worker-0") == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_script_ends_at_once_without_ssh(tmp_path, shell):
    code, text = run(tmp_path, shell, ["j-worker-0.j.team.svc"], ssh=None)
    assert (code, text) == (0, "no ssh in this image: the launcher starts at once\n")


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell != "busybox"])  # busybox has its own date
def test_script_without_a_clock_ends(tmp_path, shell):
    code, text = run(tmp_path, shell, ["j-worker-2.j.team.svc"], date=False)
    assert code == 0
    assert text.endswith("the launcher starts without\n")


def test_script_with_an_invalid_time_limit_ends_with_success(tmp_path):
    code, _ = run(tmp_path, "sh", ["j-worker-9.j.team.svc"], seconds="x")
    assert code == 0
