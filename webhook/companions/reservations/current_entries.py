"""Which reservations count: those that have not expired, and whose job may still be stored."""

from collections.abc import Callable, Hashable

from webhook.client.live_view import LiveView
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.reservations import LedgerEntry, Reservations
from webhook.cluster.train_jobs import TRAIN_JOBS, TrainJobRecord
from webhook.companions.reservations.limits import LIFETIME_SECONDS

JobRecord = MPIJobRecord | TrainJobRecord


class CurrentEntries:
    """Follows the jobs that `view` shows; `clock` is the API server's."""

    def __init__(self, view: LiveView, clock: Callable[[], float]) -> None:
        self._view = view
        self._clock = clock
        self._ended: dict[str, float] = {}  # when a job was deleted or over, by its uid
        view.on_change(MPI_JOBS, self._job_changed)
        view.on_change(TRAIN_JOBS, self._job_changed)

    def of(self, lease: Reservations) -> list[LedgerEntry]:
        """The entries that count. One that expires much too late is damaged."""
        now, current, stored_names = self._clock(), list[LedgerEntry](), set[str]()
        for entry in reversed(lease.entries):
            reserved = entry.reservation
            # A client whose replica was killed sends its job again. Once that is stored, the first one cannot be.
            replaced = reserved.new and reserved.name in stored_names
            if replaced or reserved.uid in self._ended or not now < entry.expires <= now + 2 * LIFETIME_SECONDS:
                continue
            current.append(entry)
            job = self._view.get(MPI_JOBS, (lease.namespace, reserved.name))
            if reserved.new and isinstance(job, MPIJobRecord) and job.uid == reserved.uid:
                stored_names.add(reserved.name)
        return current[::-1]

    def forget(self) -> None:
        """Drop what is older than any reservation."""
        oldest = self._clock() - 3 * LIFETIME_SECONDS
        self._ended = {uid: ended for uid, ended in self._ended.items() if ended > oldest}

    def _job_changed(self, _: Hashable, old: JobRecord | None, new: JobRecord | None) -> None:
        for job in (old, new):
            if job is not None and (new is None or job.over or job.uid != new.uid):
                self._ended[job.uid] = self._clock()
