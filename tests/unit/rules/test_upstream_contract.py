from typing import Any

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.rule_checks import as_texts, violations
from webhook.admission.messages import Finding

LAUNCHER = "spec.mpiReplicaSpecs[Launcher]"
WORKER = "spec.mpiReplicaSpecs[Worker]"
SPEC = "Worker.template.spec"
POD = f"{WORKER}.template.spec"
GANG = "spec.runPolicy.schedulingPolicy"
BAD = "1e1.5"
STORAGE = {"spec": {"resources": {"requests": {"storage": BAD}}}}
EPHEMERAL = f"{POD}.volumes[0].ephemeral.volumeClaimTemplate.spec"
ITEM = {"resourceFieldRef": {"divisor": BAD}}
DIVISOR = "resourceFieldRef.divisor"
INIT = {"name": "i", "resources": {"requests": {"cpu": "NaN"}}}
RESERVED = "is reserved for the operator"
MOUNTED = "the operator itself mounts something"


def volume(name: str = "v", **source: Any) -> dict[str, Any]:
    return {f"{SPEC}.volumes": [{"name": name, **source}]}


def mount(path: str, role: str = "Launcher") -> dict[str, Any]:
    return {f"{role}.template.spec.containers.0.volumeMounts": [{"name": "v", "mountPath": path}]}


def env(name: str, value: str | None = "x", role: str = "Launcher", **source: Any) -> dict[str, Any]:
    variable = {"name": name, **(source or {"value": value})}
    return {f"{role}.template.spec.containers.0.env": [variable]}


REJECTED: list[tuple[dict[str, Any], str, str]] = [
    # Each number in a comment is the number of a check in the operator's own validation.
    # 1: the name
    ({"metadata.name": "x" * 55}, "metadata.name", "has 64 characters, at most 63 are allowed"),
    ({"metadata.name": "x" * 54, "Worker.replicas": 11}, "metadata.name", "has 64 characters"),
    ({"metadata.name": ""}, "metadata.name", "is missing"),
    ({"metadata.name": "my.job"}, "metadata.name", 'contains "."'),
    ({"metadata.name": "1-foo"}, "metadata.name", "must start with a lower case letter"),
    ({"metadata.name": "Train"}, "metadata.name", 'contains "T"'),
    ({"metadata.name": "", "metadata.generateName": "x" * 60}, "metadata.generateName", "has 72 characters"),
    # 2 and 3: the replica specs
    ({"spec.mpiReplicaSpecs": REMOVE}, "spec.mpiReplicaSpecs", "is missing"),
    ({"Launcher": None}, LAUNCHER, "is missing"),
    # 4 to 6: replicas
    ({"Launcher.replicas": 0}, f"{LAUNCHER}.replicas", "is 0, there is always one launcher"),
    ({"Worker.replicas": 0}, f"{WORKER}.replicas", "is 0 (not set counts as 0), and the operator needs at least 1"),
    ({"Worker.replicas": REMOVE}, f"{WORKER}.replicas", "is 0 (not set counts as 0)"),
    ({"Worker.replicas": -1}, f"{WORKER}.replicas", "is -1"),
    # 7: restart policies
    ({"Launcher.restartPolicy": "ExitCode"}, f"{LAUNCHER}.restartPolicy", '"ExitCode" is not supported'),
    # 8: containers
    ({"Worker.template.spec.containers": []}, f"{WORKER}.template.spec.containers", "has no container"),
    ({"Worker.template": {}}, f"{WORKER}.template.spec.containers", "has no container"),
    # 9: slots
    ({"spec.slotsPerWorker": -1}, "spec.slotsPerWorker", "is -1, must not be negative"),
    # 10 to 12: the run policy
    ({"spec.runPolicy.cleanPodPolicy": ""}, "spec.runPolicy.cleanPodPolicy", '"" is not supported'),
    ({"spec.runPolicy.ttlSecondsAfterFinished": -1}, "spec.runPolicy.ttlSecondsAfterFinished", "is -1"),
    ({"spec.runPolicy.activeDeadlineSeconds": -5}, "spec.runPolicy.activeDeadlineSeconds", "is -5"),
    ({"spec.runPolicy.backoffLimit": -1}, "spec.runPolicy.backoffLimit", "is -1"),
    ({"spec.runPolicy.managedBy": ""}, "spec.runPolicy.managedBy", '"" is not supported'),
    ({"spec.runPolicy.managedBy": "me"}, "spec.runPolicy.managedBy", '"me" is not supported'),
    # 14: the implementation. Check 13 is for an empty path and never fails, because the operator sets a default first.
    ({"spec.mpiImplementation": "MVAPICH"}, "spec.mpiImplementation", '"MVAPICH" is not supported'),
    # The schema accepts the quantity 1e1.5, but Go's decoder rejects it.
    ({f"{SPEC}.containers.0.resources.limits.cpu": BAD}, f"{POD}.containers[0].resources.limits[cpu]", BAD),
    # Python's True is equal to the request of 1.
    (
        {f"{SPEC}.containers.0.resources": {"requests": {"cpu": 1}, "limits": {"cpu": True}}},
        f"{POD}.containers[0].resources.limits[cpu]",
        "true or false is not a quantity",
    ),
    ({f"{SPEC}.initContainers": [INIT]}, f"{POD}.initContainers[0].resources.requests[cpu]", '"NaN"'),
    ({f"{GANG}.minResources": {"memory": "4GB"}}, f"{GANG}.minResources[memory]", '"4GB"'),
    ({f"{SPEC}.overhead": {"cpu": BAD}}, f"{POD}.overhead[cpu]", BAD),
    ({f"{SPEC}.resources": {"limits": {"cpu": BAD}}}, f"{POD}.resources.limits[cpu]", BAD),
    (env("A", valueFrom=ITEM, role="Worker"), f"{POD}.containers[0].env[0].valueFrom.{DIVISOR}", BAD),
    (volume(emptyDir={"sizeLimit": BAD}), f"{POD}.volumes[0].emptyDir.sizeLimit", BAD),
    (volume(ephemeral={"volumeClaimTemplate": STORAGE}), f"{EPHEMERAL}.resources.requests[storage]", BAD),
    (volume(downwardAPI={"items": [ITEM]}), f"{POD}.volumes[0].downwardAPI.items[0].{DIVISOR}", BAD),
    (
        volume(projected={"sources": [{"downwardAPI": {"items": [ITEM]}}]}),
        f"{POD}.volumes[0].projected.sources[0].downwardAPI.items[0].{DIVISOR}",
        BAD,
    ),
    # The API server rejects pods with negative quantities.
    (
        {f"{SPEC}.containers.0.resources.requests": {"memory": "-1Gi"}},
        f"{POD}.containers[0].resources.requests[memory]",
        "is -1Gi, must not be negative",
    ),
    # The operator does not check for the following faults.
    ({"spec.launcherCreationPolicy": "Later"}, "spec.launcherCreationPolicy", '"Later" is not supported'),
    (volume("ssh-auth"), f"{POD}.volumes[0].name", RESERVED),
    (
        {"Launcher.template.spec.volumes": [{"name": "data"}, {"name": "mpi-job-config"}]},
        f"{LAUNCHER}.template.spec.volumes[1].name",
        RESERVED,
    ),
    (mount("/root/.ssh", "Worker"), f"{POD}.containers[0].volumeMounts[0].mountPath", MOUNTED),
    (mount("/etc/mpi"), f"{LAUNCHER}.template.spec.containers[0].volumeMounts[0].mountPath", MOUNTED),
]


@pytest.mark.parametrize(("changes", "path", "message"), REJECTED)
def test_invalid_job_is_rejected(changes: dict[str, Any], path: str, message: str) -> None:
    [violation] = violations("upstream-contract", changes)
    assert violation.path == path
    assert message in violation.message
    assert violation.fix.endswith(".")
    assert not violation.advisory


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"Worker": REMOVE},
        {"metadata.name": "x" * 54},
        {"metadata.name": "x" * 52, "Worker.replicas": 1000},
        {"metadata.name": "", "metadata.generateName": "train-"},
        {"spec.runPolicy": REMOVE},
        {"spec.slotsPerWorker": 0},
        {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"},
        {"spec.runPolicy.activeDeadlineSeconds": 0},
        {f"{SPEC}.volumes": [{"name": "mpi-job-config"}]},  # only the launcher gets a volume with this name
        {f"{SPEC}.containers.0.volumeMounts": [{"name": "k", "mountPath": "/etc/mpi"}]},
    ],
)
def test_valid_job_is_accepted(changes: dict[str, Any]) -> None:
    assert as_texts(violations("upstream-contract", changes)) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({f"{SPEC}.hostname": "h"}, f"{WORKER}.template.spec.hostname"),
        ({f"{SPEC}.subdomain": "s"}, f"{WORKER}.template.spec.subdomain"),
        (
            {"Worker.template.metadata.labels": {"training.kubeflow.org/job-role": "boss"}},
            f"{WORKER}.template.metadata.labels[training.kubeflow.org/job-role]",
        ),
    ],
)
def test_value_that_the_operator_overwrites_is_a_warning(changes: dict[str, Any], path: str) -> None:
    [violation] = violations("upstream-contract", changes)
    assert violation.advisory
    assert violation.path == path
    assert violation.message == "the operator overwrites it"


@pytest.mark.parametrize(
    ("key", "lost", "fix"),
    [
        ("worker", "Worker", "Rename it to Worker."),
        ("launcher", "Launcher", "Rename it to Launcher."),
        ("Master", "Launcher", "Rename it to Launcher."),
        ("Chief", "Launcher", "Remove it: there are only Launcher and Worker."),
        # The correct key exists too. If the wrong key were renamed, one of the two would be lost.
        ("worker", None, "Remove it: there are only Launcher and Worker."),
    ],
)
def test_wrong_replica_key_is_reported_with_the_correct_key(key: str, lost: str | None, fix: str) -> None:
    changes = {f"spec.mpiReplicaSpecs.{key}": {}} | ({lost: REMOVE} if lost else {})
    assert violations("upstream-contract", changes)[0].fix == fix


@pytest.mark.parametrize(
    ("user", "home"), [({}, "/root"), ({"runAsUser": 0}, "/root"), ({"runAsUser": 7}, "/home/mpiuser")]
)
@pytest.mark.parametrize("pod", ["Launcher.template.spec", "Worker.template.spec.containers.0"])
def test_suggested_path_for_the_ssh_key_is_in_the_home_of_the_user(user: dict[str, int], home: str, pod: str) -> None:
    changes = {"spec.sshAuthMountPath": "/etc/mpi", f"{pod}.securityContext": user}
    [violation] = violations("upstream-contract", changes)
    assert violation.fix == f"Set it to {home}/.ssh, or to .ssh in the home of the user."


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"spec.runPolicy.managedBy": "kueue"}, "Remove it."),
        ({"spec.runPolicy.managedBy": "kubeflow.org/mpioperator"}, "Write kubeflow.org/mpi-operator."),
        ({"spec.launcherCreationPolicy": "WaitForWorkersRunning"}, "Write WaitForWorkersReady."),
        (mount("/root/.ssh"), "Remove this mount and its volume: the operator makes the keys."),
        (mount("/etc/mpi"), "Mount it elsewhere, such as at /data."),
    ],
)
def test_fix_names_the_value_that_is_probably_meant(changes: dict[str, Any], fix: str) -> None:
    assert [violation.fix for violation in violations("upstream-contract", changes)] == [fix]


@pytest.mark.parametrize("field", ["ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"])
def test_fix_for_a_negative_number_is_to_remove_it(field: str) -> None:
    [violation] = violations("upstream-contract", {f"spec.runPolicy.{field}": -1})
    assert violation.fix == "Remove it, or set it to 0 or more."


def test_fix_has_the_maximum_length_of_the_name() -> None:
    generated = {"metadata.name": "x" * 63, "metadata.generateName": "x" * 60, "Worker.replicas": 100}
    [violation] = violations("upstream-contract", generated)
    assert "at most 48 characters" in violation.fix
    unused = {"metadata.name": "x" * 60, "metadata.generateName": "train-"}
    [violation] = violations("upstream-contract", unused)
    assert (violation.path, violation.fix) == (
        "metadata.name",
        f"Write {'x' * 53}, or another name of at most 53 characters.",
    )


def test_suggested_length_satisfies_the_rule_name_length() -> None:
    for field, room in (("name", 53), ("generateName", 48)):
        changes = {"metadata.name": "", f"metadata.{field}": "x" * 60}
        [violation] = violations("upstream-contract", changes)
        assert f"at most {room} characters" in violation.fix
        followed = {"metadata.name": "", f"metadata.{field}": "x" * room}
        assert violations("upstream-contract", followed) == violations("name-length", followed) == []


@pytest.mark.parametrize("path", ["/etc/mpi", "/etc/mpi/", "/etc//mpi", "//etc/mpi", "/etc/x/../mpi", "etc/mpi"])
def test_ssh_key_mounted_over_the_hostfile_is_rejected(path: str) -> None:
    [violation] = violations("upstream-contract", {"spec.sshAuthMountPath": path})
    assert violation.path == "spec.sshAuthMountPath"
    assert violation.message.startswith("the operator mounts the hostfile at /etc/mpi")
    assert violations("upstream-contract", {"spec.sshAuthMountPath": "/etc/mpi-keys"}) == []


@pytest.mark.parametrize("path", ["/etc/mpi/", "//etc/mpi", "/root/.ssh/", "/root/x/../.ssh", "root/.ssh"])
def test_mount_at_a_path_of_the_operator_in_another_spelling_is_a_warning(path: str) -> None:
    """The API server accepts these pods, and the runtime mounts one volume over the other."""
    pod = "Launcher.template.spec"
    mounts = {f"{pod}.volumes": [{"name": "v"}], f"{pod}.containers.0.volumeMounts": [{"name": "v", "mountPath": path}]}
    [violation] = violations("upstream-contract", mounts)
    assert violation.message == f'the operator itself mounts something at "{path}", and one hides the other'
    assert violation.advisory
    elsewhere = {f"{pod}.containers.0.volumeMounts": [{"name": "v", "mountPath": f"{path.rstrip('/')}x"}]}
    assert violations("upstream-contract", mounts | elsewhere) == []


@pytest.mark.parametrize(
    ("own", "of_replica", "expected"),
    [
        ("Never", None, []),
        ("Always", None, ["the operator overwrites it with Never"]),
    ],
)
def test_overwritten_restart_policy_is_a_warning(own: str, of_replica: str | None, expected: list[str]) -> None:
    changes = {"Worker.template.spec.restartPolicy": own, "Worker.restartPolicy": of_replica or REMOVE}
    found = violations("upstream-contract", changes)
    assert [violation.message for violation in found] == expected
    assert all(violation.advisory for violation in found)


def test_misspelt_role_is_reported_once() -> None:
    """The correct key is not also reported as missing."""
    specs = {key.lower(): spec for key, spec in changed()["spec"]["mpiReplicaSpecs"].items()}
    result = violations("upstream-contract", {"spec.mpiReplicaSpecs": specs})
    assert [violation.fix for violation in result] == ["Rename it to Launcher.", "Rename it to Worker."]


@pytest.mark.parametrize(
    ("changes", "folder"),
    [
        (mount("/root/.ssh/config"), "/root/.ssh"),
        (mount("/root/.ssh/config", "Worker"), "/root/.ssh"),
        (mount("//root/.ssh/./conf.d/a"), "/root/.ssh"),
        (mount("/etc/mpi/extra"), "/etc/mpi"),
        (mount("/home/me/.ssh/config") | {"spec.sshAuthMountPath": "/home/me/.ssh"}, "/home/me/.ssh"),
    ],
)
def test_mount_inside_a_read_only_folder_is_rejected(changes: dict[str, Any], folder: str) -> None:
    [violation] = violations("upstream-contract", changes)
    assert violation.path.endswith(".template.spec.containers[0].volumeMounts[0].mountPath")
    assert violation.message.endswith(f" cannot be created in {folder}, which the operator mounts read-only")
    assert not violation.advisory


@pytest.mark.parametrize(
    "changes",
    [
        mount("/root/.ssh-extra/config"),
        mount("/root/config"),
        mount("/root/.ssh/authorized_keys"),  # the file exists, so a mount can hide it
        mount("/etc/mpi/hostfile"),
        mount("/etc/mpi/extra", "Worker"),  # only the launcher has the hostfile
        mount("/root/.ssh/config") | {"spec.sshAuthMountPath": "/home/me/.ssh"},
        {
            "Launcher.template.spec.initContainers": [
                {"name": "i", "volumeMounts": [{"name": "v", "mountPath": "/root/.ssh/config"}]}
            ]
        },
    ],
)
def test_valid_mount_is_accepted(changes: dict[str, Any]) -> None:
    assert as_texts(violations("upstream-contract", changes)) == []


INTEL, MPICH = ({"spec.mpiImplementation": name} for name in ("Intel", "MPICH"))


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        (env("OMPI_MCA_plm_rsh_args", "-p 2222"), "Use mpirun -mca plm_rsh_args '-p 2222'."),
        (env("OMPI_MCA_orte_default_hostfile", "/hosts"), "Remove it."),
        (env("OMPI_MCA_orte_keep_fqdn_hostnames", "false"), "Use mpirun -mca orte_keep_fqdn_hostnames false."),
        (env("OMPI_MCA_plm_rsh_args", "-o " * 20), "Use mpirun -mca plm_rsh_args VALUE."),
        (env("OMPI_MCA_orte_set_default_slots", "8"), "Use mpirun -mca orte_set_default_slots 8."),
        (
            env("OMPI_MCA_plm_rsh_args", "-p 2222")
            | {"Launcher.template.spec.containers.0.command": ["mpirun", "-mca", "plm_rsh_args", "-p 2222", "x"]},
            "Remove it.",
        ),
        (env("I_MPI_HYDRA_HOST_FILE") | INTEL, "Remove it."),
        (env("I_MPI_PERHOST", "4") | INTEL, "Remove it."),
        (env("HYDRA_LAUNCH_EXTRA_ARGS", "-p 2222") | MPICH, "Remove it."),
        (env("NVIDIA_VISIBLE_DEVICES", "all"), "Remove it."),
        (env("K_MPI_JOB_ROLE", "boss", "Worker"), "Remove it."),
    ],
)
def test_variable_that_the_operator_overwrites_is_a_warning(changes: dict[str, Any], fix: str) -> None:
    [violation] = violations("upstream-contract", changes)
    name = next(value for path, value in changes.items() if path.endswith(".env"))[0]["name"]
    role = WORKER if name.startswith("K_") else LAUNCHER
    assert violation.path == f"{role}.template.spec.containers[0].env[0]"
    fault = f"is lost (the operator sets {name})" if "-mca" in fix else f"the operator's {name} wins"
    assert (violation.message, violation.fix) == (fault, fix)
    assert fix in Finding("upstream-contract", violation).warning
    assert violation.advisory


@pytest.mark.parametrize(
    "changes",
    [
        env("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
        env("OMPI_MCA_orte_keep_fqdn_hostnames", "1"),
        env("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"),
        env("OMPI_MCA_orte_set_default_slots", "2"),
        env("OMPI_MCA_plm_rsh_args", "-p 2222") | MPICH,  # for MPICH the operator sets other variables
        env("OMPI_MCA_plm_rsh_args", "-p 2222", "Worker"),
        env("PRTE_MCA_plm_ssh_args", "-p 2222"),
        env("HYDRA_LAUNCHER_EXTRA_ARGS", "-p 2222") | MPICH,
        env("NVIDIA_VISIBLE_DEVICES", ""),
        env("NVIDIA_VISIBLE_DEVICES", "void"),
        env("NVIDIA_VISIBLE_DEVICES", "all") | {"spec.runLauncherAsWorker": True},
        env("NVIDIA_VISIBLE_DEVICES", "all", "Worker"),
        env("NVIDIA_DRIVER_CAPABILITIES", "compute"),
    ],
)
def test_variable_that_the_operator_does_not_overwrite_is_accepted(changes: dict[str, Any]) -> None:
    assert as_texts(violations("upstream-contract", changes)) == []


GPUS = {"limits": {"nvidia.com/gpu": 2}}
RUNS = {"name": "main", "command": ["bash", "-c", "cd /app && mpirun -np 8 train"]}
SIDECAR = {"name": "logs", "command": ["sh", "-c", "tail -F /var/log/mpirun.log"]}
IDLE = {"name": "idle", "command": ["sh", "-c", "while true; do sleep 60; done > /dev/null"]}
LATER = "but is not the pod's first"


def containers(role: str, *listed: dict[str, Any]) -> dict[str, Any]:
    return {f"{role}.template.spec.containers": list(listed)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (containers("Launcher", SIDECAR | {"command": ["/usr/bin/fluent-bit"]}, RUNS), f"runs mpirun, {LATER}"),
        (containers("Launcher", IDLE, RUNS), f"runs mpirun, {LATER}"),
        (
            containers("Launcher", {"name": "board", "command": ["tensorboard", "--logdir", "/logs"]}, RUNS),
            f"runs mpirun, {LATER}",
        ),
        (containers("Worker", IDLE, {"command": ["/usr/sbin/sshd", "-De"]}), f"runs sshd, {LATER}"),
        (
            containers("Worker", {"name": "proxy"}, {"name": "main", "resources": GPUS}),
            f"has accelerators, {LATER}",
        ),
        (
            containers("Launcher", RUNS, {"name": "main", "resources": GPUS}) | {"spec.runLauncherAsWorker": True},
            f"has accelerators, {LATER}",
        ),
    ],
)
def test_container_that_should_be_the_first_is_a_warning(changes: dict[str, Any], message: str) -> None:
    [violation] = violations("upstream-contract", changes)
    assert violation.path.endswith(".template.spec.containers[1]")
    assert (violation.message, violation.fix, violation.advisory) == (message, "Put it first.", True)
    assert violation.fix in Finding("upstream-contract", violation).warning


@pytest.mark.parametrize(
    "changes",
    [
        containers("Launcher", RUNS, SIDECAR),
        containers("Launcher", {"name": "main", "command": ["/run.sh"]}, SIDECAR),
        # The image, a file in the image, or a variable may start mpirun or sshd.
        *(
            containers(role, {"name": "main", **first}, later)
            for role, later in (("Launcher", RUNS), ("Worker", {"name": "x", "command": ["/usr/sbin/sshd", "-De"]}))
            for first in (
                {},
                {"args": ["start"]},
                {"args": ["--logdir", "/logs"]},
                {"command": ["/start.sh"]},
                {"command": ["bash", "-c", "./go"]},
                {"command": ["tini", "--", "entrypoint"]},
                {"command": ["sh", "-c", "$RUN"]},
                {"command": ["python", "launch.py"]},
                {"command": ["bash", "-c", "service ssh start; mpirun $OPTIONS x"]},
            )
        ),
        containers("Launcher", RUNS, {"name": "check", "command": ["mpirun", "--version"]}),
        containers("Launcher", RUNS, {"name": "metrics", "resources": GPUS}),
        containers("Worker", {"name": "main", "resources": GPUS}, {"name": "metrics", "resources": GPUS}),
        containers("Worker", {"name": "main"}, {"name": "check", "command": ["sh", "-c", "pgrep sshd; sleep 9"]}),
        containers("Worker", {"name": "main", "command": ["bash", "-c", "/usr/sbin/sshd -D & wait"]}, {"name": "x"}),
    ],
)
def test_first_container_that_is_or_may_be_the_right_one_is_accepted(changes: dict[str, Any]) -> None:
    assert as_texts(violations("upstream-contract", changes)) == []


def test_mount_without_path_is_not_a_mount_of_the_operator() -> None:
    mounts = {"Launcher.template.spec.containers.0.volumeMounts": [{"name": "v", "mountPath": ""}]}
    found = violations("upstream-contract", {"spec.sshAuthMountPath": "/", **mounts})
    assert not [violation for violation in found if "volumeMounts" in violation.path]
