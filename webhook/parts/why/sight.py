"""The data read about one job, as the API server sent it: no field of a status can be relied on."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

import msgspec

from webhook.api import duration, kueue
from webhook.cluster.resources.nodes import NodeShape
from webhook.kit.importance import Importance
from webhook.parts.why import loose
from webhook.parts.why.limits import MAX_EVENTS_SHOWN

Json = Mapping[str, Any]
WORKER: Final = "worker"
LAUNCHER: Final = "launcher"
_MINUTE, _HOUR = 60, 3600
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
ROLE: Final = "training.kubeflow.org/job-role"


class Judged(msgspec.Struct, frozen=True):
    """A rule's finding in the job as if it were submitted now."""

    rule: str
    path: str
    message: str
    fix: str
    refuses: bool
    importance: Importance


class QueuePlace(msgspec.Struct, frozen=True):
    """The place of a job among those that wait; the first is 1."""

    place: int
    of: int
    queue: str
    """What the jobs wait for, in words."""


@dataclass(frozen=True)
class Sight:
    """A job and its objects; unreadable parts are empty, and `unread` says why."""

    now: datetime
    job: Json
    findings: Sequence[Judged] = ()
    launcher: Json | None = None
    """The Job of its launcher."""
    pods: Sequence[Json] = ()
    workload: Json | None = None
    """Kueue's Workload."""
    place: QueuePlace | None = None
    events: Sequence[Json] = ()
    """Events of all its objects."""
    logs: Mapping[str, str] = field(default_factory=dict)
    """The last lines of some containers, by the name of the pod."""
    tried: Mapping[str, str] = field(default_factory=dict)
    """The API server's answer to a dry run of missing pods, by their role."""
    nodes: Collection[NodeShape] = ()
    """The kinds of nodes of the cluster."""
    cordoned: Collection[str] = ()
    """The names of cordoned nodes; only read if pods of the job are gone or were evicted."""
    all_queued: bool = False
    """Kueue suspends every job of the namespace, also those that name no queue."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Why a part could not be read, by its name."""

    @property
    def name(self) -> str:
        """The job's."""
        return loose.name(self.job)

    @property
    def queue(self) -> str:
        """The LocalQueue that it names."""
        return loose.text(self.job, "metadata", "labels", kueue.QUEUE_NAME)

    @property
    def suspended(self) -> bool:
        """Whether it is suspended now."""
        return loose.at(self.job, "spec", "runPolicy", "suspend") is True

    @property
    def wanted(self) -> int:
        """The number of workers in its spec."""
        return loose.number(self.job, "spec", "mpiReplicaSpecs", "Worker", "replicas") or 0

    @property
    def ready(self) -> int:
        """The number of ready workers."""
        return sum(loose.holds(pod, "Ready") for pod in self.workers)

    @property
    def finished(self) -> str:
        """`Succeeded` or `Failed`, empty for a job that is not at its end."""
        return next((kind for kind in ("Succeeded", "Failed") if loose.holds(self.job, kind)), "")

    @cached_property
    def workers(self) -> list[Json]:
        """The pods of workers, by their names."""
        return self._of_role(WORKER)

    @cached_property
    def launchers(self) -> list[Json]:
        """The pods of launchers, the newest first."""
        return sorted(self._of_role(LAUNCHER), key=created, reverse=True)

    @property
    def current(self) -> list[Json]:
        """The relevant pods: all workers, and the newest launcher."""
        return [*self.workers, *self.launchers[:1]]

    def said(self, name: str, *reasons: str) -> Iterator[Json]:
        """The events about the objects with this name, the newest first; with `reasons` those alone."""
        about = (event for event in self.events if loose.text(event, "involvedObject", "name") == name)
        found = [event for event in about if not reasons or event.get("reason") in reasons]
        return iter(sorted(found, key=happened, reverse=True))

    def warnings(self) -> list[Json]:
        """The newest Warning events, one for each reason and object."""
        found: dict[tuple[str, str], Json] = {}
        for event in sorted(self.events, key=happened, reverse=True):
            if event.get("type") == "Warning":
                found.setdefault((loose.text(event, "involvedObject", "name"), loose.text(event, "reason")), event)
        return list(found.values())[:MAX_EVENTS_SHOWN]

    def since(self, moment: datetime) -> str:
        """The time since then, in words."""
        return span(moment, self.now)

    def finding(self, rules: Iterable[str]) -> Judged | None:
        """The worst finding of these rules."""
        found = [each for each in self.findings if each.rule in rules]
        return min(found, key=lambda each: (not each.refuses, each.importance), default=None)

    def _of_role(self, role: str) -> list[Json]:
        found = [pod for pod in self.pods if loose.text(pod, "metadata", "labels", ROLE) == role]
        return sorted(found, key=lambda pod: (len(loose.name(pod)), loose.name(pod)))


def created(value: Json) -> datetime:
    """When it was created; the epoch if that is unknown."""
    return loose.moment(value, "metadata", "creationTimestamp") or _EPOCH


def happened(event: Json) -> datetime:
    """When it happened last."""
    paths = (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",))
    return next(filter(None, (loose.moment(event, *path) for path in paths)), created(event))


def span(start: datetime, end: datetime) -> str:
    """The time between, in words; without seconds if it is hours."""
    seconds = max(0, int((end - start).total_seconds()))
    return duration.spell(seconds - seconds % _MINUTE if seconds >= _HOUR else seconds)
