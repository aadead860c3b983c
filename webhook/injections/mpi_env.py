"""Current MPI releases get the hostfile, several attempts of ssh, and the job's options of ssh.

The operator sets variables of the launcher with the path of the hostfile and with several attempts of ssh. Open MPI 5
and current MPICH read variables with other names. Without the hostfile, Open MPI 5 runs every rank on the launcher and
reports success (mpi-operator issue 842). With a single attempt of ssh, the job fails if a worker is not ready yet.
Therefore the launcher's first container gets the variables with the new names. Earlier releases ignore them, options of
mpirun override them, and Intel MPI does not need them.

The parameter `plm_rsh_args` contains options of ssh such as a port. Open MPI 5 does not read this parameter either. The
value is copied to `PRTE_MCA_plm_ssh_args`, from mpirun's command line (`-mca plm_rsh_args "-p 2222"`) or from the
launcher's variable `OMPI_MCA_plm_rsh_args`. A value with a shell variable cannot be copied and causes a warning.

A variable in the container's `env` stays unchanged. A variable from `envFrom` is overridden, because the webhook does
not read `envFrom`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.api import mca
from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.api.mpirun import HOSTFILE
from webhook.api.pod import Container
from webhook.injections import Caution, injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, equal, in_launcher, named
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings

# The value that the operator sets (mpi-operator `pkg/controller/mpi_job_controller.go`).
SSH_ARGS: Final = "-o ConnectionAttempts=10"

OLD: Final = "plm_rsh_args"  # up to Open MPI 4
NEW: Final = "plm_ssh_args"  # from Open MPI 5 on
NEW_VARIABLE: Final = f"PRTE_MCA_{NEW}"
OLD_VARIABLE: Final = mca.ENV_PREFIX + OLD

# Do not add OMPI_MCA_mca_base_env_list: Open MPI 4 fails if the user also passes `-x` to mpirun.
VARIABLES: Mapping[str, Mapping[str, str]] = {
    # openpmix/prrte `src/runtime/prte_mca_params.c` and `src/mca/plm/ssh/plm_ssh_component.c`
    "OpenMPI": {"PRTE_MCA_prte_default_hostfile": HOSTFILE, NEW_VARIABLE: SSH_ARGS},
    # pmodels/mpich `src/pm/hydra/lib/tools/bootstrap/external/external_common_launch.c`
    "MPICH": {"HYDRA_LAUNCHER_EXTRA_ARGS": SSH_ARGS},
}


_ENV: Final = ("spec", "containers", ITEM, "env", ITEM)
_ITEMS: Final = tuple(
    {"name": name, "value": value} for variables in VARIABLES.values() for name, value in variables.items()
)
FORMS: Final = (
    in_launcher(*_ENV, holds=equal(*_ITEMS)),
    in_launcher(*_ENV, holds=named(NEW_VARIABLE), when=ComesBack.SAME_FILE),
)


@injection("mpi-env", InjectionSettings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    if job.launcher is None or not job.launcher.template.containers:
        return
    container = job.launcher.template.containers[0]
    env = (*template_path(LAUNCHER), "spec", "containers", 0, "env")
    variables = VARIABLES.get(job.spec.mpi_implementation or "OpenMPI", {})
    ssh_args = _ssh_args(container, job) if NEW_VARIABLE in variables else ""
    if ssh_args:
        # ssh uses the first value of an option: the job's options must be first.
        attempts = "" if "connectionattempts" in ssh_args.lower() else f" {SSH_ARGS}"
        variables = {**variables, NEW_VARIABLE: ssh_args + attempts}
    added = [name for name, value in variables.items() if patch.append(env, {"name": name, "value": value})]
    if added:
        copied = f", with {OLD}" if ssh_args and NEW_VARIABLE in added else ""
        yield f"added {', '.join(added)} to the launcher{copied}"
    if ssh_args is None and NEW_VARIABLE in added:
        yield Caution(f"{OLD} is not fixed text, and Open MPI 5 does not read it: set {NEW_VARIABLE}")


def _ssh_args(container: Container, job: MPIJob) -> str | None:
    """The launcher's options of ssh for Open MPI 4; empty if there are none, None if they are unknown."""
    text = " ".join(container.argv)
    if NEW in text:
        return ""  # the user has set the new parameter
    if OLD in text:
        values = [value for call in job.mpirun_calls for name, value in mca.parameters(call.words) if name == OLD]
        # Other occurrences are in the value of a variable, or in a script that the command writes.
        return _literal(*set(values)) if text.count(OLD) == len(values) else None
    return _literal(*[variable.value for variable in container.env or () if variable.name == OLD_VARIABLE])


def _literal(*values: str | None) -> str | None:
    if not values:
        return ""
    value = values[0]
    return value.strip() if len(values) == 1 and value is not None and mca.is_literal(value) else None
