"""Jobs that wait for their verdicts, judged one after the other on the quotas and the reservations of one moment.

A new pod is in a quota's `used` before anybody can see it, so for a moment it counts twice. Who is refused while pods
come and go is judged again, and not refused while the pods as they are after the quotas were read would let the job in.
Only that last time are pods listed: with thousands it takes a second. Nor is anybody refused because of jobs that are
announced and may yet be refused themselves: who fits beside all others waits until they are judged.

Whom the cache admits and who certainly fits is not judged again: where many come at once, that would take longer than
they can wait.
"""

import asyncio
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.admission.decision import Decision
from webhook.client.calls import ClusterError
from webhook.client.live_view import LiveView
from webhook.cluster.overlay import Overlay
from webhook.cluster.resource import Resource
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS, LedgerEntry, Reservation, Reservations
from webhook.cluster.train_jobs import TRAIN_JOB_PODS
from webhook.cluster.view import ClusterView
from webhook.companions.reservations.leases import LedgerApi
from webhook.companions.reservations.sight import LIFETIME
from webhook.kit.context import Context
from webhook.predict.quota.room import Limits, Room

# Seconds.
STRETCH: Final = 0.01  # of judging, before other reviews go on
# A job that is refused while pods come and go is judged up to REFUSALS times.
REFUSALS: Final = 5
LONGEST_DOUBT: Final = 0.7  # beyond this only as many as DOUBTS: quotas count pods late on a busy control plane
DOUBTS: Final = 4
MOST_BEFORE: Final = 4  # jobs of one name that an entry names

Decide = Callable[[ClusterView], Decision]
"""Finds the verdict with another view. What it raises is raised for whoever asked."""
Known = dict[Resource[Any, Any], Any]
"""What is known of the namespace besides the cache."""


@dataclass(slots=True, eq=False)
class Asked:
    """A job that waits for its verdict."""

    decide: Decide
    first: Decision
    """The verdict by the cache."""
    limits: Limits
    """Of the quotas that it knew."""
    wanted: Reservation | None
    """What to announce for it: nothing for a job that did not fit a moment ago."""
    writes: bool
    """Whether to reserve what it takes: not for a dry run."""
    since: float
    """When it was asked, by the loop's clock."""
    until: float
    """When it has to be answered, by the loop's clock."""
    refusals: int = 0
    """How often it was refused so far."""
    answer: asyncio.Future[Decision] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def certain(self, room: Room) -> Decision | None:
        """The verdict by the cache, where it is to create a job that fits however much the others take."""
        new = self.first.reservation
        if self.first.denied or new is None or not new.new or self.limits != room.limits or not room.holds(new):
            return None
        return self.first

    def fail(self, error: Exception) -> None:
        """Raise `error` for whoever waits."""
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(slots=True)
class Judged:
    """What became of jobs that were judged together."""

    decisions: dict[Asked, Decision] = field(default_factory=dict)
    """Those that can be answered."""
    again: list[Asked] = field(default_factory=list)
    """Those that are to be judged again, after a pause."""
    at_once: list[Asked] = field(default_factory=list)
    """Those that fit after all, and have to be announced before that is said."""
    reserved: dict[Asked, LedgerEntry] = field(default_factory=dict)
    """What those take that are admitted."""
    failed: dict[Asked, ClusterError] = field(default_factory=dict)
    """Those for which the cluster did not answer."""


class Judge:
    """Judges jobs by what `view` has of the cluster; the Leases are in `namespace`."""

    def __init__(self, now: LedgerApi, view: LiveView, clock: Callable[[], float], *, namespace: str) -> None:
        self._now = now
        self._view = view
        self._clock = clock
        self._namespace = namespace

    async def judge(
        self, namespace: str, batch: Iterable[Asked], entries: list[LedgerEntry], known: Known, *, moving: bool
    ) -> Judged:
        """The verdicts. What is admitted is added to `entries`; `moving` is whether pods come and go."""
        loop = asyncio.get_running_loop()
        found = Judged()
        last: dict[Asked, Decision] = {}
        room = Room(Context(namespace=namespace, view=self._overlay(namespace, entries, known)))
        resumed = loop.time()
        for asked in sorted(batch, key=lambda asked: asked.wanted is None):
            if asked.answer.done():  # it was too late: nobody will store the job
                continue
            try:
                decision = asked.certain(room) or asked.decide(self._overlay(namespace, entries, known))
                waits = decision.denied and self._waits(asked, namespace, entries, known)
            except Exception as error:  # noqa: BLE001 - it concerns this job alone
                asked.fail(error)
                continue
            if decision.denied:
                asked.wanted = None
                if waits or (moving and self._in_doubt(asked)):
                    found.again.append(asked)
                elif moving and loop.time() < asked.until:
                    last[asked] = decision
                else:
                    found.decisions[asked] = decision
            elif asked.writes and decision.reservation is not None:
                expires = self._clock() + LIFETIME
                entry = LedgerEntry(decision.reservation, expires, instead_of=_before(decision.reservation, entries))
                entries.append(entry)
                room.promise(decision.reservation)
                if asked.wanted is None:
                    asked.wanted = decision.reservation
                    found.at_once.append(asked)
                else:
                    found.decisions[asked], found.reserved[asked] = decision, entry
            else:
                found.decisions[asked] = decision
            if loop.time() - resumed > STRETCH:
                await asyncio.sleep(0)  # so that other reviews go on
                resumed = loop.time()
        await self._look_again(namespace, last, entries, known, found)
        return found

    async def _look_again(
        self, namespace: str, refused: dict[Asked, Decision], entries: list[LedgerEntry], known: Known, found: Judged
    ) -> None:
        """Whoever fits with the pods as they are now, beside all that is judged, is to be judged again."""
        if not refused:
            return
        try:
            pods = await self._now.pods(namespace)
        except ClusterError as error:  # it concerns these jobs alone
            found.failed.update(dict.fromkeys(refused, error))
            return
        now: Known = {PODS: pods, TRAIN_JOB_PODS: copy(self._view.within(TRAIN_JOB_PODS, namespace))}
        later = self._overlay(namespace, _firm(entries), {**known, **now})
        for asked, decision in refused.items():
            if _admits(asked, later):
                found.again.append(asked)
            else:
                found.decisions[asked] = decision

    def _waits(self, asked: Asked, namespace: str, entries: list[LedgerEntry], known: Known) -> bool:
        """Whether it would fit but for jobs that are not judged yet."""
        firm = _firm(entries)
        return len(firm) < len(entries) and _admits(asked, self._overlay(namespace, firm, known))

    def _in_doubt(self, asked: Asked) -> bool:
        """Whether the job, which was refused once more, is to be judged again in any case."""
        asked.refusals += 1
        soon = asyncio.get_running_loop().time() - asked.since < LONGEST_DOUBT
        return asked.refusals < (REFUSALS if soon else DOUBTS)

    def _overlay(self, namespace: str, entries: list[LedgerEntry], known: Known) -> ClusterView:
        reserved = Reservations(namespace, "", "", tuple(entries))
        return Overlay(self._view, namespace, {**known, RESERVATIONS: {(self._namespace, ""): reserved}})


def _before(reservation: Reservation, entries: list[LedgerEntry]) -> tuple[str, ...]:
    """The jobs in whose place it would be stored: somebody has sent it again, as when its replica was killed."""
    same = (entry.reservation for entry in entries if entry.reservation.name == reservation.name)
    uids = [each.uid for each in same if reservation.new and each.new and each.uid != reservation.uid]
    return tuple(uids[-MOST_BEFORE:])


def _firm(entries: list[LedgerEntry]) -> list[LedgerEntry]:
    return [entry for entry in entries if not entry.unjudged]


def _admits(asked: Asked, view: ClusterView) -> bool:
    try:
        return not asked.decide(view).denied
    except Exception:  # noqa: BLE001 - then the verdict stays what it was
        return False
