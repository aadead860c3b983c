"""With --remove-keys, the SSH keys of a job are deleted when it has ended; without it, when the job is deleted.

The operator looks after the Secret until the launcher has ended, and never creates it again after that (mpi-operator
`pkg/controller/mpi_job_controller.go`, syncHandler). A job that has ended had its Secret under this name, for no pod is
created without it. So no Secret has to be read to find it, and `delete` is the only right that is needed.

Meanwhile another job may have the name, and a new Secret. A deletion that is a dry run says the uid of the Secret that
is there; if the job that has ended is still there after that, this Secret is not a later job's, and it is deleted on
condition that it has this uid.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from webhook.client import wire
from webhook.client.calls import ApiError, ClusterError
from webhook.client.objects import get
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.view import Answer, ClusterView
from webhook.companions.limits import MAX_FAILED_REMOVALS
from webhook.companions.paced import PacedClient
from webhook.companions.reconciler import DONE, FAILED, LAST_DELAY
from webhook.companions.ssh.removed_until import RemovedUntil
from webhook.companions.ssh.secret import SUFFIX

NAME: Final = "key-removal"
EVERY_SECONDS: Final = 10.0
# A job is seen some time after the moment that it says it ended at, and by another clock.
MARGIN_SECONDS: Final = 600.0
# Sweeps in a row that were denied: then the right is missing, and it is tried no more.
DENIALS: Final = 3
# What a deletion answers when another object has the name, or none.
_NOT_IT: Final = {404, 409}
_LEFT: Final = "SSH keys of ended jobs are left"


class KeyRemoval:
    """Every replica does this: deleting what another has deleted does no harm.

    What ended before the moment that is remembered in `namespace`, the service's own, has been done by an earlier run.
    A job that fails is tried again, later each time. `now` is the API server's clock.
    """

    name = NAME
    results: Counter[str]
    """How often it was tried for a job, by `DONE` and `FAILED`."""

    def __init__(
        self, *, api: PacedClient, view: ClusterView, namespace: str, now: Callable[[], float], log: Any
    ) -> None:
        self.results = Counter({DONE: 0, FAILED: 0})
        self._api = api
        self._view = view
        self._now = now
        self._log = log
        self._until = RemovedUntil(api, namespace)
        self._since: str | None = None
        self._done: set[str] = set()
        self._waiting: set[str] = set()
        self._failures: dict[str, int] = {}  # in a row, by job
        self._due: dict[str, float] = {}  # when such a job is tried again
        self._last = ""
        self._hindrance = ""  # why no job can be looked after

    @property
    def waiting(self) -> int:
        """Jobs that should have been looked after by now."""
        return len(self._waiting)

    @property
    def failing(self) -> int:
        """Jobs that failed when they were last tried; one where none can be tried."""
        return max(len(self._failures), bool(self._hindrance))

    @property
    def problem(self) -> str:
        """What is wrong, on one line for the operator; empty while nothing is."""
        some = f"{len(self._failures)} failed and will be tried again; the last: {self._last}"
        return self._hindrance or (some if self._failures else "")

    async def run(self, every: float = EVERY_SECONDS) -> None:
        """Sweep again and again, until cancelled, or denied for good."""
        denials = 0
        while denials < DENIALS:
            hindrance = ""
            try:
                await self.sweep()
                denials = 0
            except ClusterError as error:
                denials = denials + 1 if _denied(error) else 0
                hindrance = str(error)
                if hindrance != self._hindrance:
                    self._log.warning(_LEFT, reason=hindrance)
            self._hindrance = hindrance
            await asyncio.sleep(every)
        self._hindrance = f"the right to delete Secrets is missing, so {_LEFT}"
        self._log.error("SSH keys are not removed any more", reason=self._hindrance)

    async def sweep(self) -> None:
        """Delete the keys of every job that has ended since the last sweep; ClusterError where none can be deleted."""
        jobs = self._view.all(MPI_JOBS)
        if isinstance(jobs, Answer):
            raise ClusterError("it is not known which jobs have ended")
        if self._since is None:
            self._since = await self._until.read()
        started = self._now()
        ended = {job.uid: job for job in jobs.values() if job.ended_at and job.ended_at >= self._since}
        self._done &= ended.keys()
        for uid in self._failures.keys() - ended.keys():
            self._forget(uid)
        left = ended.keys() - self._done
        # What has not failed yet first: a few that fail all the time keep no other waiting.
        order = sorted((uid for uid in left if self._due.get(uid, 0) <= started), key=lambda uid: self._due.get(uid, 0))
        self._waiting = set(order)
        await self._work(ended[uid] for uid in order)
        if left and not self._failures:
            moment = datetime.fromtimestamp(started - MARGIN_SECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            await self._until.write(moment)

    async def _work(self, jobs: Iterable[MPIJobRecord]) -> None:
        """Remove the keys of these jobs, until too many have failed."""
        failed = 0
        for job in jobs:
            try:
                await self._remove(job)
            except Exception as error:
                if _denied(error):
                    raise
                self._failed(job, error)
                failed += 1
                unanswered = isinstance(error, ClusterError) and not isinstance(error, ApiError)
                if unanswered or failed == MAX_FAILED_REMOVALS:
                    return
            else:
                self.results[DONE] += 1
                self._forget(job.uid)
                self._done.add(job.uid)

    def _failed(self, job: MPIJobRecord, error: Exception) -> None:
        self._last = str(error) if isinstance(error, ClusterError) else wire.place(error)
        failures = self._failures[job.uid] = self._failures.get(job.uid, 0) + 1
        if failures == 1:
            self._log.warning(_LEFT, namespace=job.namespace, job=job.name, reason=self._last)
        self.results[FAILED] += 1
        self._due[job.uid] = self._now() + min(LAST_DELAY, EVERY_SECONDS * 2 ** min(failures - 1, 30))
        self._waiting.discard(job.uid)

    def _forget(self, uid: str) -> None:
        self._failures.pop(uid, None)
        self._due.pop(uid, None)
        self._waiting.discard(uid)

    async def _remove(self, job: MPIJobRecord) -> None:
        """Delete the job's Secret, and no other that has the same name."""
        namespace, name = quote(job.namespace, safe=""), quote(job.name, safe="")
        secret = f"/api/v1/namespaces/{namespace}/secrets/{name}{SUFFIX}"
        try:
            found = await self._api.request("DELETE", secret, {"dryRun": ["All"]})
            uid = (found.get("details") or {}).get("uid")
            path = MPI_JOBS.path(MPI_JOBS.api_versions[0], namespace)
            there = await get(self._api, f"{path}/{name}")
            if not uid or there is None or there["metadata"].get("uid") != job.uid:
                return  # the job is gone, and its Secret with it
            await self._api.request("DELETE", secret, {"preconditions": {"uid": uid}})
        except ApiError as error:
            if error.status not in _NOT_IT:
                raise
        else:
            self._log.info("SSH keys removed", namespace=job.namespace, job=job.name)


def _denied(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.status == 403
