"""What was decided about a job is decided about the same job again, without any rule or injection being asked.

Jobs come again: as a dry run and then in earnest, from a pipeline each night, after they have been deleted. What a job
gets, and what is said of it, follows from its text, from who asks and on which day, from the policy and from what the
cluster was asked for. Where all of that is the same, so is the reply. Of the text, `managedFields` do not count, since
nobody reads them; nor does in a validating review what each object gets anew from the API server: `creationTimestamp`,
and the uid where nobody has looked at it. The name counts: messages have it, and `topology` writes it into the job.

It is kept the second time, for most jobs come once. Nothing is kept where a plug-in or an own rule of the policy
decides, which may look at anything, where a quota counts the job or the requester's rights are asked for, nor of an
update. Any pod can send reviews, in anybody's name: what it sends has to lead to what the same bytes would lead to from
an API server, and to take no more memory than is counted.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, Final
from weakref import ref

import msgspec
from msgspec import structs

from webhook.admission import pipelines, too_large
from webhook.admission.decision import QUOTA_RULE, Decision
from webhook.admission.messages import Finding
from webhook.api.mpijob import MPIJob, ObjectMeta
from webhook.api.review import AdmissionRequest, AdmissionResponse
from webhook.api.same_text import SameText, same_text
from webhook.cluster import asked
from webhook.cluster.asked import AskedView, Facts
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import Answer, ClusterView
from webhook.kit.settings import Action
from webhook.policy.in_force import Policy

# Bytes: of one object, and of who asks and where; about of memory for one decision, and for all of them.
LARGEST: Final = 32 * 1024
MOST_OF_ONE: Final = 128 * 1024
MOST_IN_ALL: Final = 8 * 1024 * 1024
# Jobs that came, by their names and specs.
MOST_SEEN: Final = 512
# So often in a row a job is noted in vain, since it comes with another text or finds another cluster, or is not kept.
MOST_IN_VAIN: Final = 3
# Findings of one job, whatever they lead to.
MOST_FOUND: Final = 50
# What is kept of a job beside its text and the reply; of a finding; of a question to the cluster; and the most that a
# character takes of what these show of themselves.
_OF_A_JOB: Final = 4 * 1024
_OF_A_FINDING: Final = 1024
_OF_A_QUESTION: Final = 256
_OF_A_CHARACTER: Final = 6
_SPEC: Final = b'"spec":'

_Key = tuple[bytes, int]
"""Who asks where, and the hash of the spec: whether the text is the same is found out by comparing."""


class _Known(msgspec.Struct, frozen=True):
    text: SameText
    policy: "ref[Policy]"
    """It may have been replaced."""
    today: date | None
    """Where the day counts, by which exemptions expire."""
    facts: Facts
    """What the cluster was asked for."""
    decision: Decision
    size: int


class DecidedBefore:
    """The decisions of one hook about jobs that were created: the latest, within a bound."""

    def __init__(self) -> None:
        self._known: dict[_Key, _Known] = {}
        self._seen: set[int] = set()
        self._in_vain: Counter[int] = Counter()
        self.size = 0
        """Bytes, about."""

    def mutate(self, request: AdmissionRequest, *, policy: Policy, view: ClusterView) -> Decision:
        """As `pipelines.mutate`, but for `patch` and `document`: of these the decision may have none."""
        text = _text(request, policy)
        key = self._key(request, text)
        known = self._recalled(key, text, policy, view)
        if known is not None:
            return known
        if key is None:
            return pipelines.mutate(request, policy=policy, view=view)
        noting = AskedView(view)
        decision = pipelines.mutate(request, policy=policy, view=noting)
        if not decision.skipped and not any(entry.plugin for entry, _ in policy.injections):
            same = partial(same_text, text, anew=False)
            decision = self._kept(decision, key=key, text=same, policy=policy, noting=noting)
        return decision

    def validate(
        self,
        request: AdmissionRequest,
        *,
        policy: Policy,
        view: ClusterView,
        today: date,
        granted: Mapping[str, bool] | None = None,
        time_left: Callable[[], float] = lambda: float("inf"),
    ) -> Decision:
        """As `pipelines.validate`."""
        text = b""
        # A name that was generated does not come again.
        if request.name and granted is None and not policy.own_rules and not _has_quotas(request, policy, view):
            text = _text(request, policy)
        key = self._key(request, text)
        known = self._recalled(key, text, policy, view, today)
        if known is not None:
            if time_left() < pipelines.RESERVE:
                raise pipelines.DeadlineExceeded("decided before")
            return known
        if key is None:
            return pipelines.validate(
                request, policy=policy, view=view, today=today, granted=granted, time_left=time_left
            )
        noting, handed = AskedView(view), _Handed()
        decision = pipelines.validate(
            request, policy=policy, view=noting, today=today, time_left=time_left, handed=handed
        )
        if not (
            decision.skipped
            or decision.requested
            or decision.reservation
            or handed.metadata.looks
            or any(rule.plugin for rule, _, _ in policy.rules)
            or any(required.plugin for required, _ in policy.required)
        ):
            same = partial(same_text, text, anew=True)
            decision = self._kept(decision, key=key, text=same, policy=policy, noting=noting, today=today)
        return decision

    def _key(self, request: AdmissionRequest, text: bytes) -> _Key | None:
        """Who asks where for which spec; None for a job of which nothing is kept, or that is new.

        It is new if it did not come before, not long ago: most jobs come once.
        """
        if not text:
            return None
        spec = hash(text[text.find(_SPEC) :])
        seen = hash((request.namespace, request.name, spec))
        if seen not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
                self._in_vain.clear()
            self._seen.add(seen)
            return None
        user = request.user_info
        asking = request.namespace, request.name, request.sub_resource, user.username, user.groups
        try:
            who = msgspec.json.encode(asking)
        except UnicodeError:
            return None
        key = who, spec
        return key if len(who) <= LARGEST and self._in_vain[hash(key)] < MOST_IN_VAIN else None

    def _recalled(
        self, key: _Key | None, text: bytes, policy: Policy, view: ClusterView, today: date | None = None
    ) -> Decision | None:
        """What was decided, if it would be decided again."""
        known = self._known.get(key) if key is not None else None
        if (
            known is not None
            and known.policy() is policy
            and known.today == today
            and known.text.matches(text)
            and asked.hold(known.facts, view)
        ):
            self._in_vain.pop(hash(key), None)
            return known.decision
        if key is not None:
            if len(self._in_vain) >= MOST_SEEN:
                self._in_vain.clear()
            self._in_vain[hash(key)] += 1
        return None

    def _kept(
        self,
        decision: Decision,
        *,
        key: _Key,
        text: Callable[[], SameText | None],
        policy: Policy,
        noting: AskedView,
        today: date | None = None,
    ) -> Decision:
        """The decision, kept for the next time where all that it depends on is known."""
        found = [*decision.denied, *decision.warned, *decision.audited, *(finding for finding, _ in decision.exempted)]
        if len(found) > MOST_FOUND or not noting.complete or (same := text()) is None:
            return decision
        decision.policy = policy.identity
        decision = decision.for_others()
        size = _OF_A_JOB + same.length + len(repr(key)) + _size(decision.response(""), found, noting.facts)
        if size > MOST_OF_ONE:
            return decision
        if (before := self._known.pop(key, None)) is not None:
            self.size -= before.size
        if self.size + size > MOST_IN_ALL:
            self._known.clear()
            self.size = 0
        self._known[key] = _Known(same, ref(policy), today, noting.facts, decision, size)
        self.size += size
        return decision


def _text(request: AdmissionRequest, policy: Policy) -> bytes:
    """The object's, if it may be kept; else none."""
    text = bytes(request.object)
    kept = request.operation == "CREATE" and len(text) <= LARGEST and not too_large.as_a_whole(request.object, policy)
    return text if kept else b""


def _size(said: AdmissionResponse, found: Sequence[Finding], facts: Facts) -> int:
    """Bytes of memory, about."""
    shown = repr((said.status, said.warnings, said.audit_annotations))
    shown += "".join(f"{each.violation.path}{each.violation.message}{each.violation.fix}" for each in found)
    shown += "".join(f"{about[1:]}{answer!r}" for (_, about), answer in facts.items())
    fixed = len(bytes(said.patch or b"")) + _OF_A_FINDING * len(found) + _OF_A_QUESTION * len(facts)
    return fixed + _OF_A_CHARACTER * len(shown)


def _noted(metadata: "_Metadata") -> str:
    metadata.looks += 1
    uid: str = _plain.__get__(metadata)
    return uid


_plain: Any = ObjectMeta.uid


class _Metadata(ObjectMeta, gc=False):
    """Counts how often somebody `looks` at the uid."""

    looks: int = 0
    uid = property(_noted)


class _Handed:
    """Gives the rules a job with metadata that notes it."""

    def __init__(self) -> None:
        self.metadata = _Metadata()

    def __call__(self, job: MPIJob) -> MPIJob:
        self.metadata = job.metadata = _Metadata(*structs.astuple(job.metadata))
        return job


def _has_quotas(request: AdmissionRequest, policy: Policy, view: ClusterView) -> bool:
    if policy.action(QUOTA_RULE) is Action.OFF:
        return False
    found = view.within(RESOURCE_QUOTAS, request.namespace)
    return not isinstance(found, Answer) and bool(found)
