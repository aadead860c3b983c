"""ssh-paths: the matrix of user, sshAuthMountPath, fsGroup and capabilities."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import openshift
from tests.support.any_job import Json
from tests.support.jobs import REMOVE, changed
from tests.support.namespaces import labelled
from tests.support.nodes import node
from tests.support.paths import EXAMPLES as EXAMPLES_FOLDER
from tests.support.rule_checks import fits_a_warning, found, run, violations
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


def job(path: str = "/root/.ssh", /, **contexts: Json) -> Json:
    """Changes: this mount path, workers with a sshd of their own; `launcher`, `worker` (containers'), `launcher_pod`,
    `worker_pod` are security contexts."""
    changes: Json = {"spec.sshAuthMountPath": path, **SSHD, **SHELL}
    for who, context in contexts.items():
        role, _, pod = who.partition("_")
        changes[f"{role.title()}.template.spec.{'' if pod else 'containers.0.'}securityContext"] = context
    return changes


def both(path: str = "/root/.ssh", /, **context: Any) -> Json:
    return job(path, launcher=context, worker=context)


def check(changes: Json) -> list[str]:
    return found(violations("ssh-paths", changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},  # the image decides
        {"spec.sshAuthMountPath": REMOVE},
        {"spec.sshAuthMountPath": HOME},
        {"spec.sshAuthMountPath": "/root/.ssh/"},
        both(runAsUser=0),
        both(HOME, runAsUser=1000),
        both(f"{HOME}/", runAsUser=1000),
        both(HOME, runAsNonRoot=True),
        job(HOME, launcher_pod={"runAsUser": 1000, "fsGroup": 1000}, worker_pod={"runAsUser": 1000, "fsGroup": 1000}),
        job(HOME, launcher={"runAsUser": 1000}, worker={"runAsUser": 0}),  # root's sshd lets everybody in
        job(HOME, launcher={"runAsUser": 1000}),
        job(HOME, worker={"runAsUser": 1000}),
        job(launcher_pod={"runAsUser": 1000}, launcher={"runAsUser": 0}),  # the container's own counts
        job(launcher_pod={"runAsNonRoot": True}, launcher={"runAsNonRoot": False}),
        job(worker_pod={"fsGroup": 1337}),  # authorized_keys may be read by a group
        both(HOME, runAsUser=1000, capabilities={"add": ["NET_BIND_SERVICE"]}),
        both(HOME, runAsUser=1000, capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
        both(HOME, runAsUser=1000, capabilities={"drop": ["all"], "add": ["cap_net_bind_service"]}),
        both(HOME, runAsUser=1000, capabilities={"drop": ["SYS_CHROOT", "NET_RAW"]}),
        both(runAsUser=0, capabilities={"drop": ["NET_RAW"], "add": ["IPC_LOCK"]}),
        both(runAsUser=0, capabilities={"drop": ["ALL"], "add": ["SETGID", "SETUID", "SYS_CHROOT"]}),
        both(runAsUser=0, capabilities={"drop": ["ALL"], "add": ["ALL"]}),
        {**both(runAsUser=0, capabilities={"drop": ["ALL"]}), "Worker.template.spec.containers.0.command": ["train"]},
        {"Worker": REMOVE, **{key: value for key, value in both(runAsUser=1000).items() if "Worker" not in key}},
        {"Worker.template.spec": REMOVE},
    ],
)
def test_working_or_uncertain_combination_passes(changes: Json) -> None:
    assert check(changes) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # Root.
        (
            both("/root/.ssh/", runAsUser=0),
            f'{FIELD}: the launcher is root, whose key ssh does not accept from "/root/.ssh/"',
        ),
        (
            both("/root//.ssh", runAsUser=0),
            f'{FIELD}: the launcher is root, whose key ssh does not accept from "/root//.ssh"',
        ),
        (
            both(HOME, runAsUser=0),
            f'(advice) {FIELD}: the launcher is root, whose key ssh does not accept from "{HOME}"',
        ),
        (
            job(launcher_pod={"runAsUser": 0, "fsGroup": 1337}),
            f"{LAUNCHER}.securityContext.fsGroup: gives a group the ",
        ),
        (
            job(launcher_pod={"fsGroup": 0}),
            f"(advice) {LAUNCHER}.securityContext.fsGroup: gives a group the key of the",
        ),
        # Others.
        (both(runAsUser=1000), f'{FIELD}: "/root/.ssh" cannot be read by user 1000, only by root {BOTH}'),
        (job(worker={"runAsUser": 1000}), f'{FIELD}: "/root/.ssh" cannot be read by user 1000, only by root (Worker)'),
        (
            job(launcher_pod={"runAsUser": 1000}),
            f'{FIELD}: "/root/.ssh" cannot be read by user 1000, only by root (Launcher)',
        ),
        ({**both(runAsUser=1), FIELD: REMOVE}, f'{FIELD}: "/root/.ssh" cannot be read by user 1, only by root {BOTH}'),
        (
            both("/root/.ssh/", runAsUser=1000),
            f'(advice) {FIELD}: "/root/.ssh/" is not for user 1000: /root is hardly ever open to others {BOTH}',
        ),
        (
            job(launcher_pod={"runAsUser": 1000, "fsGroup": 1000}),
            f'(advice) {FIELD}: "/root/.ssh" is not for user 1000: /root is hardly ever open to others (Launcher)',
        ),
        (both(runAsNonRoot=True), f'(advice) {FIELD}: "/root/.ssh" is for root, and runAsNonRoot is set {BOTH}'),
        (
            job(launcher_pod={"runAsNonRoot": True, "fsGroup": 1000}),
            f'(advice) {FIELD}: "/root/.ssh" is for root, and runAsNonRoot is set (Launcher)',
        ),
        # Two users.
        (
            job(HOME, launcher={"runAsUser": 1000}, worker={"runAsUser": 1001}),
            f"(advice) {CONTEXT}.runAsUser: sshd of user 1001 lets only that user in, the ",
        ),
        (
            job(HOME, launcher={"runAsUser": 1000}, worker_pod={"runAsUser": 1001}),
            f"(advice) {WORKER}.securityContext.runAsUser: sshd of user 1001 lets only that user in, ",
        ),
        # The workers' sshd.
        (
            {**both(HOME, runAsUser=1000), "Worker.template.spec.containers.0.command": REMOVE},
            f"(advice) {WORKER}.containers[0].command: is missing, and what then starts is the sshd of root",
        ),
        (
            {**both(HOME, runAsNonRoot=True), "Worker.template.spec.containers.0.command": []},
            f"(advice) {WORKER}.containers[0].command: is missing, and what then starts is the sshd of root",
        ),
        (
            both(HOME, runAsUser=1000, capabilities={"drop": ["ALL"]}),
            f"(advice) {CONTEXT}.capabilities.add: has no NET_BIND_SERVICE, without which ",
        ),
        (
            both(HOME, runAsNonRoot=True, capabilities={"drop": ["NET_BIND_SERVICE"]}),
            f"(advice) {CONTEXT}.capabilities.add: has no NET_BIND_SERVICE, without which ",
        ),
        (
            both(runAsUser=0, capabilities={"drop": ["ALL"], "add": ["SETUID"]}),
            f"{CONTEXT}.capabilities.drop: takes from sshd what it needs as root: SETGID, SYS_CHROOT",
        ),
        (
            both(capabilities={"drop": ["CAP_SYS_CHROOT"]}),
            f"(advice) {CONTEXT}.capabilities.drop: takes from sshd what it needs as root: SYS_CHROOT",
        ),
    ],
)
def test_broken_combination_is_rejected(changes: Json, expected: str) -> None:
    (violation,) = check(changes)
    assert violation.startswith(expected)


@pytest.mark.parametrize("path", [".ssh", "~/.ssh"])
def test_a_relative_path_for_the_key_is_rejected(path: str) -> None:
    [found] = violations("ssh-paths", {"spec.sshAuthMountPath": path})
    assert (found.path, found.advisory) == ("spec.sshAuthMountPath", False)
    assert found.fix == "Set it to /root/.ssh, or /home/USER/.ssh where the job runs as another user."


def test_several_faults_at_once() -> None:
    changes = job(launcher={"runAsUser": 0}, worker={"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}})
    changes["Worker.template.spec.containers.0.command"] = REMOVE
    assert [violation.partition(": ")[0] for violation in check(changes)] == [
        FIELD,
        f"(advice) {CONTEXT}.runAsUser",
        f"(advice) {WORKER}.containers[0].command",
        f"(advice) {CONTEXT}.capabilities.add",
    ]


@pytest.mark.parametrize(
    ("changes", "mended"),
    [
        (both(runAsUser=1000), both(HOME, runAsUser=1000)),
        (both("/root/.ssh/", runAsUser=0), both(runAsUser=0)),
        (job(launcher_pod={"runAsUser": 0, "fsGroup": 1}), job(launcher_pod={"runAsUser": 0})),
    ],
)
def test_the_fix_fixes_it(changes: Json, mended: Json) -> None:
    (violation,) = violations("ssh-paths", changes)
    assert violation.fix.endswith(".")
    assert not violation.advisory
    assert check(mended) == []


RESTRICTED = labelled("team-a", enforce="restricted")
NOT_AS_ROOT = "but this namespace starts nothing as root"
BY_VARIABLE = [{"name": "OMPI_ALLOW_RUN_AS_ROOT", "value": "1"}]
IN_SCRIPT = ["bash", "-c", "mpirun --allow-run-as-root -np 4 x"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, f'{FIELD}: "/root/.ssh" is for root, {NOT_AS_ROOT}'),
        ({FIELD: "/root/.ssh/"}, f'{FIELD}: "/root/.ssh/" is for root, {NOT_AS_ROOT}'),
        ({"Launcher": REMOVE}, f'{FIELD}: "/root/.ssh" is for root, {NOT_AS_ROOT}'),
        (
            {"Launcher.template.spec.containers.0.command": IN_SCRIPT},
            f"{LAUNCHER}.containers[0]: runs mpirun as root, {NOT_AS_ROOT}",
        ),
        (
            {"Launcher.template.spec.containers.0.env": BY_VARIABLE},
            f"{LAUNCHER}.containers[0]: runs mpirun as root, {NOT_AS_ROOT}",
        ),
    ],
)
def test_an_image_of_root_where_nothing_runs_as_root(changes: Json, expected: str) -> None:
    """The namespace requires runAsNonRoot, whether or not the user wrote it, and a command for sshd alone would not
    help.
    """
    job = {**both(runAsNonRoot=True), "Worker.template.spec.containers.0.command": REMOVE, **changes}
    if changes.get("Launcher") is REMOVE:
        job = {path: value for path, value in job.items() if not path.startswith("Launcher.")} | changes
    (violation,) = violations("ssh-paths", job, view=RESTRICTED)
    assert f"{violation.path}: {violation.message}" == expected
    assert violation.advisory
    assert violation.message in warning(violation)


@pytest.mark.parametrize("level", ["baseline", "privileged"])
def test_user_setting_applies_where_root_is_allowed(level: str) -> None:
    (violation,) = violations("ssh-paths", both(runAsNonRoot=True), view=labelled("team-a", enforce=level))
    assert violation.message.startswith('"/root/.ssh" is for root, and runAsNonRoot is set')


def test_a_user_that_is_named_is_named_in_a_restricted_namespace_too() -> None:
    (violation,) = violations("ssh-paths", both(runAsUser=1000), view=RESTRICTED)
    assert "cannot be read by user 1000" in violation.message
    assert not violation.advisory


def test_no_advice_about_root_where_nothing_runs_as_root() -> None:
    """The level has no SYS_CHROOT, and root itself is what `pod-security` refuses."""
    root = both(HOME, runAsUser=0, capabilities={"drop": ["ALL"]})
    assert violations("ssh-paths", root, view=RESTRICTED) == []
    key, capabilities = violations("ssh-paths", root)
    assert key.fix.startswith("Set it to /root/.ssh, letter by letter")
    assert capabilities.fix == "Add SETGID, SETUID, SYS_CHROOT to capabilities.add, or run sshd as another user."


def test_advice_is_short() -> None:
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
def test_the_examples_work(path: Path) -> None:
    for document in yaml.load_all(path.read_text()):
        assert run("ssh-paths", document) == []


def test_the_matrix_reads_the_first_container_only() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b", "securityContext": {"runAsUser": 1000}}]}
    assert run("ssh-paths", changed({"Worker.template.spec": spec})) == []


def test_workers_that_start_no_sshd_need_no_key() -> None:
    changes = {
        "Worker.template.spec.containers.0.command": ["python", "worker.py"],
        "Worker.template.spec.containers.0.securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}},
    }
    assert violations("ssh-paths", changes) == []


@pytest.mark.parametrize("worker", [REMOVE, ["python", "worker.py"]])
def test_without_ssh_an_image_of_root_does_not_start_either(worker: Any) -> None:
    """mpirun shows that it is for root, and the namespace requires runAsNonRoot."""
    changes = job(launcher={"runAsNonRoot": True}, worker={"runAsNonRoot": True})
    changes["Worker.template.spec.containers.0.command"] = worker
    if worker is REMOVE:
        changes = {path: value for path, value in changes.items() if "Worker" not in path} | {"Worker": REMOVE}
    command = {"Launcher.template.spec.containers.0.command": IN_SCRIPT}
    result = violations("ssh-paths", {**changes, **command}, view=RESTRICTED)
    assert [violation.message for violation in result] == [f"runs mpirun as root, {NOT_AS_ROOT}"]
    plain = {"Launcher.template.spec.containers.0.command": ["python", "train.py"]}
    assert violations("ssh-paths", {**changes, **plain}, view=RESTRICTED) == []


def test_the_namespace_is_named_where_it_wants_it_so() -> None:
    """The message does not name runAsNonRoot, which the user may not have written."""
    changes = job(launcher={"runAsNonRoot": True}, worker={"runAsUser": 1000, "runAsNonRoot": True})
    messages = [violation.message for violation in violations("ssh-paths", changes, view=RESTRICTED)]
    assert '"/root/.ssh" is for root, and this namespace starts nothing as root (Launcher)' in messages


CRI_O = Snapshot([node("one", runtime="cri-o://1.33.1"), node("two", runtime="cri-o://1.33.1")])
NO_CHROOT = f"(advice) {CONTEXT}.capabilities.add: has no SYS_CHROOT: sshd needs it as root, CRI-O does not give it"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [NO_CHROOT]),  # the image decides, and most are root
        (both(runAsUser=0), [NO_CHROOT]),
        (both(runAsUser=0, capabilities={"add": ["SYS_CHROOT"]}), []),
        (both(runAsUser=0, capabilities={"add": ["CAP_SYS_CHROOT"]}), []),
        (both(runAsUser=0, capabilities={"add": ["ALL"]}), []),
        (both(runAsUser=0, privileged=True), []),
        (both(HOME, runAsUser=1000), []),
        ({"Worker.template.spec.containers.0.command": ["sleep", "infinity"]}, []),
    ],
)
def test_cri_o_gives_no_sys_chroot(changes: Json, expected: list[str]) -> None:
    result = violations("ssh-paths", changes, view=CRI_O)
    assert found(result) == expected
    assert all(each.advisory for each in result)


def test_node_with_a_different_runtime_prevents_the_violation() -> None:
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
        (ROOT | {ENV: [ALLOW, CONFIRM | {"value": "true"}]}, 'Set OMPI_ALLOW_RUN_AS_ROOT_CONFIRM to "1".'),
    ],
)
def test_open_mpi_does_not_start_as_root(changes: Json, fix: str) -> None:
    result = violations("ssh-paths", changes)
    assert (found(result), [each.fix for each in result]) == ([AS_ROOT], [fix])
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
def test_what_may_start_as_root(changes: Json) -> None:
    assert violations("ssh-paths", changes) == []


def test_the_key_of_a_root_that_may_run_mpirun() -> None:
    command = {COMMAND: ["mpirun", "--allow-run-as-root", "-np", "8", "x"]}
    (violation,) = violations("ssh-paths", {"spec.sshAuthMountPath": HOME} | command)
    assert found([violation]) == [f"(advice) {FIELD}: mpirun may run as root, whose key is elsewhere"]
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
def test_the_key_of_another_user_that_starts_mpirun(command: list[str]) -> None:
    (violation,) = violations("ssh-paths", {COMMAND: command})
    assert found([violation]) == [f"(advice) {FIELD}: mpi runs mpirun, and the key is for root"]
    assert violation.fix == "Set it to .ssh in the home of mpi."
    assert fits_a_warning("ssh-paths", violation)


def test_user_that_an_scc_chooses_has_no_key_of_root() -> None:
    fault = f'(advice) {FIELD}: "/root/.ssh" is for root, but SCC restricted-v2 runs it as user 1000680000'
    assert found(violations("ssh-paths", SSHD, view=openshift.view())) == [fault]


def test_user_that_an_scc_chooses_is_not_in_upstreams_image() -> None:
    changes = {"spec.sshAuthMountPath": HOME, **SSHD, "Worker.template.spec.containers.0.image": "mpioperator/mpi-pi"}
    (violation,) = violations("ssh-paths", changes, view=openshift.view())
    assert found([violation]) == [f"(advice) {FIELD}: user 1000680000 (SCC restricted-v2) is not in the image"]
    assert fits_a_warning("ssh-paths", violation)


def test_sshd_of_a_user_that_an_scc_chooses_needs_the_capability_that_it_drops() -> None:
    changes = {"spec.sshAuthMountPath": HOME, **SSHD}
    (fault,) = found(violations("ssh-paths", changes, view=openshift.view()))
    assert fault.startswith(f"(advice) {CONTEXT}.capabilities.add: has no NET_BIND_SERVICE")


def test_root_keeps_its_key_where_the_scc_allows_it() -> None:
    for may_use in ({"default": ["anyuid"]}, {"default": ["privileged"]}):
        assert found(violations("ssh-paths", {**SSHD, **both(runAsUser=0)}, view=openshift.view(may_use))) == []
    assert found(violations("ssh-paths", SSHD, view=openshift.view({"default": ["anyuid"]}))) == []
