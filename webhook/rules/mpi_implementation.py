"""The MPI implementation is one that the platform supports.

The operator supports Open MPI, Intel MPI and MPICH. The setting `allowed` can exclude some of them.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from webhook.api.mpijob import IMPLEMENTATIONS, MPIJob
from webhook.kit.context import Context
from webhook.kit.settings import RuleSettings
from webhook.rules import Violation, not_allowed, rule


class Settings(RuleSettings):
    """The implementations that jobs may choose."""

    allowed: tuple[Literal["OpenMPI", "Intel", "MPICH"], ...] = Field(
        ("OpenMPI", "Intel", "MPICH"), min_length=1, description="The values a job may choose."
    )


@rule("mpi-implementation", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """The rule `upstream-contract` reports unknown implementations."""
    value = job.spec.mpi_implementation
    if value in IMPLEMENTATIONS and value not in settings.allowed:
        yield not_allowed("spec.mpiImplementation", value, settings.allowed, default="OpenMPI")
