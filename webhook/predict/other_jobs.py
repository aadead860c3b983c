"""Kinds of jobs other than MPIJobs that quotas and Kueue count; optional parts add them.

In the ledger of quotas a job of another kind has its kind before its name, with a slash, which no MPIJob's name has.
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
    def uid(self) -> str:
        """The uid in its metadata."""

    @property
    def over(self) -> bool:
        """Whether it has ended and takes nothing more."""


class PodsMade(Protocol):
    """The existing pods of a kind of jobs in a namespace."""

    def of(self, name: str, role: str) -> int:
        """The number of pods of a role of the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherJobs:
    """A kind of jobs."""

    kind: str
    framework: str
    """Its name in Kueue's list of frameworks."""
    jobs: Resource[ByNamespace, Any]
    """Its records are `JobRecord`s."""
    pods: Resource[ByNamespace, Any]
    made: Callable[[Context], PodsMade | None]
    """The pods of the context's namespace; None for unknown."""
    objects: Callable[[int], tuple[Charge, ...]]
    """The objects that are created for a job with this number of roles besides its pods, and the job itself."""


@cache
def all_kinds() -> tuple[OtherJobs, ...]:
    return tuple(resolve_name(part.jobs) for part in parts() if part.jobs)


def of_job(job: MPIJob) -> OtherJobs | None:
    """The kind that this MPIJob represents; None for a real MPIJob."""
    return next((each for each in all_kinds() if each.kind == job.kind), None)


def holder(job: MPIJob) -> str:
    """The name of the job in the ledger."""
    other = of_job(job)
    return f"{other.kind}/{job.metadata.name}" if other else job.metadata.name


def of_holder(holder: str) -> tuple[OtherJobs, str] | None:
    """The kind and the name of the job with this name in the ledger; None for an MPIJob."""
    kind, slash, name = holder.partition("/")
    return next(((each, name) for each in all_kinds() if each.kind == kind), None) if slash else None
