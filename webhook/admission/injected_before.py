"""What was injected into a job goes into the same job again, without any injection being asked.

Jobs come again: as a dry run and then in earnest, from a pipeline each night, with `generateName`, after they have been
deleted. What a job gets follows from its text, from who asks, from the policy and from what injections ask the cluster
for. Where all of that is the same, so is the reply. Of the text, `managedFields` alone do not count, since nobody reads
them; the name counts, for `topology` writes it into the job.

It is kept the second time, for most jobs come once. Nothing is kept where a plug-in injects, which may look at
anything, nor of an update.
"""

from typing import Final

import msgspec

from webhook.admission import pipelines, too_large
from webhook.admission.decision import Decision
from webhook.api import document
from webhook.api.review import AdmissionRequest
from webhook.cluster import asked
from webhook.cluster.asked import AskedView, Facts
from webhook.cluster.view import ClusterView
from webhook.policy.in_force import Policy

# Bytes: of one object, and about of memory for all that is kept.
LARGEST: Final = 32 * 1024
MOST_IN_ALL: Final = 8 * 1024 * 1024
# Names of jobs that came.
MOST_SEEN: Final = 512
# What is kept of a job beside its text and the reply.
_OF_A_JOB: Final = 4 * 1024

_Key = tuple[str | bytes, ...]


class _Known(msgspec.Struct, frozen=True):
    policy: Policy
    facts: Facts
    """What injections asked the cluster for."""
    decision: Decision


class InjectedBefore:
    """The decisions about jobs that were created: the latest, within a bound."""

    def __init__(self) -> None:
        self._known: dict[_Key, _Known] = {}
        self._seen: set[int] = set()
        self.size = 0
        """Bytes, about."""

    def mutate(self, request: AdmissionRequest, *, policy: Policy, view: ClusterView) -> Decision:
        """As `pipelines.mutate`, but for `patch` and `document`: of these the decision may have none."""
        key = None if self._is_new(request) else _key(request, policy)
        known = self._known.get(key) if key is not None else None
        if known is not None and known.policy is policy and asked.hold(known.facts, view):
            return known.decision
        if key is None:
            return pipelines.mutate(request, policy=policy, view=view)
        noting = AskedView(view)
        decision = pipelines.mutate(request, policy=policy, view=noting)
        if decision.skipped or not noting.complete or any(entry.plugin for entry, _ in policy.injections):
            return decision
        decision.policy = policy.identity
        decision = decision.for_others()
        self._keep(key, _Known(policy, noting.facts, decision))
        return decision

    def _is_new(self, request: AdmissionRequest) -> bool:
        """Whether no job of its name came before, not long ago; found out before its text is looked at."""
        name = hash((request.namespace, request.name))
        if name in self._seen:
            return False
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen.add(name)
        return True

    def _keep(self, key: _Key, known: _Known) -> None:
        said = known.decision.response("")
        texts = *key, bytes(said.patch or b""), *said.warnings, *said.audit_annotations.values()
        size = _OF_A_JOB + sum(map(len, texts))
        if self.size + size > MOST_IN_ALL:
            self._known.clear()
            self.size = 0
        self._known[key] = known
        self.size += size


def _key(request: AdmissionRequest, policy: Policy) -> _Key | None:
    """All that a decision depends on, but for the policy and the cluster; None for what is not kept."""
    if request.operation != "CREATE" or len(memoryview(request.object)) > LARGEST:
        return None
    if too_large.as_a_whole(request.object, policy):
        return None
    try:
        texts = document.texts(request.object)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    user = request.user_info
    groups = msgspec.json.encode(user.groups)
    return request.namespace, request.name, request.sub_resource, user.username, groups, *texts
