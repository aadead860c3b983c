"""The rule `rank-environment` reports variables that do not reach the ranks."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.rule_checks import as_texts, violations
from webhook.rules import REGISTRY, Violation

ID = "rank-environment"
ON_LAUNCHER = "(advice) spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].env[0]: "
ON_WORKER = "(advice) spec.mpiReplicaSpecs[Worker].template.spec.containers[0].env[0]: "
ONE = "NCCL_DEBUG does not reach the ranks on workers"


def check(
    command: Any = "mpirun -np 8 x",
    *,
    launcher: Any = None,
    worker: Any = None,
    sshd: Any = None,
    implementation: str = "OpenMPI",
    env_from: Any = None,
    settings: Any = None,
) -> list[Violation]:
    """The violations of a job. `launcher` and `worker` are names of variables that the role's container sets."""
    containers = {role: f"{role}.template.spec.containers.0" for role in ("Launcher", "Worker")}
    changes = {
        "spec.mpiImplementation": implementation,
        f"{containers['Launcher']}.command": command.split() if isinstance(command, str) else command,
        f"{containers['Launcher']}.env": [{"name": name, "value": "1"} for name in launcher or ()],
        f"{containers['Launcher']}.envFrom": env_from,
        f"{containers['Worker']}.command": sshd,
        f"{containers['Worker']}.env": [{"name": name, "value": "1"} for name in worker or ()],
    }
    return violations(ID, changes, settings=settings)


@pytest.mark.parametrize(
    ("command", "names", "message", "fix"),
    [
        ("mpirun -np 8 x", ["NCCL_DEBUG"], ONE, "Add -x NCCL_DEBUG to mpirun."),
        (["bash", "-c", "mpirun x -x NCCL_DEBUG"], ["NCCL_DEBUG"], ONE, "Add -x NCCL_DEBUG to mpirun."),
        (["sh", "-c", "mpirun -np $NP x"], ["NCCL_DEBUG"], ONE, "Add -x NCCL_DEBUG to mpirun."),
        (["sh", "-c", "mpirun a; mpirun b"], ["NCCL_DEBUG"], ONE, "Add -x NCCL_DEBUG to mpirun."),
        (
            "mpirun -x NCCL_DEBUG x",
            ["UCX_TLS", "FI_PROVIDER", "NCCL_DEBUG"],
            "UCX_TLS, FI_PROVIDER do not reach the ranks on workers",
            "Add -x UCX_TLS -x FI_PROVIDER to mpirun.",
        ),
        (
            "mpirun x",
            ["NCCL_A", "NCCL_B", "NCCL_C", "NCCL_D", "NCCL_E"],
            "NCCL_A, NCCL_B, NCCL_C and 2 more do not reach the ranks on workers",
            "Add -x NCCL_A -x NCCL_B -x NCCL_C to mpirun.",
        ),
    ],
)
def test_variable_that_open_mpi_does_not_pass_on_is_reported(
    command: Any, names: list[str], message: str, fix: str
) -> None:
    result = check(command, launcher=names)
    assert (as_texts(result), [one.fix for one in result]) == ([ON_LAUNCHER + message], [fix])


@pytest.mark.parametrize(
    "command",
    [
        "mpirun -x NCCL_DEBUG -np 8 x",
        "mpirun -x NCCL_DEBUG=WARN -np 8 x",
        "mpirun --x NCCL_DEBUG x",
        "mpirun -x NCCL_* x",
        ["mpirun", "-np", "8", "bash", "-c", "export NCCL_DEBUG=INFO; x"],
        ["sh", "-c", "mpirun -np 8 env NCCL_DEBUG=INFO x"],
        ["sh", "-c", "mpirun -x $NAMES x"],
        ["sh", "-c", "mpirun a; mpirun -x NCCL_DEBUG b"],
        ["sh", "-c", "mpirun $OPTIONS x"],
        ["sh", "-c", "mpirun -np $(nproc) x"],
        ["sh", "-c", "mpirun --brand-new x"],
        ["sh", "-c", "mpirun a; mpirun --brand-new x"],
        "mpirun -mca mca_base_env_list NCCL_DEBUG x",
        ["sh", "-c", "export OMPI_MCA_mca_base_env_list=NCCL_DEBUG; mpirun x"],
        ["mpirun", "bash", "-lc", "source /w/env.sh && x"],
        ["sh", "-c", "mpirun bash -c '. /w/env.sh; x'"],
        ["sh", "-c", "mpirun sh -c 'cat /proc/1/environ; x'"],
        "horovodrun -np 8 --hostfile /etc/mpi/hostfile x",
        "mpiexec.hydra -n 8 x",
        "torchrun x",
        None,
    ],
)
def test_variable_that_may_be_passed_on_is_accepted(command: Any) -> None:
    assert check(command, launcher=["NCCL_DEBUG"]) == []


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "OMPI_MCA_pml",
        "MY_NCCL_DEBUG",
        "NVIDIA_VISIBLE_DEVICES",
        "HABANA_VISIBLE_DEVICES",
        "SSH_PORT",
        "LC_ALL",
        "TZ",
    ],
)
def test_variable_that_mpirun_or_the_node_may_read_is_accepted(name: str) -> None:
    assert check(launcher=[name], worker=[name]) == []


@pytest.mark.parametrize("name", ["HF_HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "WANDB_API_KEY"])
@pytest.mark.parametrize("command", ["mpirun -np 8 x", ["bash", "-c", "sleep 5; mpirun -np 8 x | tee log"]])
def test_variable_that_only_ranks_read_is_reported(name: str, command: Any) -> None:
    (violation,) = check(command, launcher=[name])
    assert as_texts([violation]) == [f"{ON_LAUNCHER}{name} does not reach the ranks on workers"]
    assert violation.fix == f"Add -x {name} to mpirun."
    assert as_texts(check("mpiexec -n 8 x", worker=[name], implementation="MPICH")) == [
        f"{ON_WORKER}{name} does not reach the ranks on workers"
    ]


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("export PYTHONPATH=/w; mpirun -np 8 x", ["PYTHONPATH"]),
        ("PYTHONPATH=/w mpirun -np 8 x", ["PYTHONPATH"]),
        ("cd /w && env HF_HOME=/data timeout 1h mpirun -np 8 x", ["HF_HOME"]),
        (
            "export LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH HF_HOME=/data\nmpirun -np 8 x",
            ["LD_LIBRARY_PATH", "HF_HOME"],
        ),
        ("python prepare.py; export NCCL_DEBUG=INFO HF_HOME=/data; mpirun -np 8 x", ["NCCL_DEBUG"]),
        ("export HF_HOME=/data; mpirun -x HF_HOME -np 8 x", []),
        ("export NP=8 PATH=/w:$PATH TZ=UTC; mpirun -np $NP x", []),
        ("export LD_LIBRARY_PATH=/opt/ompi/lib:$LD_LIBRARY_PATH; /opt/ompi/bin/mpirun -np 8 x", []),
        ("export WHERE=/data; cd $WHERE; mpirun -np 8 x", []),
        ("mpirun -np 8 bash -c 'cd /w; export HF_HOME=/data; x'", []),
        ("HF_HOME=/data; mpirun -np 8 x", []),
        ("export HF_HOME=/data; mpirun $OPTIONS x", []),
        ("cat >run.sh <<EOF\nexport NCCL_DEBUG=INFO\nEOF\nmpirun -np 8 run.sh", []),
    ],
)
def test_variable_that_the_launchers_script_exports_is_reported(script: str, names: list[str]) -> None:
    fault = f"{', '.join(names)} {'does' if len(names) == 1 else 'do'} not reach the ranks on workers"
    result = check(["bash", "-c", script])
    assert as_texts(result) == ([f"{ON_LAUNCHER.replace('env[0]', 'command')}{fault}"] if names else [])
    assert [each.fix for each in result] == ([f"Add -x {' -x '.join(names)} to mpirun."] if names else [])


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", "python download.py; mpirun -np 8 x"],
        ["bash", "-c", "mpirun -np 8 x --token $HF_HOME"],
        ["mpirun", "-np", "8", "x", "--token", "$(HF_HOME)"],
        ["bash", "-c", "mpirun -np 8 bash -c 'export HF_HOME=/x; y'"],
        ["/entrypoint.sh", "mpirun", "-np", "8", "x"],
        "mpirun -x HF_HOME -np 8 x",
        "mpirun -x HF_* -np 8 x",
    ],
)
def test_variable_that_the_launcher_may_read_is_accepted(command: Any) -> None:
    assert check(command, launcher=["HF_HOME"], worker=["HF_HOME"]) == []


def test_variable_that_the_launchers_image_may_set_is_accepted() -> None:
    assert check("mpirun -x LD_LIBRARY_PATH x", worker=["LD_LIBRARY_PATH"]) == []
    assert len(check("mpirun -x NCCL_DEBUG x", worker=["NCCL_DEBUG"])) == 1


def test_variable_named_path_is_reported_if_the_command_has_the_folder_of_mpirun() -> None:
    assert as_texts(check("/opt/mpi/bin/mpirun -np 8 x", launcher=["PATH"])) == [
        f"{ON_LAUNCHER}PATH does not reach the ranks on workers"
    ]


@pytest.mark.parametrize(
    ("command", "name", "value", "reaches"),
    [
        ("/opt/ompi/bin/mpirun x", "LD_LIBRARY_PATH", "/opt/ompi/lib", True),
        ("/opt/ompi/bin/mpirun x", "PATH", "/opt/ompi/bin:/usr/bin:/bin", True),
        ("mpirun --prefix /opt/ompi/ x", "LD_LIBRARY_PATH", "/opt/ompi/lib64:", True),
        ("/opt/ompi/bin/mpirun x", "LD_LIBRARY_PATH", "/opt/ompi/lib:/usr/local/cuda/lib64", False),
        ("/opt/ompi/bin/mpirun x", "PATH", "/opt/conda/bin", False),
        ("mpirun x", "LD_LIBRARY_PATH", "/opt/ompi/lib", False),
    ],
)
def test_folders_that_open_mpi_adds_on_workers_are_accepted(command: str, name: str, value: str, reaches: bool) -> None:
    container = "Launcher.template.spec.containers.0"
    env = [{"name": name, "value": value}]
    result = violations(ID, {f"{container}.command": command.split(), f"{container}.env": env})
    assert (result == []) is reaches


def test_variable_that_has_the_node_name_or_is_used_by_another_variable_is_accepted() -> None:
    env = "Launcher.template.spec.containers.0.env"
    named = {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    other = [{"name": "A", "value": "1"}, {"name": "OMPI_MCA_b", "value": "$(A)"}]
    assert violations(ID, {env: [named, *other]}) == []


def test_variable_that_the_worker_writes_for_sshd_is_accepted() -> None:
    script = ["bash", "-c", "env > /etc/environment; /usr/sbin/sshd -De"]
    assert check(launcher=["NCCL_DEBUG", "HF_HOME"], worker=["NCCL_DEBUG", "HF_HOME"], sshd=script) == []
    assert len(check(launcher=["HF_HOME"], sshd=script)) == 1


@pytest.mark.parametrize("implementation", ["MPICH", "Intel"])
def test_hydra_passes_on_variables_of_the_launcher(implementation: str) -> None:
    assert check("mpiexec -n 8 x", launcher=["NCCL_DEBUG"], implementation=implementation) == []


@pytest.mark.parametrize(
    ("command", "implementation", "fix"),
    [
        ("mpirun x", "OpenMPI", "Set it on the launcher, with -x for mpirun."),
        ("mpirun -x NCCL_DEBUG x", "OpenMPI", "Set it on the launcher, with -x for mpirun."),
        ("mpiexec -n 8 x", "MPICH", "Set it on the launcher."),
        ("mpiexec -genv UCX_TLS tcp -n 8 x", "Intel", "Set it on the launcher."),
        ("horovodrun -np 8 x", "OpenMPI", "Set it on the launcher."),
    ],
)
@pytest.mark.parametrize(
    "sshd",
    [None, [], ["/usr/sbin/sshd", "-De"], ["sh", "-c", "mkdir -p /run/sshd; /usr/sbin/sshd -D -p 2222"]],
)
def test_variable_set_only_on_the_worker_is_reported(command: str, implementation: str, fix: str, sshd: Any) -> None:
    result = check(command, worker=["NCCL_DEBUG"], implementation=implementation, sshd=sshd)
    assert (as_texts(result), [one.fix for one in result]) == ([ON_WORKER + ONE], [fix])


def test_several_variables_of_the_worker_are_one_violation() -> None:
    (violation,) = check("mpiexec -n 8 x", worker=["NCCL_A", "NCCL_B"], implementation="MPICH")
    assert violation.message == "NCCL_A, NCCL_B do not reach the ranks on workers"
    assert violation.fix == "Set them on the launcher."


@pytest.mark.parametrize(
    ("command", "implementation", "launcher"),
    [
        ("mpirun -x NCCL_DEBUG x", "OpenMPI", ["NCCL_DEBUG"]),
        ("mpirun -x NCCL_DEBUG=INFO x", "OpenMPI", []),
        ("mpiexec -n 8 x", "MPICH", ["NCCL_DEBUG"]),
        ("mpiexec -genv NCCL_DEBUG INFO -n 8 x", "Intel", []),
        ("mpiexec -env NCCL_DEBUG=INFO -n 8 x", "Intel", []),
        ("mpiexec -genvlist PATH -n 8 x", "Intel", []),
        ("mpiexec -envnone -n 8 x", "MPICH", []),
        (["sh", "-c", "export NCCL_DEBUG=INFO; mpiexec -n 8 x"], "MPICH", []),
        (["sh", "-c", "NCCL_DEBUG=INFO mpirun -x NCCL_DEBUG x"], "OpenMPI", []),
    ],
)
def test_variable_of_the_worker_that_reaches_the_ranks_is_accepted(
    command: Any, implementation: str, launcher: list[str]
) -> None:
    assert check(command, worker=["NCCL_DEBUG"], implementation=implementation, launcher=launcher) == []


@pytest.mark.parametrize(
    "sshd",
    [
        ["/start.sh"],
        ["/entrypoint.sh", "/usr/sbin/sshd", "-D"],
        ["sh", "-c", "env > /etc/environment; /usr/sbin/sshd -D"],
        ["sh", "-c", "printenv >> ~/.ssh/environment; sshd -D"],
        ["sh", "-c", "export -p > /etc/profile.d/x.sh; sshd -D"],
        ["/usr/sbin/sshd", "-D", "-o", "SetEnv=NCCL_DEBUG=INFO"],
        ["sleep", "infinity"],
    ],
)
def test_variable_that_the_worker_may_pass_on_is_accepted(sshd: Any) -> None:
    assert check(worker=["NCCL_DEBUG"], sshd=sshd) == []


def test_unknown_variables_of_the_launcher_cause_no_violation() -> None:
    assert check(worker=["NCCL_DEBUG"], env_from=[{"configMapRef": {"name": "env"}}]) == []


def test_variable_of_both_roles_is_reported_once() -> None:
    assert as_texts(check(launcher=["NCCL_DEBUG"], worker=["NCCL_DEBUG"])) == [ON_LAUNCHER + ONE]


def test_variables_of_launcher_and_worker_are_both_reported() -> None:
    other = "FI_PROVIDER does not reach the ranks on workers"
    assert as_texts(check(launcher=["NCCL_DEBUG"], worker=["FI_PROVIDER"])) == [ON_LAUNCHER + ONE, ON_WORKER + other]


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_job_without_launcher_or_worker_is_accepted(role: str) -> None:
    assert violations(ID, {role: None}) == []


def test_policy_can_set_the_names_of_reported_variables() -> None:
    assert len(check(launcher=["MINE", "NCCL_DEBUG"], settings={"names": ["MINE"]})) == 1
    assert check(launcher=["NCCL_DEBUG"], settings={"names": [], "others": False}) == []


def test_variable_in_mca_base_env_list_is_accepted() -> None:
    """Open MPI 4 fails if it gets the list together with `-x`, so the rule must not suggest `-x`."""
    listed = "OMPI_MCA_mca_base_env_list"
    assert check(launcher=["NCCL_DEBUG", listed]) == []
    assert check(launcher=[listed], worker=["NCCL_DEBUG"]) == []
    assert check("mpirun -mca mca_base_env_list NCCL_DEBUG x", launcher=["NCCL_DEBUG"]) == []
    assert len(check(launcher=["NCCL_DEBUG", "OMPI_MCA_mca_base_env"])) == 1


@pytest.mark.parametrize("name", ["", "*", "A B", "A*B", "=", "1A"])
def test_invalid_names_in_the_settings_are_rejected(name: str) -> None:
    with pytest.raises(ValidationError, match="is not the name of a variable"):
        REGISTRY[ID].settings.model_validate({"names": [name]})


def test_message_lists_only_the_first_variables() -> None:
    (violation,) = check(launcher=[f"NCCL_{number}" for number in range(1_009)])
    assert "and 1006 more" in violation.message


INTERFACE = "NCCL_SOCKET_IFNAME"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("command", ["mpirun", "-x", f"{INTERFACE}=ib0", "t"], f"command: ib0. Write {INTERFACE}=eth0."),
        ("command", ["bash", "-c", f"mpirun -x {INTERFACE}='=eno1' t"], f"command: eno1. Write {INTERFACE}=eth0."),
        ("env", [{"name": INTERFACE, "value": "bond0"}], "env[0]: bond0. Set value to eth0."),
        ("env", [{"name": INTERFACE, "value": "eth0"}], None),
        ("env", [{"name": INTERFACE, "value": "^ib0"}], None),
        ("env", [{"name": INTERFACE, "value": "ib0,eth0"}], None),
    ],
)
def test_network_interface_that_pods_lack_is_reported(field: str, value: Any, expected: str | None) -> None:
    changes = {"Launcher.template.spec.containers.0.command": ["mpirun", "-x", INTERFACE, "t"]}
    changes |= {f"Launcher.template.spec.containers.0.{field}": value}
    result = [f"{each.path}: {each.message}. {each.fix}" for each in violations(ID, changes)]
    where = "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0]."
    text = f"{where}{expected}".replace(": ", ": a pod has no interface ", 1)
    assert result == ([text] if expected else [])
    for pod in (
        {"Worker.template.spec.hostNetwork": True},
        {"Worker.template.metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "ib"}}},
        {"Worker.template.spec.resourceClaims": [{"name": "nic", "resourceClaimName": "nic"}]},
    ):
        assert violations(ID, changes | pod) == []
