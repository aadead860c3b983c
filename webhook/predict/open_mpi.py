"""Predicts that Open MPI refuses to start more ranks than slots.

The image may contain Open MPI 4 or 5, which read different settings. The prediction is uncertain if an option or a
variable may let one of these releases start more ranks than slots. For example, a rank file lets Open MPI 4 put several
ranks on one slot.
https://docs.open-mpi.org/en/v5.0.x/launching-apps/scheduling.html
"""

from typing import Final

from webhook.api.mpirun import HOSTFILE, Invocation
from webhook.api.mpirun_options import HOSTS
from webhook.api.pod import Container

# horovodrun is left out, because it may start another MPI implementation or none.
_PROGRAMS: Final = frozenset(("mpirun", "mpiexec", "orterun"))
_OTHER_MPI: Final = ("hydra", "impi", "intel", "mpich", "mvapich")
# These options do not change the number of ranks on a host.
_NEUTRAL: Final = frozenset(
    (
        *("allow-run-as-root", "bind-to", "bind-to-core", "bind-to-socket", "c", "display-allocation", "display-map"),
        *("merge-stderr-to-stdout", "n", "nooversubscribe", "np", "output-filename", "q", "quiet", "report-bindings"),
        *("tag-output", "timestamp-output", "v", "verbose", "wd", "wdir", "x"),
    )
)
_PARAMETERS: Final = frozenset(("gmca", "gomca", "mca", "omca"))
# Frameworks of Open MPI that move data or start daemons: https://docs.open-mpi.org/en/v5.0.x/mca.html
_TRANSPORTS: Final = ("btl", "coll", "io", "mtl", "oob", "osc", "plm_rsh", "plm_ssh", "pml")
_MAPPED_BY: Final = frozenset(("core", "l3cache", "node", "numa", "slot", "socket"))
_OUR_HOSTFILE: Final = "PRTE_MCA_prte_default_hostfile"
# If one of these variables is set, Open MPI reads a different parameter file.
_PLACES: Final = frozenset(("HOME", "OPAL_PREFIX", "OMPI_PREFIX", "PMIX_PREFIX", "PRTE_PREFIX"))
# Folders that may contain a parameter file or a different hostfile.
_FOLDERS: Final = ("/etc", "/home", "/opt", "/root", "/usr")


def is_certain_to_refuse(container: Container, call: Invocation) -> bool:
    """True if `call` is the container's only program and certainly fails because it starts more ranks than slots."""
    if not is_all_that_runs(container, call) or not call.refuses or call.options is None:
        return False
    if container.env_from or _mounts_settings(container):
        return False
    if not all(_is_neutral(name, values) for name, values in call.options):
        return False
    return _reads_hostfile(container, call) and all(
        variable.name not in _PLACES and (_is_ours(variable.name, variable.value) or _is_harmless(variable.name))
        for variable in container.env or ()
    )


def is_all_that_runs(container: Container, call: Invocation) -> bool:
    """True if the container runs only `call`, and the program's path does not contain the name of another MPI."""
    path = (container.command or ("",))[0]
    program = path.rpartition("/")[2]
    return program in _PROGRAMS and program == call.program and not any(name in path.lower() for name in _OTHER_MPI)


def _is_neutral(name: str, values: tuple[str, ...]) -> bool:
    if any("$(" in value for value in values):
        return False  # Kubernetes replaces $(NAME) with the value of a variable
    if name in HOSTS:
        return values == (HOSTFILE,)
    if name in _PARAMETERS:
        return values[0].startswith(_TRANSPORTS)
    return name in _NEUTRAL or (name == "map-by" and "".join(values) in _MAPPED_BY)


def _reads_hostfile(container: Container, call: Invocation) -> bool:
    # Release 5 reads the hostfile only if an option or a variable names it. Otherwise, it starts as many ranks as the
    # launcher's node has cores.
    named = any(name in HOSTS for name, _ in call.options or ())
    return named or any(_is_ours(variable.name, variable.value) for variable in container.env or ())


def _is_ours(name: str, value: object) -> bool:
    return name == _OUR_HOSTFILE and value == HOSTFILE


def _is_harmless(name: str) -> bool:
    _, is_parameter, parameter = name.partition("_MCA_")
    return not is_parameter or parameter.startswith(_TRANSPORTS)


def _mounts_settings(container: Container) -> bool:
    return any(
        (path := mount.mount_path or "") in _FOLDERS or path.startswith(tuple(f"{folder}/" for folder in _FOLDERS))
        for mount in container.volume_mounts or ()
    )
