"""What was decided about a job is decided about the same job again, without any rule or injection being asked.

Jobs come again: as a dry run and then in earnest, from a pipeline each night, with `generateName`, after they have been
deleted. What a job gets, and what is said of it, follows from its text, from who asks and on which day, from the policy
and from what the cluster was asked for. Where all of that is the same, so is the reply. Of the text, what each object
gets anew from the API server does not count: `managedFields` and `creationTimestamp`, which nobody reads, and the uid
where nobody has looked at it. The name counts: messages have it, and `topology` writes it into the job.

It is kept the second time, for most jobs come once. Nothing is kept where a plug-in or an own rule of the policy
decides, which may look at anything, where a quota counts the job or the requester's rights are asked for, nor of an
update.
"""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

import msgspec
from msgspec import structs

from webhook.admission import own_rules, pipelines, too_large
from webhook.admission.decision import Decision
from webhook.api import document
from webhook.api.mpijob import MPIJob, ObjectMeta
from webhook.api.review import AdmissionRequest
from webhook.cluster import asked
from webhook.cluster.asked import AskedView, Facts
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import Answer, ClusterView
from webhook.kit.own_rules import Answers
from webhook.policy.in_force import Policy

# Bytes: of one object, and about of memory for all that is kept.
LARGEST: Final = 32 * 1024
MOST_IN_ALL: Final = 6 * 1024 * 1024
# Names of jobs that came.
MOST_SEEN: Final = 512
# What is kept of a job beside its text and the reply, and of each answer of the cluster.
_OF_A_JOB: Final = 4 * 1024
_OF_AN_ANSWER: Final = 128

_Key = tuple[str | bytes, ...]


class _Known(msgspec.Struct, frozen=True):
    policy: Policy
    today: date | None
    """Where the day counts, by which exemptions expire."""
    facts: Facts
    """What the cluster was asked for."""
    decision: Decision


class DecidedBefore:
    """The decisions of one hook about jobs that were created: the latest, within a bound."""

    def __init__(self) -> None:
        self._known: dict[_Key, _Known] = {}
        self._seen: set[int] = set()
        self.size = 0
        """Bytes, about."""

    def mutate(self, request: AdmissionRequest, *, policy: Policy, view: ClusterView) -> Decision:
        """As `pipelines.mutate`, but for `patch` and `document`: of these the decision may have none."""
        key = self._key(request, policy)
        if known := self._holding(key, policy, view):
            return known
        if key is None:
            return pipelines.mutate(request, policy=policy, view=view)
        noting = AskedView(view)
        decision = pipelines.mutate(request, policy=policy, view=noting)
        if decision.skipped or any(entry.plugin for entry, _ in policy.injections):
            return decision
        return self._kept(key, policy, noting, decision)

    def validate(
        self,
        request: AdmissionRequest,
        *,
        policy: Policy,
        view: ClusterView,
        today: date,
        granted: Mapping[str, bool] | None = None,
        answers: Answers = own_rules.NO_ANSWERS,
        time_left: Callable[[], float] = lambda: float("inf"),
    ) -> Decision:
        """As `pipelines.validate`."""
        key = None
        if granted is None and not policy.own_rules and not _has_quotas(view, request.namespace):
            key = self._key(request, policy)
        if known := self._holding(key, policy, view, today):
            if time_left() < pipelines.RESERVE:
                raise pipelines.DeadlineExceeded("decided before")
            return known
        if key is None:
            return pipelines.validate(
                request, policy=policy, view=view, today=today, granted=granted, answers=answers, time_left=time_left
            )
        noting, handed = AskedView(view), _Handed()
        decision = pipelines.validate(
            request, policy=policy, view=noting, today=today, time_left=time_left, handed=handed
        )
        if (
            decision.skipped
            or decision.requested
            or decision.reservation
            or handed.metadata.looks
            or any(rule.plugin for rule, _, _ in policy.rules)
        ):
            return decision
        return self._kept(key, policy, noting, decision, today)

    def _key(self, request: AdmissionRequest, policy: Policy) -> _Key | None:
        """All that a decision depends on, but for the policy, the day and the cluster; None for what is not kept."""
        if request.operation != "CREATE" or self._is_new(request):
            return None
        if len(memoryview(request.object)) > LARGEST or too_large.as_a_whole(request.object, policy):
            return None
        try:
            texts = document.texts(request.object)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        user = request.user_info
        groups = msgspec.json.encode(user.groups)
        return request.namespace, request.name, request.sub_resource, user.username, groups, *texts

    def _is_new(self, request: AdmissionRequest) -> bool:
        """Whether no job of its name came before, not long ago; found out before its text is looked at."""
        name = hash((request.namespace, request.name))
        if name in self._seen:
            return False
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen.add(name)
        return True

    def _holding(
        self, key: _Key | None, policy: Policy, view: ClusterView, today: date | None = None
    ) -> Decision | None:
        """What was decided, if it would be decided again."""
        known = self._known.get(key) if key is not None else None
        if known is None or known.policy is not policy or known.today != today or not asked.hold(known.facts, view):
            return None
        return known.decision

    def _kept(
        self, key: _Key, policy: Policy, noting: AskedView, decision: Decision, today: date | None = None
    ) -> Decision:
        """The decision, kept for the next time where all that it depends on is known."""
        if not noting.complete:
            return decision
        decision.policy = policy.identity
        decision = decision.for_others()
        said = decision.response("")
        refusal = said.status.message if said.status is not None else ""
        texts = *key, bytes(said.patch or b""), refusal, *said.warnings, *said.audit_annotations.values()
        size = _OF_A_JOB + sum(map(len, texts)) + _OF_AN_ANSWER * len(noting.facts)
        if self.size + size > MOST_IN_ALL:
            self._known.clear()
            self.size = 0
        self._known[key] = _Known(policy, today, noting.facts, decision)
        self.size += size
        return decision


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


def _has_quotas(view: ClusterView, namespace: str) -> bool:
    found = view.within(RESOURCE_QUOTAS, namespace)
    return not isinstance(found, Answer) and bool(found)
