"""Variables that the operator appends to `env` in the first container of the launcher and of each worker.

The last value of a variable counts, so the operator's value replaces the user's.
https://github.com/kubeflow/mpi-operator/blob/v0.8.0/pkg/controller/mpi_job_controller.go (`newWorker`,
`newLauncherPodTemplate`). NVIDIA_DRIVER_CAPABILITIES is left out: it has no effect without devices.
"""

from collections.abc import Mapping
from typing import Final

from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.api.mpirun import HOSTFILE

_HOSTFILE: Final = (HOSTFILE,)
_SSH_ARGS: Final = ("-o ConnectionAttempts=10",)
_NO_DEVICES: Final = ("", "none", "void")
_OF_IMPLEMENTATION: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "OpenMPI": {
        "OMPI_MCA_orte_keep_fqdn_hostnames": ("true", "1", "t", "yes"),
        "OMPI_MCA_orte_default_hostfile": _HOSTFILE,
        "OMPI_MCA_plm_rsh_args": _SSH_ARGS,
    },
    "Intel": {"I_MPI_HYDRA_HOST_FILE": _HOSTFILE, "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ARGS},
    "MPICH": {"HYDRA_HOST_FILE": _HOSTFILE, "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_ARGS},
}
_SLOTS: Final = {"OpenMPI": "OMPI_MCA_orte_set_default_slots", "Intel": "I_MPI_PERHOST"}


def values(role: str, job: MPIJob) -> dict[str, tuple[str, ...]]:
    """For each variable, all values with the same effect as the operator's value. The job may lack the operator's
    defaults.
    """
    variables: dict[str, tuple[str, ...]] = {"K_MPI_JOB_ROLE": (role.lower(),)}
    if role == LAUNCHER:
        implementation = job.spec.mpi_implementation or "OpenMPI"
        variables |= _OF_IMPLEMENTATION.get(implementation, {})
        if slots := _SLOTS.get(implementation):
            variables[slots] = (str(job.spec.slots_per_worker or 1),)
        if not job.spec.run_launcher_as_worker:
            variables["NVIDIA_VISIBLE_DEVICES"] = _NO_DEVICES
    return variables
