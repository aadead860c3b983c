"""With --remove-keys, the SSH keys of a job are deleted when the job ends, not when the job is deleted.

The operator does not create the Secret again after the launcher has ended (mpi-operator
`pkg/controller/mpi_job_controller.go`, syncHandler). Every ended job had a Secret, because the operator creates no pods
without it. The service needs permission only to delete Secrets, not to read them.

At the time of the deletion, a new job with the same name may already have a new Secret. Therefore a dry-run deletion
first returns the uid of the stored Secret. If the ended job still exists after the dry run, the Secret belongs to the
ended job. The Secret is then deleted with this uid as a precondition.
"""

import asyncio
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from webhook import PROGRAM
from webhook.client.calls import ApiError, ClusterError
from webhook.client.live_view import LiveView
from webhook.client.objects import KubernetesObject, get
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.view import Answer
from webhook.controllers.reconciler import DONE, PacedClient, Reconciler
from webhook.controllers.ssh.secret import SUFFIX

NAME: Final = "key-removal"
# The Lease is in the service's namespace, where the service may write Leases. The Lease stores a time: all jobs that
# ended before this time have been processed.
LEASE: Final = f"{PROGRAM}-key-removal"
ANNOTATION: Final = "training.openshift.io/removed-until"
# Seconds between two writes of the progress.
STORE_SECONDS: Final = 10.0
# Seconds that the watch may need to show a job's end. This includes the difference between the clock of the status and
# `now`.
MARGIN_SECONDS: Final = 600.0
# Seconds between two attempts without permission: each attempt is a line in the cluster's audit log.
DENIED_SECONDS: Final = 300.0
# Statuses of a deletion if the Secret is gone or replaced.
_NOT_IT: Final = {404, 409}


@dataclass(eq=False)
class KeyRemoval:
    """Deletes the SSH keys of ended jobs. Several replicas may try to delete the same Secret.

    Earlier runs processed the jobs that ended before the stored time. `now` is the API server's clock.
    """

    api: PacedClient
    view: LiveView
    namespace: InitVar[str]
    now: Callable[[], float]
    log: Any

    def __post_init__(self, namespace: str) -> None:
        self.reconciler: Reconciler[ByNamespace] = Reconciler(NAME, self._look, log=self.log)
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
        self._since: str | None = None
        self._denied: ApiError | None = None
        self._denied_until = 0.0
        self._stored_count = 0
        """The number of processed jobs at the last write of the progress."""
        self.view.on_change(MPI_JOBS, self._changed)

    async def run(self) -> None:
        self._since = await self._read_since()
        jobs = self.view.all(MPI_JOBS)
        for key, job in () if isinstance(jobs, Answer) else list(jobs.items()):
            self._changed(key, None, job)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reconciler.run())
            while True:
                await asyncio.sleep(STORE_SECONDS)
                await self._store_progress()

    def _changed(self, key: ByNamespace, old: MPIJobRecord | None, new: MPIJobRecord | None) -> None:
        ended_before = old is not None and new is not None and old.uid == new.uid and bool(old.ended_at)
        if (
            self._since is not None
            and new is not None
            and new.ended_at
            and new.ended_at >= self._since
            and not ended_before
        ):
            self.reconciler.add(key)

    async def _store_progress(self) -> None:
        done = self.reconciler.results[DONE]
        if done > self._stored_count and self.reconciler.idle:
            moment = datetime.fromtimestamp(self.now() - MARGIN_SECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            await self._write_since(moment)
            self._stored_count = done

    async def _read_since(self) -> str:
        """The stored time; empty if it is missing or cannot be read. All ended jobs are then processed again."""
        try:
            lease = await get(self.api, f"{self._leases}/{LEASE}")
        except ClusterError:
            return ""
        return _moment(lease)

    async def _write_since(self, moment: str) -> None:
        """Store `moment`, unless a later time is stored or another replica is faster."""
        try:
            lease = await get(self.api, f"{self._leases}/{LEASE}")
            metadata: dict[str, Any] = {"name": LEASE, "annotations": {ANNOTATION: moment}}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
            if lease is None:
                await self.api.request("POST", self._leases, body)
            elif _moment(lease) < moment:
                metadata["resourceVersion"] = lease["metadata"]["resourceVersion"]
                await self.api.request("PUT", f"{self._leases}/{LEASE}", body)
        except ApiError as error:
            if error.status not in {403, *_NOT_IT}:
                raise

    async def _look(self, key: ByNamespace) -> float | None:
        job = self.view.get(MPI_JOBS, key)
        if isinstance(job, Answer) or not job.ended_at:
            return None
        if self._denied is not None and self.now() < self._denied_until:
            raise self._denied
        try:
            await self._remove(job)
        except ApiError as error:
            if error.status == 403:
                self._denied, self._denied_until = error, self.now() + DENIED_SECONDS
            if error.status not in _NOT_IT:
                raise
        return None

    async def _remove(self, job: MPIJobRecord) -> None:
        namespace, name = quote(job.namespace, safe=""), quote(job.name, safe="")
        secret = f"/api/v1/namespaces/{namespace}/secrets/{name}{SUFFIX}"
        trial = await self.api.request("DELETE", secret, {"dryRun": ["All"]})
        uid = (trial.get("details") or {}).get("uid")
        path = MPI_JOBS.path(MPI_JOBS.api_versions[0], namespace)
        stored = await get(self.api, f"{path}/{name}")
        if not uid or stored is None or stored["metadata"].get("uid") != job.uid:
            return  # the garbage collector deletes the Secret of a deleted job
        await self.api.request("DELETE", secret, {"preconditions": {"uid": uid}})
        self.log.info("SSH keys removed", namespace=job.namespace, job=job.name)


def _moment(lease: KubernetesObject | None) -> str:
    annotations = (lease or {}).get("metadata", {}).get("annotations") or {}
    return str(annotations.get(ANNOTATION) or "")
