"""Job kinds other than MPIJob that use quotas and Kueue. Optional parts of the service add these kinds.

In quota reservations the name of such a job is `<kind>/<name>`. The name of an MPIJob is `<name>`, without a slash.
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
        """True if the job has ended and uses no more quota."""


class PodsMade(Protocol):
    """Counts the existing pods of a job's role."""

    def of(self, name: str, role: str) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherJobs:
    """A job kind other than MPIJob."""

    kind: str
    framework: str
    """The kind's name in Kueue's list of frameworks."""
    jobs: Resource[ByNamespace, Any]
    """Stores `JobRecord`s."""
    pods: Resource[ByNamespace, Any]
    made: Callable[[Context], PodsMade | None]
    """Returns the pods in the context's namespace; None if they are unknown."""
    objects: Callable[[int], tuple[Charge, ...]]
    """Returns the quota use of a job with this number of roles, except the use of its pods."""


@cache
def all_kinds() -> tuple[OtherJobs, ...]:
    return tuple(resolve_name(part.jobs) for part in parts() if part.jobs)


def of_job(job: MPIJob) -> OtherJobs | None:
    """The kind of a job that is represented as an MPIJob; None for a real MPIJob."""
    return next((other for other in all_kinds() if other.kind == job.kind), None)


def holder(job: MPIJob) -> str:
    """The job's name in quota reservations."""
    other = of_job(job)
    return f"{other.kind}/{job.metadata.name}" if other else job.metadata.name


def of_holder(holder: str) -> tuple[OtherJobs, str] | None:
    """(kind, name) of the job with this name in quota reservations; None for an MPIJob."""
    kind, slash, name = holder.partition("/")
    return next(((other, name) for other in all_kinds() if other.kind == kind), None) if slash else None
