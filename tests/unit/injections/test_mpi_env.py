import pytest

from tests.support.injecting import PATHS, inject, mpijob, operations
from webhook.injections.mpi_env import VARIABLES

ENV = f"{PATHS['Launcher']}/spec/containers/0/env"
HOSTFILE = {"name": "PRTE_MCA_prte_default_hostfile", "value": "/etc/mpi/hostfile"}
SSH = {"name": "PRTE_MCA_plm_ssh_args", "value": "-o ConnectionAttempts=10"}
HYDRA = {"name": "HYDRA_LAUNCHER_EXTRA_ARGS", "value": "-o ConnectionAttempts=10"}
PLAIN = "added PRTE_MCA_prte_default_hostfile, PRTE_MCA_plm_ssh_args to the launcher"
OPEN_MPI = [(ENV, [HOSTFILE]), (f"{ENV}/-", SSH)]


def with_env(env, **spec):
    return mpijob(launcher={"spec": {"containers": [{"name": "mpi", "env": env}, {"name": "sidecar"}]}}, **spec)


@pytest.mark.parametrize(
    ("spec", "added", "notes"),
    [
        ({}, OPEN_MPI, [PLAIN]),
        ({"mpiImplementation": "MPICH"}, [(ENV, [HYDRA])], ["added HYDRA_LAUNCHER_EXTRA_ARGS to the launcher"]),
        ({"mpiImplementation": "Intel"}, [], []),
    ],
)
def test_launcher_gets_the_variables_of_the_mpi_implementation(spec, added, notes):
    assert operations("mpi-env", mpijob(**spec)) == added
    assert inject("mpi-env", mpijob(**spec))[1] == notes


@pytest.mark.parametrize(
    ("env", "added"),
    [
        (None, OPEN_MPI),
        ([], [(f"{ENV}/-", HOSTFILE), (f"{ENV}/-", SSH)]),
        ([{"name": HOSTFILE["name"], "value": "/my/hosts"}], [(f"{ENV}/-", SSH)]),
        ([{"name": HOSTFILE["name"], "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}, SSH], []),
    ],
)
def test_variables_of_the_user_stay_and_are_not_repeated(env, added):
    assert operations("mpi-env", with_env(env)) == added


def test_variable_that_conflicts_with_the_option_x_of_open_mpi_4_is_never_injected():
    assert not any("base_env_list" in name for variables in VARIABLES.values() for name in variables)


def launched(script=None, env=None, **spec):
    """A job whose launcher runs `script`. A string runs in bash, and a list is the command. The default is mpirun."""
    command = ["bash", "-c", script] if isinstance(script, str) else script
    container = {"name": "mpi", "command": command or ["mpirun", "-np", "2", "x"], "env": env or []}
    return mpijob(launcher={"spec": {"containers": [container]}}, **spec)


COPIED = "added PRTE_MCA_prte_default_hostfile, PRTE_MCA_plm_ssh_args to the launcher, with plm_rsh_args"
LOST = "plm_rsh_args is not fixed text, and Open MPI 5 does not read it: set PRTE_MCA_plm_ssh_args"
OLD_VARIABLE = "OMPI_MCA_plm_rsh_args"
ATTEMPTS = "-o ConnectionAttempts=10"


def ssh_args(job):
    """(the injected value, the notes); the value is None if the variable is not injected."""
    added, notes = inject("mpi-env", job)
    values = [value["value"] for value in added.values() if isinstance(value, dict) and value["name"] == SSH["name"]]
    return (values or [None])[0], notes


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ('mpirun -mca plm_rsh_args "-p 2222" -np 2 x', f"-p 2222 {ATTEMPTS}"),
        (["mpirun", "-mca", "plm_rsh_args", "-p 2222 -i /keys/id", "x"], f"-p 2222 -i /keys/id {ATTEMPTS}"),
        ('set -e\nexport A=$(date)\nmpirun --odd -np $N -mca plm_rsh_args "-p 22" x | tee log', f"-p 22 {ATTEMPTS}"),
        ('mpirun -mca plm_rsh_args "-p 22" x && mpirun y', f"-p 22 {ATTEMPTS}"),
        ('mpirun -mca plm_rsh_args "-o connectionattempts=3" x', "-o connectionattempts=3"),
    ],
)
def test_ssh_options_on_the_command_line_are_copied(script, value):
    assert ssh_args(launched(script)) == (value, [COPIED])


@pytest.mark.parametrize(
    "script",
    [
        'mpirun -mca plm_rsh_args "-p $PORT" x',
        'mpirun -mca plm_rsh_args "-p 1" x; mpirun -mca plm_rsh_args "-p 2" x',
        'OPTIONS="-mca plm_rsh_args -p2222"; mpirun $OPTIONS x',
        'export OMPI_MCA_plm_rsh_args="-p 2222"; mpirun x',
        'mpirun -np $(nproc) -mca plm_rsh_args "-p 2222" x',
        'cat <<EOF > run.sh\nmpirun -mca plm_rsh_args "-p 2222" x\nEOF\nsh run.sh',
        ["python", "launch.py", "--options=-mca plm_rsh_args -p2222"],
    ],
)
def test_ssh_options_that_cannot_be_read_are_reported(script):
    assert ssh_args(launched(script)) == (ATTEMPTS, [PLAIN, LOST])


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"value": "-p 2222"}, (f"-p 2222 {ATTEMPTS}", [COPIED])),
        ({"value": ""}, (ATTEMPTS, [PLAIN])),
        ({"value": "-p $(PORT)"}, (ATTEMPTS, [PLAIN, LOST])),
        ({"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}, (ATTEMPTS, [PLAIN, LOST])),
    ],
)
def test_ssh_options_in_the_environment_are_copied_or_reported(env, expected):
    assert ssh_args(launched(env=[{"name": OLD_VARIABLE, **env}])) == expected


def test_command_line_overrides_the_environment():
    job = launched('mpirun -mca plm_rsh_args "-p 1" x', env=[{"name": OLD_VARIABLE, "value": "-p 2"}])
    assert ssh_args(job) == (f"-p 1 {ATTEMPTS}", [COPIED])


@pytest.mark.parametrize("script", ['mpirun -mca plm_rsh_args "-p 1" x', 'mpirun -mca plm_rsh_args "-p $P" x'])
def test_variable_of_the_user_stays(script):
    job = launched(script, env=[{"name": SSH["name"], "value": "-p 3"}])
    assert ssh_args(job) == (None, ["added PRTE_MCA_prte_default_hostfile to the launcher"])


@pytest.mark.parametrize(
    "script",
    [
        'mpirun -mca plm_rsh_args "-p $P" --prtemca plm_ssh_args "-p $P" x',
    ],
)
def test_job_that_sets_the_parameter_of_open_mpi_5_gets_no_copy_and_no_warning(script):
    assert ssh_args(launched(script)) == (ATTEMPTS, [PLAIN])


@pytest.mark.parametrize(("implementation", "notes"), [("MPICH", 1), ("Intel", 0)])
def test_plm_rsh_args_are_ignored_if_the_implementation_is_not_open_mpi(implementation, notes):
    job = launched('mpirun -mca plm_rsh_args "-p $P" x', mpiImplementation=implementation)
    value, messages = ssh_args(job)
    assert (value, len(messages)) == (None, notes)
