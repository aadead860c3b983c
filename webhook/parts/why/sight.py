"""The objects of one job as the API server sent them. Any field may be missing or have the wrong type."""

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
    """A rule's finding about the job."""

    rule: str
    path: str
    message: str
    fix: str
    refuses: bool
    importance: Importance


class QueuePlace(msgspec.Struct, frozen=True):
    """The place of a job in a queue."""

    place: int
    """The first is 1."""
    of: int
    """The number of waiting jobs in the queue."""
    queue: str
    """Kind and name of the queue."""


@dataclass(frozen=True)
class Sight:
    """A job and its objects. Unreadable objects are empty."""

    now: datetime
    job: Json
    findings: Sequence[Judged] = ()
    launcher: Json | None = None
    pods: Sequence[Json] = ()
    workload: Json | None = None
    place: QueuePlace | None = None
    events: Sequence[Json] = ()
    logs: Mapping[str, str] = field(default_factory=dict)
    """The last log lines of each pod, by the name of the pod."""
    nodes: Collection[NodeShape] = ()
    all_queued: bool = False
    """Whether Kueue suspends all jobs of the namespace, even jobs without a queue."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Resources that could not be read, and why."""

    @property
    def name(self) -> str:
        return loose.name(self.job)

    @property
    def queue(self) -> str:
        return loose.text(self.job, "metadata", "labels", kueue.QUEUE_NAME)

    @property
    def suspended(self) -> bool:
        return loose.at(self.job, "spec", "runPolicy", "suspend") is True

    @property
    def requested_workers(self) -> int:
        return loose.number(self.job, "spec", "mpiReplicaSpecs", "Worker", "replicas") or 0

    @property
    def ready_workers(self) -> int:
        return sum(loose.holds(pod, "Ready") for pod in self.workers)

    @property
    def finished(self) -> str:
        """`Succeeded` or `Failed`; empty if the job has not finished."""
        return next((kind for kind in ("Succeeded", "Failed") if loose.holds(self.job, kind)), "")

    @cached_property
    def workers(self) -> list[Json]:
        return self._of_role(WORKER)

    @cached_property
    def launchers(self) -> list[Json]:
        """The launcher's pods, the newest first: a retry creates another pod."""
        return sorted(self._of_role(LAUNCHER), key=created, reverse=True)

    @property
    def current(self) -> list[Json]:
        return [*self.workers, *self.launchers[:1]]

    def events_about(self, name: str, *reasons: str) -> Iterator[Json]:
        """Events about this object, the newest first; only events with one of the `reasons`, if given."""
        about = (event for event in self.events if loose.text(event, "involvedObject", "name") == name)
        selected = [event for event in about if not reasons or event.get("reason") in reasons]
        return iter(sorted(selected, key=happened, reverse=True))

    def warnings(self) -> list[Json]:
        """The newest Warning event for each reason and object."""
        newest: dict[tuple[str, str], Json] = {}
        for event in sorted(self.events, key=happened, reverse=True):
            if event.get("type") == "Warning":
                newest.setdefault((loose.text(event, "involvedObject", "name"), loose.text(event, "reason")), event)
        return list(newest.values())[:MAX_EVENTS_SHOWN]

    def since(self, moment: datetime) -> str:
        return span(moment, self.now)

    def finding(self, rules: Iterable[str]) -> Judged | None:
        findings = [finding for finding in self.findings if finding.rule in rules]
        return min(findings, key=lambda finding: (not finding.refuses, finding.importance), default=None)

    def _of_role(self, role: str) -> list[Json]:
        pods = [pod for pod in self.pods if loose.text(pod, "metadata", "labels", ROLE) == role]
        return sorted(pods, key=lambda pod: (len(loose.name(pod)), loose.name(pod)))


def created(value: Json) -> datetime:
    """The creation time, or the epoch if it is missing."""
    return loose.moment(value, "metadata", "creationTimestamp") or _EPOCH


def happened(event: Json) -> datetime:
    paths = (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",))
    return next(filter(None, (loose.moment(event, *path) for path in paths)), created(event))


def span(start: datetime, end: datetime) -> str:
    """The duration in words. A duration of an hour or more is shown without seconds."""
    seconds = max(0, int((end - start).total_seconds()))
    return duration.spell(seconds - seconds % _MINUTE if seconds >= _HOUR else seconds)
