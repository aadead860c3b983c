"""The rule `ssh-paths` checks combinations of user, sshAuthMountPath, fsGroup and capabilities."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import openshift
from tests.support.any_job import Json
from tests.support.jobs import REMOVE, changed
from tests.support.namespaces import labelled
from tests.support.nodes import node
from tests.support.paths import EXAMPLES as EXAMPLES_FOLDER
from tests.support.rule_checks import as_texts, fits_a_warning, run, violations
from webhook.admission.limits import MAX_WARNING_CHARACTERS
from webhook.admission.messages import Finding
from webhook.api import yaml
from webhook.cluster.snapshot import Snapshot
from webhook.rules import Violation

EXAMPLES = sorted(EXAMPLES_FOLDER.rglob("*.yaml"))
HOME = "/home/mpiuser/.ssh"
SSHD = {"Worker.template.spec.containers.0.command": ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]}
SHELL = {"Launcher.template.spec.containers.0.command": ["/run.sh"]}
FIELD = "spec.sshAuthMountPath"
LAUNCHER = "spec.mpiReplicaSpecs[Launcher].template.spec"
WORKER = "spec.mpiReplicaSpecs[Worker].template.spec"
CONTEXT = f"{WORKER}.containers[0].securityContext"
BOTH = "(Launcher and Worker)"
NO_COMMAND = f"(advice) {WORKER}.containers[0].command: is missing, so the sshd of root starts"
NO_BIND_SERVICE = f"(advice) {CONTEXT}.capabilities.add: has no NET_BIND_SERVICE, without which "


def job(path: str = "/root/.ssh", /, **contexts: Json) -> Json:
    """Changes that set this mount path and make the workers start sshd.

    The contexts `launcher` and `worker` are for the containers, `launcher_pod` and `worker_pod` for the pods.
    """
    changes: Json = {"spec.sshAuthMountPath": path, **SSHD, **SHELL}
    for who, context in contexts.items():
        role, _, pod = who.partition("_")
        changes[f"{role.title()}.template.spec.{'' if pod else 'containers.0.'}securityContext"] = context
    return changes


def both(path: str = "/root/.ssh", /, **context: Any) -> Json:
    return job(path, launcher=context, worker=context)


def check(changes: Json) -> list[str]:
    return as_texts(violations("ssh-paths", changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},  # the image decides who the user is
        {"spec.sshAuthMountPath": REMOVE},
        {"spec.sshAuthMountPath": HOME},
        both(runAsUser=0),
        both(HOME, runAsUser=1000),
        both(HOME, runAsNonRoot=True),
        job(HOME, launcher={"runAsUser": 1000}, worker={"runAsUser": 0}),  # an sshd of root accepts every user
        job(launcher_pod={"runAsUser": 1000}, launcher={"runAsUser": 0}),  # the container's user overrides the pod's
        job(launcher_pod={"runAsNonRoot": True}, launcher={"runAsNonRoot": False}),
        job(worker_pod={"fsGroup": 1337}),  # the group may read authorized_keys
        both(HOME, runAsUser=1000, capabilities={"add": ["NET_BIND_SERVICE"]}),
        both(HOME, runAsUser=1000, capabilities={"drop": ["all"], "add": ["cap_net_bind_service"]}),
        both(runAsUser=0, capabilities={"drop": ["NET_RAW"], "add": ["IPC_LOCK"]}),
        both(runAsUser=0, capabilities={"drop": ["ALL"], "add": ["SETGID", "SETUID", "SYS_CHROOT"]}),
        both(runAsUser=0, capabilities={"drop": ["ALL"], "add": ["ALL"]}),
        {**both(runAsUser=0, capabilities={"drop": ["ALL"]}), "Worker.template.spec.containers.0.command": ["train"]},
        {"Worker": REMOVE, **{key: value for key, value in both(runAsUser=1000).items() if "Worker" not in key}},
        {"Worker.template.spec": REMOVE},
    ],
)
def test_working_or_uncertain_combination_is_accepted(changes: Json) -> None:
    assert check(changes) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # The user is root.
        (
            both("/root/.ssh/", runAsUser=0),
            f'{FIELD}: the launcher runs as root: ssh then takes no key from "/root/.ssh/"',
        ),
        (
            both(HOME, runAsUser=0),
            f'(advice) {FIELD}: the launcher runs as root: ssh then takes no key from "{HOME}"',
        ),
        (
            job(launcher_pod={"runAsUser": 0, "fsGroup": 1337}),
            f"{LAUNCHER}.securityContext.fsGroup: gives a group the ",
        ),
        (
            job(launcher_pod={"fsGroup": 0}),
            f"(advice) {LAUNCHER}.securityContext.fsGroup: gives a group the key of the",
        ),
        ({FIELD: "/root/.ssh/id_rsa"}, f'(advice) {FIELD}: "/root/.ssh/id_rsa" is a file, not the folder of the keys'),
        # The user is not root.
        (both(runAsUser=1000), f'{FIELD}: "/root/.ssh" cannot be read by user 1000, only by root {BOTH}'),
        (job(worker={"runAsUser": 1000}), f'{FIELD}: "/root/.ssh" cannot be read by user 1000, only by root (Worker)'),
        (
            both("/root/.ssh/", runAsUser=1000),
            f'(advice) {FIELD}: "/root/.ssh/" is not for user 1000: other users can rarely read /root {BOTH}',
        ),
        (
            job(launcher_pod={"runAsUser": 1000, "fsGroup": 1000}),
            f'(advice) {FIELD}: "/root/.ssh" is not for user 1000: other users can rarely read /root (Launcher)',
        ),
        (both(runAsNonRoot=True), f'(advice) {FIELD}: "/root/.ssh" is for root, and runAsNonRoot is set {BOTH}'),
        (
            job(launcher_pod={"runAsNonRoot": True, "fsGroup": 1000}),
            f'(advice) {FIELD}: "/root/.ssh" is for root, and runAsNonRoot is set (Launcher)',
        ),
        # The roles have different users.
        (
            job(HOME, launcher={"runAsUser": 1000}, worker={"runAsUser": 1001}),
            f"(advice) {CONTEXT}.runAsUser: sshd of user 1001 accepts only that user, the ",
        ),
        # The workers' sshd.
        ({**both(HOME, runAsUser=1000), "Worker.template.spec.containers.0.command": REMOVE}, NO_COMMAND),
        ({**both(HOME, runAsNonRoot=True), "Worker.template.spec.containers.0.command": []}, NO_COMMAND),
        (both(HOME, runAsUser=1000, capabilities={"drop": ["ALL"]}), NO_BIND_SERVICE),
        (both(HOME, runAsNonRoot=True, capabilities={"drop": ["NET_BIND_SERVICE"]}), NO_BIND_SERVICE),
        (
            both(runAsUser=0, capabilities={"drop": ["ALL"], "add": ["SETUID"]}),
            f"{CONTEXT}.capabilities.drop: drops what sshd of root needs: SETGID, SYS_CHROOT",
        ),
        (
            both(capabilities={"drop": ["CAP_SYS_CHROOT"]}),
            f"(advice) {CONTEXT}.capabilities.drop: drops what sshd of root needs: SYS_CHROOT",
        ),
    ],
)
def test_broken_combination_is_rejected(changes: Json, expected: str) -> None:
    (violation,) = check(changes)
    assert violation.startswith(expected)


@pytest.mark.parametrize("path", [".ssh", "~/.ssh"])
def test_relative_path_for_the_key_is_rejected(path: str) -> None:
    [found] = violations("ssh-paths", {"spec.sshAuthMountPath": path})
    assert (found.path, found.advisory) == ("spec.sshAuthMountPath", False)
    assert found.fix == "Set it to /root/.ssh, or /home/USER/.ssh where the job runs as another user."


def test_all_faults_are_reported() -> None:
    changes = job(launcher={"runAsUser": 0}, worker={"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}})
    changes["Worker.template.spec.containers.0.command"] = REMOVE
    assert [violation.partition(": ")[0] for violation in check(changes)] == [
        FIELD,
        f"(advice) {CONTEXT}.runAsUser",
        f"(advice) {WORKER}.containers[0].command",
        f"(advice) {CONTEXT}.capabilities.add",
    ]


RESTRICTED = labelled("team-a", enforce="restricted")
NOT_AS_ROOT = "but this namespace starts nothing as root"
AS_ROOT_IN_RESTRICTED = f"{LAUNCHER}.containers[0]: runs mpirun as root, {NOT_AS_ROOT}"
BY_VARIABLE = [{"name": "OMPI_ALLOW_RUN_AS_ROOT", "value": "1"}]
IN_SCRIPT = ["bash", "-c", "mpirun --allow-run-as-root -np 4 x"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, f'{FIELD}: "/root/.ssh" is for root, {NOT_AS_ROOT}'),
        ({"Launcher": REMOVE}, f'{FIELD}: "/root/.ssh" is for root, {NOT_AS_ROOT}'),
        ({"Launcher.template.spec.containers.0.command": IN_SCRIPT}, AS_ROOT_IN_RESTRICTED),
        ({"Launcher.template.spec.containers.0.env": BY_VARIABLE}, AS_ROOT_IN_RESTRICTED),
    ],
)
def test_image_that_runs_as_root_in_a_restricted_namespace_causes_one_warning(changes: Json, expected: str) -> None:
    """The worker's missing command is not reported, because a command would not help."""
    job = {**both(runAsNonRoot=True), "Worker.template.spec.containers.0.command": REMOVE, **changes}
    if changes.get("Launcher") is REMOVE:
        job = {path: value for path, value in job.items() if not path.startswith("Launcher.")} | changes
    (violation,) = violations("ssh-paths", job, view=RESTRICTED)
    assert f"{violation.path}: {violation.message}" == expected
    assert violation.advisory
    assert violation.message in warning(violation)


@pytest.mark.parametrize("level", ["baseline", "privileged"])
def test_message_names_run_as_non_root_in_a_namespace_with_a_weaker_level(level: str) -> None:
    (violation,) = violations("ssh-paths", both(runAsNonRoot=True), view=labelled("team-a", enforce=level))
    assert violation.message.startswith('"/root/.ssh" is for root, and runAsNonRoot is set')


def test_message_names_the_user_in_a_restricted_namespace() -> None:
    (violation,) = violations("ssh-paths", both(runAsUser=1000), view=RESTRICTED)
    assert "cannot be read by user 1000" in violation.message
    assert not violation.advisory


def test_root_in_a_restricted_namespace_is_not_reported() -> None:
    """The level `restricted` does not allow SYS_CHROOT, and the rule `pod-security` rejects root."""
    root = both(HOME, runAsUser=0, capabilities={"drop": ["ALL"]})
    assert violations("ssh-paths", root, view=RESTRICTED) == []
    key, capabilities = violations("ssh-paths", root)
    assert key.fix.startswith("Set it to exactly /root/.ssh")
    assert capabilities.fix == "Add SETGID, SETUID, SYS_CHROOT to capabilities.add, or run sshd as another user."


def test_warning_contains_the_message() -> None:
    result = [
        *violations("ssh-paths", both(runAsNonRoot=True, capabilities={"drop": ["ALL"]})),
        *violations("ssh-paths", both(HOME, runAsUser=0)),
        *violations("ssh-paths", job(launcher_pod={"runAsUser": 1000, "fsGroup": 1000})),
    ]
    assert len(result) == 4
    for violation in result:
        assert violation.message.partition(" (")[0] in warning(violation)


def warning(violation: Violation) -> str:
    text = Finding("ssh-paths", violation).warning
    assert len(text) <= MAX_WARNING_CHARACTERS
    return text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_is_accepted(path: Path) -> None:
    for document in yaml.load_all(path.read_text()):
        assert run("ssh-paths", document) == []


def test_only_the_first_container_is_checked() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b", "securityContext": {"runAsUser": 1000}}]}
    assert run("ssh-paths", changed({"Worker.template.spec": spec})) == []


def test_workers_without_sshd_need_no_key() -> None:
    changes = {
        "Worker.template.spec.containers.0.command": ["python", "worker.py"],
        "Worker.template.spec.containers.0.securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}},
    }
    assert violations("ssh-paths", changes) == []


@pytest.mark.parametrize("worker", [REMOVE, ["python", "worker.py"]])
def test_image_that_runs_as_root_without_ssh_in_a_restricted_namespace_is_reported(worker: Any) -> None:
    """The option --allow-run-as-root shows that the image is for root."""
    changes = job(launcher={"runAsNonRoot": True}, worker={"runAsNonRoot": True})
    changes["Worker.template.spec.containers.0.command"] = worker
    if worker is REMOVE:
        changes = {path: value for path, value in changes.items() if "Worker" not in path} | {"Worker": REMOVE}
    command = {"Launcher.template.spec.containers.0.command": IN_SCRIPT}
    result = violations("ssh-paths", {**changes, **command}, view=RESTRICTED)
    assert [violation.message for violation in result] == [f"runs mpirun as root, {NOT_AS_ROOT}"]
    plain = {"Launcher.template.spec.containers.0.command": ["python", "train.py"]}
    assert violations("ssh-paths", {**changes, **plain}, view=RESTRICTED) == []


def test_message_names_the_restricted_namespace() -> None:
    """The message does not name runAsNonRoot, because perhaps the user did not write it."""
    changes = job(launcher={"runAsNonRoot": True}, worker={"runAsUser": 1000, "runAsNonRoot": True})
    messages = [violation.message for violation in violations("ssh-paths", changes, view=RESTRICTED)]
    assert '"/root/.ssh" is for root, and this namespace starts nothing as root (Launcher)' in messages


CRI_O = Snapshot([node("one", runtime="cri-o://1.33.1"), node("two", runtime="cri-o://1.33.1")])
NO_CHROOT = f"(advice) {CONTEXT}.capabilities.add: has no SYS_CHROOT: sshd needs it as root, CRI-O does not give it"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [NO_CHROOT]),  # the image decides who the user is, usually root
        (both(runAsUser=0), [NO_CHROOT]),
        (both(runAsUser=0, capabilities={"add": ["SYS_CHROOT"]}), []),
        (both(runAsUser=0, capabilities={"add": ["CAP_SYS_CHROOT"]}), []),
        (both(runAsUser=0, capabilities={"add": ["ALL"]}), []),
        (both(runAsUser=0, privileged=True), []),
        (both(HOME, runAsUser=1000), []),
        ({"Worker.template.spec.containers.0.command": ["sleep", "infinity"]}, []),
    ],
)
def test_missing_sys_chroot_on_cri_o_is_a_warning(changes: Json, expected: list[str]) -> None:
    result = violations("ssh-paths", changes, view=CRI_O)
    assert as_texts(result) == expected
    assert all(each.advisory for each in result)


def test_sys_chroot_is_not_reported_if_a_node_has_another_runtime() -> None:
    assert violations("ssh-paths", view=Snapshot([node("one", runtime="cri-o://1.33.1"), node("two")])) == []
    assert violations("ssh-paths", view=Snapshot([])) == []


COMMAND = "Launcher.template.spec.containers.0.command"
ENV = "Launcher.template.spec.containers.0.env"
IMAGE = "Launcher.template.spec.containers.0.image"
ROOT = {"Launcher.template.spec.containers.0.securityContext": {"runAsUser": 0}}
ALLOW = {"name": "OMPI_ALLOW_RUN_AS_ROOT", "value": "1"}
CONFIRM = {"name": "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "value": "1"}
AS_ROOT = "(advice) spec.mpiReplicaSpecs[Launcher]: mpirun does not start as root"


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        (ROOT, "Add --allow-run-as-root."),
        ({IMAGE: "mpioperator/mpi-pi:openmpi"}, "Add --allow-run-as-root."),
        ({IMAGE: "docker.io/mpioperator/base"}, "Add --allow-run-as-root."),
        ({ENV: [ALLOW]}, 'Set OMPI_ALLOW_RUN_AS_ROOT_CONFIRM to "1".'),
    ],
)
def test_open_mpi_that_does_not_start_as_root_is_a_warning(changes: Json, fix: str) -> None:
    result = violations("ssh-paths", changes)
    assert (as_texts(result), [each.fix for each in result]) == ([AS_ROOT], [fix])
    assert fits_a_warning("ssh-paths", result[0])


@pytest.mark.parametrize(
    "changes",
    [
        ROOT | {COMMAND: ["mpirun", "--allow-run-as-root", "-np", "8", "x"]},
        ROOT | {ENV: [ALLOW, CONFIRM]},
        ROOT | {COMMAND: ["bash", "-c", "export OMPI_ALLOW_RUN_AS_ROOT=1; mpirun -np 8 x"]},
        ROOT | {COMMAND: ["bash", "-c", "su mpiuser -c 'mpirun -np 8 x'"], "spec.sshAuthMountPath": HOME},
        ROOT | {COMMAND: ["bash", "-c", "cp -r /root/.ssh /home/mpi; gosu mpi mpirun -np 8 x"]},
        {COMMAND: ["bash", "-c", "su mpi -c 'make'; mpirun --allow-run-as-root -np 8 x"]},
        {COMMAND: ["sudo", "mpirun", "--allow-run-as-root", "-np", "8", "x"]},
        {COMMAND: ["gosu", "root", "mpirun", "--allow-run-as-root", "-np", "8", "x"]},
        {COMMAND: ["bash", "-c", "su -c 'mpirun -np 8 x' mpiuser"]},
        ROOT | {"Launcher.template.spec.containers.0.envFrom": [{"configMapRef": {"name": "a"}}]},
        ROOT | {"spec.mpiImplementation": "Intel", COMMAND: ["mpirun", "-np", "8", "x"]},
        ROOT | {COMMAND: ["horovodrun", "-np", "8", "x"]},
        ROOT | {COMMAND: ["/run.sh"]},
        {},
        ROOT | {IMAGE: "horovod/horovod:0.28"},
        {IMAGE: "registry.example.com/mpioperator/base"},
        {IMAGE: "mpioperator/tensorflow-benchmarks:latest"},
        {IMAGE: "mpioperator/mpi-pi:openmpi"} | both(HOME, runAsUser=1000) | {COMMAND: ["mpirun", "x"]},
    ],
)
def test_mpirun_that_may_start_is_accepted(changes: Json) -> None:
    assert violations("ssh-paths", changes) == []


def test_key_outside_the_home_of_root_is_reported_if_mpirun_may_run_as_root() -> None:
    command = {COMMAND: ["mpirun", "--allow-run-as-root", "-np", "8", "x"]}
    (violation,) = violations("ssh-paths", {"spec.sshAuthMountPath": HOME} | command)
    assert as_texts([violation]) == [f"(advice) {FIELD}: mpirun may run as root, and root has no key"]
    assert violation.fix == "Set it to /root/.ssh, or set runAsUser."
    assert violations("ssh-paths", both(HOME, runAsUser=1000) | command) == []
    copied = {COMMAND: ["bash", "-c", "cp -r /home/mpiuser/.ssh /root; mpirun --allow-run-as-root x"]}
    assert violations("ssh-paths", {"spec.sshAuthMountPath": HOME} | copied) == []
    assert violations("ssh-paths", {"spec.sshAuthMountPath": "/root/.ssh/"} | command) == []


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", "gosu mpi mpirun -np 8 x"],
        ["gosu", "mpi", "mpirun", "-np", "8", "x"],
        ["bash", "-c", "su mpi -c 'cd /w && mpirun -np 8 x'"],
        ["bash", "-c", "su - mpi -c 'mpirun -np 8 x'"],
        ["runuser", "-u", "mpi", "--", "mpirun", "-np", "8", "x"],
        ["sudo", "-E", "-u", "mpi", "mpirun", "-np", "8", "x"],
    ],
)
def test_key_of_root_is_reported_if_another_user_runs_mpirun(command: list[str]) -> None:
    (violation,) = violations("ssh-paths", {COMMAND: command})
    assert as_texts([violation]) == [f"(advice) {FIELD}: mpi runs mpirun, and the key is for root"]
    assert violation.fix == "Set it to .ssh in the home of mpi."
    assert fits_a_warning("ssh-paths", violation)


@pytest.mark.parametrize(
    ("view", "scc"),
    [
        (openshift.view(), "SCC restricted-v2"),
        (Snapshot([openshift.project(), *openshift.DEFAULT_SCCS]), "the default SCC restricted-v2"),
    ],
    ids=["known permissions", "unknown permissions"],
)
def test_key_of_root_is_reported_if_the_scc_chooses_the_user(view: Snapshot, scc: str) -> None:
    fault = f'(advice) {FIELD}: "/root/.ssh" is for root, but {scc} runs the pods as user 1000680000'
    assert as_texts(violations("ssh-paths", SSHD, view=view)) == [fault]


def test_fs_group_is_not_reported_if_the_scc_rejects_the_pods() -> None:
    faults = violations("ssh-paths", {**SSHD, **both(runAsUser=0)}, view=openshift.view())
    assert not [each for each in faults if each.path.endswith("fsGroup")]


def test_user_that_the_scc_chooses_is_reported_as_missing_in_upstreams_image() -> None:
    changes = {"spec.sshAuthMountPath": HOME, **SSHD, "Worker.template.spec.containers.0.image": "mpioperator/mpi-pi"}
    (violation,) = violations("ssh-paths", changes, view=openshift.view())
    assert as_texts([violation]) == [f"(advice) {FIELD}: user 1000680000 (SCC restricted-v2) is not in the image"]
    assert fits_a_warning("ssh-paths", violation)


def test_capability_that_the_scc_drops_is_reported() -> None:
    changes = {"spec.sshAuthMountPath": HOME, **SSHD}
    (fault,) = as_texts(violations("ssh-paths", changes, view=openshift.view()))
    assert fault.startswith(f"(advice) {CONTEXT}.capabilities.add: has no NET_BIND_SERVICE")


def test_key_of_root_is_accepted_if_the_scc_allows_root() -> None:
    for may_use in ({"default": ["anyuid"]}, {"default": ["privileged"]}):
        assert as_texts(violations("ssh-paths", {**SSHD, **both(runAsUser=0)}, view=openshift.view(may_use))) == []
    assert as_texts(violations("ssh-paths", SSHD, view=openshift.view({"default": ["anyuid"]}))) == []
