import pytest

from tests.support.injecting import PATHS, inject, mpijob, operations, pod_spec
from webhook.injections.mpi_env import VARIABLES

ENV = f"{PATHS['Launcher']}/spec/containers/0/env"
HOSTFILE = {"name": "PRTE_MCA_prte_default_hostfile", "value": "/etc/mpi/hostfile"}
SSH = {"name": "PRTE_MCA_plm_ssh_args", "value": "-o ConnectionAttempts=10"}
HYDRA = {"name": "HYDRA_LAUNCHER_EXTRA_ARGS", "value": "-o ConnectionAttempts=10"}
OPEN_MPI = [(ENV, [HOSTFILE]), (f"{ENV}/-", SSH)]


def with_env(env, **spec):
    return mpijob(launcher={"spec": {"containers": [{"name": "mpi", "env": env}, {"name": "sidecar"}]}}, **spec)


@pytest.mark.parametrize(
    ("spec", "added", "notes"),
    [
        ({}, OPEN_MPI, ["added PRTE_MCA_prte_default_hostfile, PRTE_MCA_plm_ssh_args to the launcher"]),
        (
            {"mpiImplementation": None},
            OPEN_MPI,
            ["added PRTE_MCA_prte_default_hostfile, PRTE_MCA_plm_ssh_args to the launcher"],
        ),
        (
            {"mpiImplementation": "OpenMPI"},
            OPEN_MPI,
            ["added PRTE_MCA_prte_default_hostfile, PRTE_MCA_plm_ssh_args to the launcher"],
        ),
        ({"mpiImplementation": "MPICH"}, [(ENV, [HYDRA])], ["added HYDRA_LAUNCHER_EXTRA_ARGS to the launcher"]),
        ({"mpiImplementation": "Intel"}, [], []),
        ({"mpiImplementation": "LAM"}, [], []),
    ],
)
def test_what_each_implementation_reads(spec, added, notes):
    assert operations("mpi-env", mpijob(**spec)) == added
    assert inject("mpi-env", mpijob(**spec))[1] == notes


@pytest.mark.parametrize(
    ("env", "added"),
    [
        (None, OPEN_MPI),
        ([], [(f"{ENV}/-", HOSTFILE), (f"{ENV}/-", SSH)]),
        ([{"name": "PATH", "value": "/bin"}], [(f"{ENV}/-", HOSTFILE), (f"{ENV}/-", SSH)]),
        ([{"name": HOSTFILE["name"], "value": "/my/hosts"}], [(f"{ENV}/-", SSH)]),
        ([{"name": SSH["name"], "value": ""}], [(f"{ENV}/-", HOSTFILE)]),
        ([{"name": SSH["name"]}, {"name": SSH["name"]}], [(f"{ENV}/-", HOSTFILE)]),
        ([{"name": HOSTFILE["name"], "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}, SSH], []),
    ],
)
def test_what_the_user_sets_stays_and_no_name_comes_twice(env, added):
    assert operations("mpi-env", with_env(env)) == added


def test_the_container_after_the_first_gets_nothing():
    assert all(path.startswith(ENV) for path, _ in operations("mpi-env", with_env([])))


@pytest.mark.parametrize("spec", [None, pod_spec(containers=[]), pod_spec(containers=None), {}])
def test_nothing_without_a_container(spec):
    assert operations("mpi-env", mpijob(launcher={"spec": spec})) == []


def test_nothing_without_a_launcher():
    job = mpijob()
    job["spec"]["mpiReplicaSpecs"]["Launcher"] = None
    assert operations("mpi-env", job) == []


def test_never_what_makes_open_mpi_4_fail_beside_x():
    assert not any("base_env_list" in name for variables in VARIABLES.values() for name in variables)
