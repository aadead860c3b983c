"""The report of `why` on a job, as text and as JSON."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook import PROGRAM
from webhook.cli import world_sources
from webhook.cli.stored_jobs import stored_jobs
from webhook.cli.terminal import bad, caution, counted, faint, good, heading, printable
from webhook.client.calls import Client
from webhook.client.objects import KubernetesObject
from webhook.parts.why import loose
from webhook.parts.why.cause import cut
from webhook.parts.why.diagnosis import Diagnosis, diagnose
from webhook.parts.why.limits import MAX_JOBS_READ_AT_ONCE, MAX_LINE_CHARACTERS
from webhook.parts.why.reader import SightReader, workloads_of
from webhook.parts.why.sight import Sight, happened
from webhook.parts.why.state import State

WORST_FIRST: Final = (State.STUCK, State.FAILED, State.STARTS, State.RUNS, State.SUCCEEDED)


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job, and why it does not run."""

    namespace: str
    sight: Sight
    diagnosis: Diagnosis
    unjudged: Mapping[str, Sequence[str]]
    """Resources that the rules could not take into account, by the reason."""

    @property
    def good(self) -> bool:
        return self.diagnosis.state not in {State.STUCK, State.FAILED}

    def headline(self) -> str:
        paint = good if self.good else bad
        return f"{heading(printable(f'{self.namespace}/{self.sight.name}'))} {paint(printable(self.diagnosis.summary))}"

    def as_text(self) -> Iterator[str]:
        yield self.headline()
        for number, cause in enumerate(self.diagnosis.causes, start=1):
            yield ""
            yield f"{number}. {printable(cause.text)}"
            yield f"   seen in: {printable(cause.where)}"
            yield f"   {caution('to do')}: {printable(cause.fix)}"
        if warnings := self.sight.warnings():
            yield from ("", "warnings of the cluster:")
            yield from (printable(f"   {self._warning(event)}") for event in warnings)
        notes = [f"not read: {resource} ({why})" for resource, why in self.sight.unread.items()]
        notes += [f"not judged: rules that need {', '.join(names)} ({why})" for why, names in self.unjudged.items()]
        if notes:
            yield ""
            yield from (faint(printable(note)) for note in notes)

    def _warning(self, event: Mapping[str, Any]) -> str:
        about = f"{loose.text(event, 'involvedObject', 'kind')} {loose.text(event, 'involvedObject', 'name')}"
        message = cut(loose.text(event, "message"), MAX_LINE_CHARACTERS)
        return f"{self.sight.since(happened(event))} ago, {about}: {loose.text(event, 'reason')}: {message}"

    def as_json(self) -> dict[str, Any]:
        place = self.sight.place
        return {
            "namespace": self.namespace,
            "name": self.sight.name,
            **self.diagnosis.as_json(),
            "workers": {"wanted": self.sight.requested_workers, "ready": self.sight.ready_workers},
            "warnings": [
                {
                    "kind": loose.text(event, "involvedObject", "kind"),
                    "name": loose.text(event, "involvedObject", "name"),
                    "reason": loose.text(event, "reason"),
                    "message": loose.text(event, "message"),
                }
                for event in self.sight.warnings()
            ],
            "place": {"number": place.place, "of": place.of, "queue": place.queue} if place else None,
            "notRead": dict(self.sight.unread),
            "notJudged": sorted({name for names in self.unjudged.values() for name in names}),
        }


def overview(reports: Sequence[JobReport]) -> Iterator[str]:
    worst = [report for report in reports if not report.good]
    yield from (report.headline() for report in worst)
    more = f": {len(worst)} to fix; `{PROGRAM} why NAME` says what to do." if worst else ", none to look at"
    yield faint(f"{counted(len(reports), 'job')}{more}")


async def reports(api: Client, namespace: str, name: str, policy_namespace: str) -> list[JobReport]:
    """The report on one job; ClusterError if the job does not exist.

    Without a name: the reports on all jobs that have not succeeded, the worst first.
    """
    stored = await stored_jobs(api, namespace, name)
    jobs = stored if name else [job for job in stored if not loose.holds(job, "Succeeded")]
    world = await world_sources.of_cluster(api, [namespace], policy_namespace=policy_namespace, with_schema=False)
    workloads, gate = await workloads_of(api, namespace), asyncio.Semaphore(MAX_JOBS_READ_AT_ONCE)

    async def report(job: KubernetesObject) -> JobReport:
        reader = SightReader(api, namespace, world, workloads)
        async with gate:
            sight = await reader.read(job)
        return JobReport(namespace, sight, diagnose(sight), world.reasons(reader.unjudged))

    job_reports = await asyncio.gather(*map(report, jobs))
    return sorted(job_reports, key=lambda report: (WORST_FIRST.index(report.diagnosis.state), report.sight.name))
