"""Kinds of jobs besides MPIJobs that quotas and Kueue count; optional parts bring them.

In the ledger of quotas a job of another kind has its kind before its name, with a slash: no MPIJob has such a name.
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
from webhook.kit.parts import parts


class JobRecord(Protocol):
    """A job that exists."""

    @property
    def uid(self) -> str:
        """Of its metadata."""

    @property
    def over(self) -> bool:
        """It takes nothing more."""


class PodsMade(Protocol):
    """The pods of a kind of jobs that exist in a namespace."""

    def of(self, name: str, role: str) -> int:
        """How many of a role of the job."""


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
    """The pods of the namespace in question; None for unknown."""
    objects: Callable[[int], tuple[Charge, ...]]
    """What is made next to the pods of a job with so many roles, and the job itself."""


@cache
def all_kinds() -> tuple[OtherJobs, ...]:
    """Every kind."""
    return tuple(resolve_name(part.jobs) for part in parts() if part.jobs)


def of_job(job: MPIJob) -> OtherJobs | None:
    """The kind of which this stands for a job; None for an MPIJob."""
    return next((each for each in all_kinds() if each.kind == job.kind), None)


def holder(job: MPIJob) -> str:
    """The name under which the ledger has the job."""
    other = of_job(job)
    return f"{other.kind}/{job.metadata.name}" if other else job.metadata.name


def of_holder(holder: str) -> tuple[OtherJobs, str] | None:
    """The kind and the name of the job that the ledger has under this name; None for an MPIJob."""
    kind, slash, name = holder.partition("/")
    return next(((each, name) for each in all_kinds() if each.kind == kind), None) if slash else None
