"""Environment variables for the ranks.

The variables are set on the launcher's first container, and mpirun passes them on to the ranks. A variable of a
worker's container does not reach the ranks, because sshd starts them with a new environment.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator

from webhook.api import mca
from webhook.api.exports import Exports
from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.injections import Caution
from webhook.kit.patch import PatchBuilder, template_path

FAMILIES: Final = (
    *("NCCL_", "RCCL_", "UCX_", "UCC_", "FI_", "OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "MPIR_CVAR_", "MV2_", "I_MPI_"),
    *("IBV_", "RDMAV_", "MLX4_", "MLX5_", "HCOLL_", "SHARP_", "PSM2_", "PSM3_", "GLOO_", "TENSORPIPE_", "OFI_", "EFA_"),
)
"""Prefixes of the variables that a policy may set.

A prefix must not match a variable that every program reads, such as LD_PRELOAD. If `kubectl apply` drops a matching
variable from a job, the service may restore it, even if a user wrote the variable.
"""
_NAME: Final = re.compile(rf"(?:{'|'.join(FAMILIES)})[A-Za-z0-9_]+")
# Open MPI 4 fails if this variable is set and mpirun has `-x`.
_NEVER: Final = frozenset({mca.ENV_PREFIX + mca.ENV_LIST})


def _checked(variables: dict[str, str]) -> dict[str, str]:
    for name in variables:
        if not _NAME.fullmatch(name):
            families = ", ".join(f"{family}*" for family in FAMILIES)
            raise ValueError(f'"{name}" is not a variable of a network library: {families}')
        if name in _NEVER:
            raise ValueError(f"{name} breaks each job whose mpirun has -x")
    return variables


Variables = Annotated[dict[str, str], AfterValidator(_checked)]
"""Values by validated name."""


def is_for_ranks(_: str, item: Any) -> bool:
    """Whether `set_for_ranks` can write this item of `env` under some policy."""
    name = item["name"] if isinstance(item, dict) and item.keys() == {"name", "value"} else None
    return isinstance(name, str) and name not in _NEVER and bool(_NAME.fullmatch(name))


def set_for_ranks(job: MPIJob, variables: Mapping[str, str], patch: PatchBuilder) -> Iterator[str]:
    """Append variables that the user does not set. Yield a Caution for variables that would not reach the ranks."""
    if job.launcher is None or not job.launcher.template.containers:
        return
    container = job.launcher.template.containers[0]
    exports = Exports.of(job)
    own = {variable.name for variable in container.env or ()}
    env = (*template_path(LAUNCHER), "spec", "containers", 0, "env")
    added, lost = [], []
    for name, value in variables.items():
        if name in own or name in exports.assigned:
            continue
        if not exports.passes(name):
            lost.append(name)
        elif patch.append(env, {"name": name, "value": value}):
            added.append(name)
    if lost:
        by_list = mca.lists_variables(container) or any(mca.ENV_LIST in word for word in container.argv)
        advice = f"{mca.ENV_LIST}: {';'.join(lost)}" if by_list else f"mpirun: -x {' -x '.join(lost)}"
        yield Caution(f"variables of the policy would not reach the ranks. Add to {advice}")
    if added:
        yield f"set {', '.join(added)} for the ranks"
