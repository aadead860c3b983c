"""Reads the objects of one job with the user's permissions. Sends only reads, and reads no Secret."""

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from webhook.admission.decision import Decision
from webhook.admission.what_if import resubmitted
from webhook.api import kueue
from webhook.cli.job_world import POLICIES, JobWorld
from webhook.client.calls import ApiError, Client
from webhook.client.objects import KubernetesObject, get, listed
from webhook.cluster.view import NotingView
from webhook.cluster.without_jobs import WithoutJobs
from webhook.installation.doctor.unread import Unread, attempt
from webhook.parts.why import loose, place
from webhook.parts.why.causes.scheduling import claims_of
from webhook.parts.why.causes.start import initializes, pod_is_worker, statuses
from webhook.parts.why.limits import MAX_LOGS_READ, MAX_OBJECTS_READ
from webhook.parts.why.sight import Judged, Sight, created, happened
from webhook.policy.in_force import PolicySet
from webhook.predict.kueue.managed import suspends_all
from webhook.predict.nodes import node_shapes

T = TypeVar("T")

JOB_NAME: Final = "training.kubeflow.org/job-name"
TAIL: Final = {"tailLines": "200", "limitBytes": "131072"}
"""`limitBytes` is large, because the API server cuts off the end of a longer log, which is the most useful part."""

Workloads = list[KubernetesObject] | Unread


async def workloads_of(api: Client, namespace: str) -> Workloads:
    """All Workloads of a namespace; empty if Kueue is not installed."""

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
    """Resources that could not be read, and why."""
    unjudged: frozenset[str] = frozenset()
    """Resources that the rules could not take into account."""

    async def read(self, job: KubernetesObject) -> Sight:
        name, uid = loose.name(job), loose.text(job, "metadata", "uid")
        path = f"/apis/batch/v1/namespaces/{self._space}/jobs/{name}-launcher"
        launcher = await self._try("jobs", get(self.api, path), None)
        if _controller(launcher) != uid:
            launcher = None
        pods = await self._pods(name, {uid, loose.text(launcher, "metadata", "uid")})
        if isinstance(self.workloads, Unread):
            self.unread["workloads"] = self.workloads.reason
        workloads = [] if isinstance(self.workloads, Unread) else self.workloads
        workload = next((workload for workload in workloads if _controller(workload) == uid), None)
        events = await self._events(job, [job, launcher or {}, workload or {}], pods)
        return Sight(
            now=self.api.server_time or datetime.now(UTC),
            job=job,
            findings=self._findings(job),
            launcher=launcher,
            pods=pods,
            workload=workload,
            place=place.place(workload, workloads) if workload else None,
            events=events,
            logs=await self._logs(pods),
            nodes=node_shapes(self.world.cluster),
            all_queued=suspends_all(self.world.cluster, self.namespace),
            unread=dict(self.unread),  # must be last: the calls above add to it
        )

    @property
    def _space(self) -> str:
        return quote(self.namespace, safe="")

    async def _try(self, resource: str, work: Awaitable[T], default: T) -> T:
        result = await attempt(work)
        if isinstance(result, Unread):
            self.unread[resource] = result.reason
            return default
        return result

    async def _pods(self, name: str, owners: set[str]) -> list[KubernetesObject]:
        path = f"/api/v1/namespaces/{self._space}/pods"
        pods = await self._try("pods", listed(self.api, path, labelSelector=f"{JOB_NAME}={name}"), [])
        return [pod for pod in pods if _controller(pod) in owners]

    async def _events(
        self, job: KubernetesObject, owners: Iterable[Mapping[str, Any]], pods: list[KubernetesObject]
    ) -> list[KubernetesObject]:
        """Events about the job, its pods and their claims. Ready pods are included only if other pods are not ready."""
        unready = [pod for pod in pods if not loose.holds(pod, "Ready")]
        ready = sorted((pod for pod in pods if loose.holds(pod, "Ready")), key=created, reverse=True)
        inspected = [*unready, *ready][:MAX_OBJECTS_READ] if unready else []
        claims = sorted({claim for pod in inspected for claim in claims_of(pod)})[:MAX_OBJECTS_READ]
        objects = [*filter(None, (*owners, *inspected))]
        uids = {loose.text(existing, "metadata", "uid") for existing in objects}
        events = []
        for name in dict.fromkeys([*map(loose.name, objects), *claims]):
            path = f"/api/v1/namespaces/{self._space}/events"
            selected = listed(self.api, path, fieldSelector=f"involvedObject.name={name}")
            events += await self._try("events", selected, [])
            if "events" in self.unread:
                break
        # An earlier job may have had the same name. Events of replaced pods are kept.
        return [
            event
            for event in events
            if _about(event, uids)
            or loose.text(event, "involvedObject", "name") in claims
            or (loose.text(event, "involvedObject", "kind") == "Pod" and happened(event) >= created(job))
        ]

    async def _logs(self, pods: list[KubernetesObject]) -> dict[str, str]:
        failed = [(pod, status) for pod in reversed(pods) if (status := _with_log(pod)) is not None]
        failed.sort(key=lambda container: pod_is_worker(container[0]))
        containers = failed[:MAX_LOGS_READ]
        if containers and not pod_is_worker(containers[0][0]):
            workers = ((pod, loose.items(pod, "status", "containerStatuses")) for pod in pods if pod_is_worker(pod))
            containers += [(pod, statuses[0]) for pod, statuses in workers if statuses][:MAX_LOGS_READ]
        logs = {}
        for pod, status in containers:
            query = {"container": loose.text(status, "name"), **TAIL}
            runs = loose.mapping(status, "state", "running") and initializes(pod, status)
            if loose.mapping(status, "lastState", "terminated") and not runs:
                query["previous"] = "true"
            name = loose.name(pod)
            path = f"/api/v1/namespaces/{self._space}/pods/{name}/log?{urlencode(query)}"
            logs[name] = loose.clean(await self._try(f"log of {name}", self.api.text(path), ""))
        return logs

    def _findings(self, job: KubernetesObject) -> list[Judged]:
        view, policies = NotingView(self.world.cluster), self.world.policies or PolicySet()
        stored = msgspec.json.encode(job)
        decision = (
            resubmitted.judge(stored, policies=policies, view=WithoutJobs(view), today=self.world.today) or Decision()
        )
        self.unjudged = frozenset(view.unknown if self.world.policies is not None else {*view.unknown, POLICIES})
        return [
            Judged(
                rule=finding.rule,
                path=finding.violation.path,
                message=finding.violation.message,
                fix=finding.violation.fix,
                refuses=refuses,
                importance=finding.importance[0],
            )
            for refuses, findings in ((True, decision.denied), (False, decision.warned))
            for finding in findings
        ]


def _controller(owned: Mapping[str, Any] | None) -> str:
    owners = loose.items(owned, "metadata", "ownerReferences")
    return next((loose.text(owner, "uid") for owner in owners if owner.get("controller") is True), "")


def _with_log(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The status of the first container that has failed, even before a restart, or that is a running init container."""
    for status in statuses(pod):
        ended = loose.mapping(status, "state", "terminated") or loose.mapping(status, "lastState", "terminated")
        runs = loose.mapping(status, "state", "running")
        if loose.number(ended, "exitCode") or (runs and initializes(pod, status)):
            return status
    return None


def _about(event: Mapping[str, Any], uids: set[str]) -> bool:
    uid = loose.text(event, "involvedObject", "uid")
    return not uid or uid in uids
