"""With --remove-keys, the SSH keys of a job are deleted when it has ended; without it, when the job is deleted.

The operator looks after the Secret until the launcher has ended, and never creates it again after that (mpi-operator
`pkg/controller/mpi_job_controller.go`, syncHandler). A job that has ended had its Secret under this name, for no pod is
created without it. So no Secret has to be read to find it, and `delete` is the only right that is needed.

Meanwhile another job may have the name, and a new Secret. A deletion that is a dry run says the uid of the Secret that
is there; if the job that has ended is still there after that, this Secret is not a later job's, and it is deleted on
condition that it has this uid.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.objects import get
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.view import Answer, ClusterView
from webhook.companions.ssh.removed_until import RemovedUntil
from webhook.companions.ssh.secret import SUFFIX

EVERY_SECONDS: Final = 10.0
# A job is seen some time after the moment that it says it ended at, and by another clock.
MARGIN_SECONDS: Final = 600.0
# Sweeps in a row that were denied: then the right is missing, and it is tried no more.
DENIALS: Final = 3
# What a deletion answers when another object has the name, or none.
_NOT_IT: Final = {404, 409}


class KeyRemoval:
    """Every replica does this: deleting what another has deleted does no harm.

    What ended before the moment that is remembered in `namespace`, the service's own, has been done by an earlier run.
    `on_give_up` gets the reason when it is tried no more.
    """

    def __init__(
        self, *, api: Client, view: ClusterView, namespace: str, log: Any, on_give_up: Callable[[str], None]
    ) -> None:
        self._api = api
        self._view = view
        self._log = log
        self._on_give_up = on_give_up
        self._until = RemovedUntil(api, namespace)
        self._since: str | None = None
        self._done: set[str] = set()

    async def run(self, every: float = EVERY_SECONDS) -> None:
        """Sweep again and again, until cancelled, or denied for good."""
        denials = 0
        while denials < DENIALS:
            try:
                await self.sweep()
            except ClusterError as error:
                self._log.warning("SSH keys of ended jobs are left", reason=str(error))
                denied = isinstance(error, ApiError) and error.status == 403
                denials = denials + 1 if denied else 0
            else:
                denials = 0
            await asyncio.sleep(every)
        reason = "the right to delete Secrets is missing, so SSH keys of ended jobs are left"
        self._log.error("SSH keys are not removed any more", reason=reason)
        self._on_give_up(reason)

    async def sweep(self) -> None:
        """Delete the keys of every job that has ended since the last sweep; ClusterError if some cannot be deleted."""
        jobs = self._view.all(MPI_JOBS)
        if isinstance(jobs, Answer):
            return
        if self._since is None:
            self._since = await self._until.read()
        started = self._api.now()
        ended = {job.uid: job for job in jobs.values() if job.ended_at and job.ended_at >= self._since}
        self._done &= ended.keys()
        failed: ClusterError | None = None
        if not (left := ended.keys() - self._done):
            return
        for uid in left:
            try:
                await self._remove(ended[uid])
            except ApiError as error:
                if error.status == 403:
                    raise
                failed = error
            else:
                self._done.add(uid)
        if failed is not None:
            raise failed
        moment = datetime.fromtimestamp(started - MARGIN_SECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        await self._until.write(moment)

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
