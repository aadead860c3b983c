"""With --remove-keys, the SSH keys of a job are deleted when it has ended; without it, when the job is deleted.

The operator looks after the Secret until the launcher has ended, and never creates it again after that (mpi-operator
`pkg/controller/mpi_job_controller.go`, syncHandler). A job that has ended had its Secret under this name, for no pod is
created without it. So no Secret has to be read to find it, and `delete` is the only right that is needed.
"""

import asyncio
from typing import Any, Final

from webhook.client.calls import ApiError, Client, ClusterError
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.view import Answer, ClusterView
from webhook.companions.ssh.secret import SUFFIX

EVERY_SECONDS: Final = 10.0


class KeyRemoval:
    """Every replica does this: deleting what another has deleted does no harm."""

    def __init__(self, *, api: Client, view: ClusterView, log: Any) -> None:
        self._api = api
        self._view = view
        self._log = log
        self._done: set[str] = set()

    async def run(self, every: float = EVERY_SECONDS) -> None:
        """Sweep again and again, until cancelled."""
        while True:
            try:
                await self.sweep()
            except ClusterError as error:
                self._log.warning("SSH keys of ended jobs are left", reason=str(error))
            await asyncio.sleep(every)

    async def sweep(self) -> None:
        """Delete the keys of every job that has ended since the last sweep; ClusterError if some cannot be deleted."""
        jobs = self._view.all(MPI_JOBS)
        if isinstance(jobs, Answer):
            return
        ended = {job.uid: job for job in jobs.values() if job.ended}
        self._done &= ended.keys()
        refused: ApiError | None = None
        for uid in ended.keys() - self._done:
            job = ended[uid]
            try:
                await self._api.request("DELETE", f"/api/v1/namespaces/{job.namespace}/secrets/{job.name}{SUFFIX}")
            except ApiError as error:
                if error.status != 404:
                    refused = error
                    continue
            else:
                self._log.info("SSH keys removed", namespace=job.namespace, job=job.name)
            self._done.add(uid)
        if refused is not None:
            raise refused
