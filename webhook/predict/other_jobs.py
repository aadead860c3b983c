"""The kinds of jobs besides MPIJobs that use quotas and Kueue. Optional parts of the service add these kinds.

In the reservations of quota such a job has the name `<kind>/<name>`. The name of an MPIJob contains no slash.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import Any, Protocol

from webhook.api.mpijob import MPIJob
from webhook.api.quota_charges import Charge
from webhook.cluster.resource import ByNamespace, Resource
from webhook.kit.context import Context
from webhook.kit.optional_parts import parts


class JobRecord(Protocol):
    """An existing job."""

    @property
    def uid(self) -> str: ...

    @property
    def over(self) -> bool:
        """Whether the job has ended and uses no more quota."""


class PodsMade(Protocol):
    """The pods in a namespace that belong to jobs of a kind."""

    def of(self, name: str, role: str) -> int:
        """The number of the job's existing pods of a role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherJobs:
    """A kind of jobs."""

    kind: str
    framework: str
    """Its name in Kueue's list of frameworks."""
    jobs: Resource[ByNamespace, Any]
    """A store of `JobRecord`s."""
    pods: Resource[ByNamespace, Any]
    made: Callable[[Context], PodsMade | None]
    """Returns the pods in the context's namespace; None if they are unknown."""
    objects: Callable[[int], tuple[Charge, ...]]
    """Returns the objects created for a job with this number of roles: the job itself, and all except its pods."""


@cache
def all_kinds() -> tuple[OtherJobs, ...]:
    return tuple(resolve_name(part.jobs) for part in parts() if part.jobs)


def of_job(job: MPIJob) -> OtherJobs | None:
    """The kind that this MPIJob represents; None for a real MPIJob."""
    return next((each for each in all_kinds() if each.kind == job.kind), None)


def holder(job: MPIJob) -> str:
    """The job's name in the reservations of quota."""
    other = of_job(job)
    return f"{other.kind}/{job.metadata.name}" if other else job.metadata.name


def of_holder(holder: str) -> tuple[OtherJobs, str] | None:
    """The kind and the name of a job with this name in the reservations of quota; None for an MPIJob."""
    kind, slash, name = holder.partition("/")
    return next(((each, name) for each in all_kinds() if each.kind == kind), None) if slash else None
