"""Variables for the ranks.

They go on the launcher's first container: sshd on the workers gives ranks a fresh environment, and mpirun brings them
what it passes on.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator

from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.api.mpirun import Exports
from webhook.injections import Caution
from webhook.kit.patch import PatchBuilder, template_path

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Open MPI 4 ends with an error where this is set and mpirun has `-x`.
_NEVER: Final = frozenset({"OMPI_MCA_mca_base_env_list"})


def _checked(variables: dict[str, str]) -> dict[str, str]:
    for name in variables:
        if not _NAME.fullmatch(name):
            raise ValueError(f'"{name}" is not the name of a variable')
        if name in _NEVER:
            raise ValueError(f"{name} breaks each job whose mpirun has -x")
    return variables


Variables = Annotated[dict[str, str], AfterValidator(_checked)]
"""Names and values of environment variables, checked."""


def set_for_ranks(job: MPIJob, variables: Mapping[str, str], patch: PatchBuilder) -> Iterator[str]:
    """Append the variables that reach the ranks and that the user does not set; a Caution for those that do not."""
    if job.launcher is None or not job.launcher.template.containers:
        return
    container = job.launcher.template.containers[0]
    exports = Exports(container.command, container.args, job.spec.mpi_implementation or "OpenMPI")
    own = {variable.name for variable in container.env or ()}
    added, lost = [], []
    for name, value in variables.items():
        if name in own or exports.sets(name):
            continue
        if not exports.passes(name):
            lost.append(name)
        elif patch.append(
            (*template_path(LAUNCHER), "spec", "containers", 0, "env"),
            {"name": name, "value": value},
        ):
            added.append(name)
    if lost:
        yield Caution(f"variables of the policy would not reach the ranks. Add to mpirun: -x {' -x '.join(lost)}")
    if added:
        yield f"set {', '.join(added)} for the ranks"
