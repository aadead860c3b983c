"""The differences between jobs of a cluster and the same jobs with the current injections."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, Final

import msgspec

from webhook.admission.decision import Decision
from webhook.admission.what_if import resubmitted
from webhook.api import yaml
from webhook.api.annotations import CREATED_BY, INJECTED
from webhook.api.metadata import LAST_APPLIED, SET_BY_SERVER
from webhook.api.untyped import at
from webhook.cli import injected, world_sources
from webhook.cli.injected import Injected
from webhook.cli.stored_jobs import stored_jobs
from webhook.cli.terminal import added, bad, heading, printable
from webhook.client.calls import Client
from webhook.cluster.view import NotingView
from webhook.cluster.without_jobs import WithoutJobs

_BOOKKEEPING: Final = frozenset({LAST_APPLIED, INJECTED, CREATED_BY})
_LEFT_OUT: Final = frozenset({"managedFields", *SET_BY_SERVER})


@dataclass(frozen=True, slots=True)
class JobDiff:
    """A stored job (`live`), and the job that would be stored now (`admitted`)."""

    namespace: str
    name: str
    live: Mapping[str, Any]
    admitted: Mapping[str, Any]
    injected: Sequence[Injected]
    unjudged: Mapping[str, Sequence[str]]
    """Resources that could not be read, by reason."""

    @property
    def differs(self) -> bool:
        return _compared(self.live) != _compared(self.admitted)

    def as_text(self) -> Iterator[str]:
        title = f"{self.namespace}/{self.name}"
        lines = unified_diff(
            _lines(self.live), _lines(self.admitted), f"live/{title}", f"admitted/{title}", lineterm=""
        )
        for line in map(printable, lines):
            paint = heading if line.startswith(("---", "+++", "@@")) else {"+": added, "-": bad}.get(line[:1], str)
            yield paint(line)

    def as_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "differs": self.differs,
            "injected": [entry.as_json() for entry in self.injected],
            "notJudged": sorted({name for names in self.unjudged.values() for name in names}),
        }


async def diffs(api: Client, namespace: str, name: str, policy_namespace: str) -> list[JobDiff]:
    """The diff of the job `name`, or of all jobs if `name` is empty; ClusterError if the job does not exist."""
    jobs = sorted(await stored_jobs(api, namespace, name), key=lambda job: str(job["metadata"]["name"]))
    world = await world_sources.of_cluster(api, [namespace], policy_namespace=policy_namespace, with_schema=False)
    result = []
    for job in jobs:
        view = NotingView(world.cluster)
        request = resubmitted.creation(msgspec.json.encode(job))
        mutation = resubmitted.inject(request, world.policy(namespace), WithoutJobs(view)) if request else Decision()
        entries, unjudged = injected.by_injection(mutation), world.reasons(view.unknown)
        result.append(JobDiff(namespace, job["metadata"]["name"], job, mutation.document or job, entries, unjudged))
    return result


def _compared(job: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in job["metadata"].items() if key not in _LEFT_OUT}
    metadata.pop("annotations", None)
    annotations = {key: value for key, value in at(job, "metadata", "annotations").items() if key not in _BOOKKEEPING}
    return {"metadata": metadata | ({"annotations": annotations} if annotations else {}), "spec": job.get("spec")}


def _lines(job: Mapping[str, Any]) -> list[str]:
    return yaml.dump(json.loads(json.dumps(_compared(job), sort_keys=True))).splitlines()
