"""The objects of one job in a cluster, read with the user's permissions: only reads and dry runs of pods, no Secret.

What may not be read is left out, and named.
"""

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from webhook.admission.decision import Decision
from webhook.admission.what_if import resubmitted
from webhook.api import kueue
from webhook.api.shape import ShapeError
from webhook.cli.job_world import POLICIES, JobWorld
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import KubernetesObject, get, listed
from webhook.client.tried_pods import refusals
from webhook.cluster.view import NotingView
from webhook.cluster.without_jobs import WithoutJobs
from webhook.installation.doctor.unread import Unread, attempt
from webhook.parts.why import loose, place
from webhook.parts.why.causes.disruption import SCHEDULED
from webhook.parts.why.causes.scheduling import claims_of
from webhook.parts.why.causes.start import initializes, pod_is_worker, statuses
from webhook.parts.why.limits import MAX_LOGS_READ, MAX_OBJECTS_READ
from webhook.parts.why.sight import LAUNCHER, WORKER, Judged, QueuePlace, Sight, created, happened
from webhook.policy.in_force import PolicySet
from webhook.predict import operator_pods
from webhook.predict.kueue.managed import suspends_all
from webhook.predict.nodes import node_shapes

T = TypeVar("T")

NODES: Final = "/api/v1/nodes"
JOB_NAME: Final = "training.kubeflow.org/job-name"
VISIBILITY: Final = ("visibility.kueue.x-k8s.io/v1beta2", "visibility.kueue.x-k8s.io/v1beta1")
TAIL: Final = {"tailLines": "200", "limitBytes": "131072"}
"""The API server cuts the end at the limit of bytes, which is the part that says most."""

Workloads = list[KubernetesObject] | Unread
"""Kueue's, of a namespace: read once for all of its jobs."""


async def workloads_of(api: Client, namespace: str) -> Workloads:
    """None without Kueue."""

    async def read() -> list[KubernetesObject]:
        for version in kueue.API_VERSIONS:
            try:
                return await listed(api, f"/apis/{version}/namespaces/{quote(namespace, safe='')}/workloads")
            except ApiError as error:
                if error.status != 404:
                    raise
        return []

    return await attempt(read())


@dataclass(slots=True)
class SightReader:
    """Reads one job."""

    api: Client
    namespace: str
    world: JobWorld
    workloads: Workloads
    unread: dict[str, str] = field(default_factory=dict)
    """Unreadable resources, and why."""
    unjudged: frozenset[str] = frozenset()
    """Resources that the findings could not consider, by name."""

    async def read(self, job: KubernetesObject) -> Sight:
        """All data about the stored job."""
        name, uid = loose.name(job), loose.text(job, "metadata", "uid")
        launcher = await self._own("jobs", f"/apis/batch/v1/namespaces/{self._space}/jobs/{name}-launcher", uid)
        pods = await self._pods(name, {uid, loose.text(launcher, "metadata", "uid")})
        if isinstance(self.workloads, Unread):
            self.unread["workloads"] = self.workloads.reason
        workloads = [] if isinstance(self.workloads, Unread) else self.workloads
        workload = next((each for each in workloads if _controller(each) == uid), None)
        events = await self._events(job, [job, launcher or {}, workload or {}], pods)
        return Sight(
            now=self.api.server_time or datetime.now(UTC),
            job=job,
            findings=self._findings(job),
            launcher=launcher,
            pods=pods,
            workload=workload,
            place=await self._place(workload, workloads),
            events=events,
            logs=await self._logs(pods),
            tried=await self._tried(job, pods),
            nodes=node_shapes(self.world.cluster),
            cordoned=await self._cordoned(pods, events),
            all_queued=suspends_all(self.world.cluster, self.namespace),
            unread=dict(self.unread),  # last: the lines above fill it
        )

    async def _tried(self, job: KubernetesObject, pods: list[KubernetesObject]) -> dict[str, str]:
        """The API server's answer to a dry run of a pod for each role that lacks pods: events expire after an hour."""
        seen = Sight(now=datetime.now(UTC), job=job, pods=pods)
        if seen.suspended or seen.finished or (seen.launchers and len(seen.workers) >= seen.wanted):
            return {}
        try:
            wanted = {role.lower(): pod for role, pod in operator_pods.of_job(job, loose.name(job)).items()}
        except ShapeError:
            return {}
        if seen.launchers:
            wanted.pop(LAUNCHER, None)
        if len(seen.workers) >= seen.wanted:
            wanted.pop(WORKER, None)
        refused = await self._try("a dry run of its pods", refusals(self.api, self.namespace, wanted), None)
        return refused or {}

    @property
    def _space(self) -> str:
        return quote(self.namespace, safe="")

    async def _try(self, what: str, work: Awaitable[T], otherwise: T) -> T:
        """The result of `work`, or `otherwise` if the API server denies it; the denial is recorded."""
        found = await attempt(work)
        if isinstance(found, Unread):
            self.unread[what] = found.reason
            return otherwise
        return found

    async def _own(self, what: str, path: str, owner: str) -> KubernetesObject | None:
        found = await self._try(what, get(self.api, path), None)
        return found if found and _controller(found) == owner else None

    async def _pods(self, name: str, owners: set[str]) -> list[KubernetesObject]:
        path = f"/api/v1/namespaces/{self._space}/pods"
        found = await self._try("pods", listed(self.api, path, labelSelector=f"{JOB_NAME}={name}"), [])
        return [pod for pod in found if _controller(pod) in owners]

    async def _place(self, workload: KubernetesObject | None, workloads: list[KubernetesObject]) -> QueuePlace | None:
        """From Kueue's visibility API if it is installed and readable; otherwise counted."""
        if workload is None or not place.waits(workload):
            return None
        queue, name = loose.text(workload, "spec", "queueName"), loose.name(workload)
        for version in VISIBILITY:
            path = f"/apis/{version}/namespaces/{self._space}/localqueues/{quote(queue, safe='')}/pendingworkloads"
            try:
                pending = await get(self.api, path)
            except ClusterError:  # the report is useful without an aggregated API that is down
                continue
            if pending and (told := place.told(pending, name, queue)):
                return told
        return place.place(workload, workloads)

    async def _events(
        self, job: KubernetesObject, owners: Iterable[Mapping[str, Any]], pods: list[KubernetesObject]
    ) -> list[KubernetesObject]:
        """Events about the job's objects, its pods that are not ready and, if there are any, the newest workers."""
        unready = [pod for pod in pods if not loose.holds(pod, "Ready")]
        others = sorted((pod for pod in pods if loose.holds(pod, "Ready")), key=created, reverse=True)
        unhappy = [*unready, *others][:MAX_OBJECTS_READ] if unready else []
        claims = sorted({claim for pod in unhappy for claim in claims_of(pod)})[:MAX_OBJECTS_READ]
        objects = [each for each in (*owners, *unhappy) if each]
        uids = {loose.text(each, "metadata", "uid") for each in objects}
        found = []
        for name in dict.fromkeys([*map(loose.name, objects), *claims]):
            path = f"/api/v1/namespaces/{self._space}/events"
            selected = listed(self.api, path, fieldSelector=f"involvedObject.name={name}")
            found += await self._try("events", selected, [])
            if "events" in self.unread:
                break
        # A job of the same name that is gone has left events behind; a worker that was replaced is of this one.
        return [
            event
            for event in found
            if _about(event, uids)
            or loose.text(event, "involvedObject", "name") in claims
            or (loose.text(event, "involvedObject", "kind") == "Pod" and happened(event) >= created(job))
        ]

    async def _cordoned(self, pods: list[KubernetesObject], events: list[KubernetesObject]) -> list[str]:
        """Where a pod was evicted or is gone; few users may read nodes, and the loss is named without them too."""
        uids = {loose.text(pod, "metadata", "uid") for pod in pods}
        gone = (event for event in events if event.get("reason") == SCHEDULED and not _about(event, uids))
        if not any(loose.holds(pod, "DisruptionTarget") for pod in pods) and next(gone, None) is None:
            return []
        found = await attempt(listed(self.api, NODES, metadata_only=True, fieldSelector="spec.unschedulable=true"))
        return [] if isinstance(found, Unread) else [*map(loose.name, found)]

    async def _logs(self, pods: list[KubernetesObject]) -> dict[str, str]:
        """The last lines of containers that failed, launchers first and the newest, and of sshd in some workers."""
        speaking = [(pod, status) for pod in reversed(pods) if (status := _speaks(pod)) is not None]
        speaking.sort(key=lambda each: pod_is_worker(each[0]))
        wanted = speaking[:MAX_LOGS_READ]
        if wanted and not pod_is_worker(wanted[0][0]):
            of_sshd = ((pod, loose.items(pod, "status", "containerStatuses")) for pod in pods if pod_is_worker(pod))
            wanted += [(pod, statuses[0]) for pod, statuses in of_sshd if statuses][:MAX_LOGS_READ]
        found = {}
        for pod, status in wanted:
            query = {"container": loose.text(status, "name"), **TAIL}
            runs = loose.mapping(status, "state", "running") and initializes(pod, status)
            if loose.mapping(status, "lastState", "terminated") and not runs:
                query["previous"] = "true"
            name = loose.name(pod)
            path = f"/api/v1/namespaces/{self._space}/pods/{name}/log?{urlencode(query)}"
            found[name] = loose.clean(await self._try(f"log of {name}", self.api.text(path), ""))
        return found

    def _findings(self, job: KubernetesObject) -> list[Judged]:
        view, policies = NotingView(self.world.cluster), self.world.policies or PolicySet()
        stored = msgspec.json.encode(job)
        decision = (
            resubmitted.judge(stored, policies=policies, view=WithoutJobs(view), today=self.world.today) or Decision()
        )
        self.unjudged = frozenset(view.unknown if self.world.policies is not None else {*view.unknown, POLICIES})
        return [
            Judged(
                each.rule, each.violation.path, each.violation.message, each.violation.fix, refuses, each.importance[0]
            )
            for refuses, findings in ((True, decision.denied), (False, decision.warned))
            for each in findings
        ]


def _controller(found: Mapping[str, Any] | None) -> str:
    owners = loose.items(found, "metadata", "ownerReferences")
    return next((loose.text(owner, "uid") for owner in owners if owner.get("controller") is True), "")


def _speaks(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The status of a container that ended badly, now or before it was restarted, or of an init container that runs."""
    for status in statuses(pod):
        ended = loose.mapping(status, "state", "terminated") or loose.mapping(status, "lastState", "terminated")
        runs = loose.mapping(status, "state", "running")
        if loose.number(ended, "exitCode") or (runs and initializes(pod, status)):
            return status
    return None


def _about(event: Mapping[str, Any], uids: set[str]) -> bool:
    uid = loose.text(event, "involvedObject", "uid")
    return not uid or uid in uids
