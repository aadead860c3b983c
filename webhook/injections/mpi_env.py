"""Current MPI releases find their hosts, and wait for them.

The operator tells mpirun in environment variables of the launcher where the hostfile is, and to try ssh more than once.
Open MPI 5 and current MPICH read other names: without the hostfile Open MPI 5 runs every rank on the launcher and
reports success (mpi-operator issue 842), and with one try of ssh a worker that is not up yet fails the job. The names
that they read go on the launcher's first container. Earlier releases ignore them, the options of mpirun outrank them,
and Intel MPI needs none.

A variable that the user sets stays. One that comes from `envFrom` cannot be seen here, and is overridden.
"""

from collections.abc import Iterator, Mapping

from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.injections import injection
from webhook.injections.patch import PatchBuilder
from webhook.kit.context import Context
from webhook.kit.settings import InjectionSettings

# The operator's own values (mpi-operator `pkg/controller/mpi_job_controller.go`).
HOSTFILE = "/etc/mpi/hostfile"
SSH_ARGS = "-o ConnectionAttempts=10"

# Never OMPI_MCA_mca_base_env_list: Open MPI 4 ends with an error when the user also passes `-x` to mpirun.
VARIABLES: Mapping[str, Mapping[str, str]] = {
    # openpmix/prrte `src/runtime/prte_mca_params.c` and `src/mca/plm/ssh/plm_ssh_component.c`
    "OpenMPI": {"PRTE_MCA_prte_default_hostfile": HOSTFILE, "PRTE_MCA_plm_ssh_args": SSH_ARGS},
    # pmodels/mpich `src/pm/hydra/lib/tools/bootstrap/external/external_common_launch.c`
    "MPICH": {"HYDRA_LAUNCHER_EXTRA_ARGS": SSH_ARGS},
}


@injection("mpi-env", InjectionSettings, since="0.1")
def inject(job: MPIJob, settings: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    """Append the variables that are missing to the launcher's first container."""
    if job.launcher is None or not job.launcher.template.containers:
        return
    env = ("spec", "mpiReplicaSpecs", LAUNCHER, "template", "spec", "containers", 0, "env")
    variables = VARIABLES.get(job.spec.mpi_implementation or "OpenMPI", {})
    added = [name for name, value in variables.items() if patch.append(env, {"name": name, "value": value})]
    if added:
        yield f"added {', '.join(added)} to the launcher"
