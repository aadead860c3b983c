"""A review that was recorded: what is left of it, what was decided, and the verdict of other policies on it. Pure.

A job of which values were taken out (`redaction`) is judged as it is. Where the policy of that time judges it otherwise
than it did then, the record says too little, or the cluster has changed: that is told, and not passed over.
"""

import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import Final, Literal

import msgspec

from webhook.admission import anew, pipelines, redaction
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.api import mpijob
from webhook.api.review import AdmissionRequest, GroupVersionKind
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import Answer
from webhook.cluster.without_jobs import WithoutJobs
from webhook.policy.in_force import Policy

_KIND: Final = GroupVersionKind(mpijob.GROUP, mpijob.API_VERSION.partition("/")[2], "MPIJob")
_VERSION: Final = re.compile(r"@\S*")


class RecordedReview(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """One line of a record."""

    time: datetime
    operation: Literal["CREATE", "UPDATE"]
    namespace: str
    name: str
    user: str = ""
    """A name for who submitted it, the same as long as the process that recorded it ran."""
    labels: dict[str, str] | None = None
    """Those of the namespace; None where they were unknown."""
    policy: str = ""
    """Which policies decided, in which versions."""
    denied: list[str] = []
    """Rules."""
    warned: list[str] = []
    exempted: list[str] = []
    """Rules from which the user was exempt: who that was is not recorded, so it is taken to be so still."""
    unrecorded: int = 0
    """Reviews between the last one that was recorded and this one."""
    redacted: int = 0
    """Values that were taken out."""
    object: msgspec.Raw
    """The job as it was to be stored, without what may be secret."""
    old_object: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def job(self) -> str:
        """For people."""
        return f"{self.namespace}/{self.name}"

    def where(self, view: WithoutJobs) -> Namespace | Answer:
        """The namespace, as it is now, or else as it was."""
        found = view.get(NAMESPACES, self.namespace)
        if isinstance(found, Answer) and self.labels is not None:
            return Namespace(self.namespace, self.labels)
        return found

    def decided_by(self, policy: Policy) -> bool:
        """Whether these documents decided; that somebody stored them anew without a change counts for nothing."""
        return _VERSION.sub("", self.policy) == _VERSION.sub("", policy.identity)


def of(
    request: AdmissionRequest, decision: Decision, *, time: datetime, user: str, labels: dict[str, str] | None
) -> RecordedReview:
    """The record of a decision; ValueError for an object that is no JSON."""
    new, count = _redacted(request.object)
    old, old_count = _redacted(request.old_object)
    return RecordedReview(
        time=time,
        operation="UPDATE" if request.operation == "UPDATE" else "CREATE",
        namespace=request.namespace,
        name=decision.name,
        user=user,
        labels=labels,
        policy=decision.policy,
        denied=_rules(decision.denied),
        warned=_rules(decision.warned),
        exempted=_rules(finding for finding, _ in decision.exempted),
        redacted=count + old_count,
        object=new,
        old_object=old,
    )


def judged(review: RecordedReview, policy: Policy, *, view: WithoutJobs, today: date) -> tuple[Decision, Decision]:
    """What the policy would inject into the job of a review, and its verdict on it."""
    if review.operation == "CREATE":
        creation = anew.creation(review.object)
        if creation is None:
            raise ValueError("the job cannot be read")
        injected = anew.inject(creation, policy, view)
        decision = anew.verdict(creation, injected, policy, view=view, today=today)
    else:
        update = AdmissionRequest(
            uid="replay",
            operation="UPDATE",
            kind=_KIND,
            name=review.name,
            namespace=review.namespace,
            object=review.object,
            old_object=review.old_object,
        )
        injected = Decision()
        decision = pipelines.validate(update, policy=policy, view=view, today=today)
    decision.denied = [finding for finding in decision.denied if finding.rule not in review.exempted]
    return injected, decision


def _redacted(raw: msgspec.Raw) -> tuple[msgspec.Raw, int]:
    document = msgspec.json.decode(raw)
    if not isinstance(document, dict):
        return msgspec.Raw(b"null"), 0
    copy, count = redaction.redacted(document)
    return msgspec.Raw(msgspec.json.encode(copy)), count


def _rules(findings: Iterable[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.rule for finding in findings))
