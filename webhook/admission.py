"""The two pipelines: mutate(request) and validate(request). Pure: given request, policy and cluster view."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from webhook import injections, messages, rules
from webhook.api import mpijob, review
from webhook.api.mpijob import MPIJob
from webhook.api.shape import ShapeError
from webhook.cluster.view import ClusterView
from webhook.context import Context
from webhook.injections import Injection
from webhook.injections.patch import PatchBuilder, PatchConflict
from webhook.messages import Finding
from webhook.policy import document
from webhook.policy.document import Document
from webhook.policy.settings import Action, InjectionSettings, RuleSettings
from webhook.rules import Reason, Rule, Violation

# Kueue compares these jobs with a Workload that exists already: any change makes it stop them (Kueue
# `pkg/controller/jobframework`, "prebuilt workload is out of sync").
KUEUE_FIXED = ("kueue.x-k8s.io/multikueue-origin", "kueue.x-k8s.io/prebuilt-workload-name")
SCHEMA = "schema"
NOT_OURS = "not a CREATE or UPDATE of a job"
BY_CONTROLLER = "an update by a controller"
# Seconds kept back for writing the reply.
RESERVE = 0.05


class DeadlineExceeded(Exception):
    """The API server will not wait for the verdict any longer."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy document, ready for the hot path: what is off is not in it."""

    document: Document
    rules: tuple[tuple[Rule, RuleSettings, Action], ...]
    injections: tuple[tuple[Injection, InjectionSettings], ...]


@dataclass(slots=True)
class Decision:
    """What was decided, for the reply, the log, the metrics and the command line.

    `denied`, `warned` and `audited` are the findings by what they led to; `skipped` says why nothing was looked at;
    `patch` and `authors` (the injection of each operation) run in parallel, `document` is the patched object.
    """

    denied: list[Finding] = field(default_factory=list)
    warned: list[Finding] = field(default_factory=list)
    audited: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: str = ""
    name: str = ""
    patch: list[dict[str, object]] = field(default_factory=list)
    authors: list[str] = field(default_factory=list)
    document: dict[str, Any] | None = None

    @property
    def allowed(self) -> bool:
        """Whether the API server may go on."""
        return not self.denied

    @property
    def message(self) -> str:
        """The text of the refusal, empty for an admitted job."""
        return messages.denial(self.name, self.denied) if self.denied else ""

    @property
    def warnings(self) -> list[str]:
        """What a user sees beside the verdict: findings first, then what was put in."""
        return messages.warnings([*(finding.warning for finding in self.warned), *self.notes])

    def response(self, uid: str) -> review.AdmissionResponse:
        """The reply for the request `uid`."""
        return review.AdmissionResponse(
            uid=uid,
            allowed=self.allowed,
            status=self._status() if self.denied else None,
            patch=review.encode_patch(self.patch) if self.patch else None,
            patch_type="JSONPatch" if self.patch else None,
            warnings=self.warnings,
            audit_annotations=self._audit(),
        )

    def _status(self) -> review.Status:
        causes = [
            review.StatusCause(reason=str(f.violation.reason), message=f.sentence, field=f.violation.path)
            for f in self.denied[: messages.MAX_LISTED]
        ]
        details = review.StatusDetails(name=self.name, group=mpijob.GROUP, kind="MPIJob", causes=causes)
        return review.Status(message=self.message, reason="Invalid", code=422, details=details)

    def _audit(self) -> dict[str, str]:
        found = {
            "denied": _ids(self.denied),
            "warned": _ids(self.warned),
            "audited": _ids(self.audited),
            "injected": ",".join(dict.fromkeys(self.authors)),
            "skipped": self.skipped,
        }
        return {key: value for key, value in found.items() if value}


@cache
def policy_model() -> type[Document]:
    """The policy document's model, with every rule and injection there is."""
    return document.assemble(rules.REGISTRY, injections.REGISTRY)


def load_policy(text: str | bytes | None) -> Policy:
    """The policy in YAML `text`, the built-in defaults for None; PolicyError for a broken document."""
    model = policy_model()
    loaded = model.model_validate({}) if text is None else document.load(text, model)
    active = []
    for rule in rules.REGISTRY.values():
        settings = loaded.settings_of_rule(rule.id)
        action = settings.action.at_most(loaded.ceiling)
        if action is not Action.OFF:
            active.append((rule, settings, action))
    switched_on = [
        (injection, loaded.settings_of_injection(injection.id))
        for injection in injections.REGISTRY.values()
        if loaded.settings_of_injection(injection.id).enabled
    ]
    return Policy(document=loaded, rules=tuple(active), injections=tuple(switched_on))


def mutate(request: review.AdmissionRequest, *, policy: Policy, view: ClusterView) -> Decision:
    """Put in what the job needs. Never denies: an object of a wrong shape is left to the API server's schema.

    On UPDATE only what was put in at creation and has gone is put back: `kubectl apply` replaces whole lists of a
    custom resource, and Kueue stops a running job whose containers differ from those that it admitted.
    """
    stored = None
    try:
        job = mpijob.decode(request.object)
        # Here the fields that nobody reads are parsed for the first time.
        patched = msgspec.json.decode(request.object)
        if request.operation == "UPDATE":
            stored = msgspec.json.decode(request.old_object) or {}
    except (ShapeError, msgspec.DecodeError, UnicodeDecodeError) as error:
        return Decision(skipped=f"schema: {error}"[:200], name=request.name)
    decision = Decision(name=_name(request, job), skipped=_hands_off(request, job, policy))
    if decision.skipped:
        return decision
    patch = PatchBuilder(patched, stored)
    ctx = _context(request, job, view, old=None)
    try:
        for injection, settings in policy.injections:
            patch.author = injection.id
            notes = [f"{injection.id}: {note}" for note in injection.inject(job, settings, ctx, patch)]
            if stored is None:
                decision.notes += notes
    except PatchConflict as error:
        return Decision(skipped=f"schema: {error}"[:200], name=decision.name)
    decision.patch, decision.authors, decision.document = patch.operations, patch.authors, patch.document
    return decision


def validate(
    request: review.AdmissionRequest,
    *,
    policy: Policy,
    view: ClusterView,
    time_left: Callable[[], float] = lambda: float("inf"),
) -> Decision:
    """Every violation in one decision; `time_left` gives the seconds until the API server stops waiting.

    On UPDATE only what the old object did not already violate counts. DeadlineExceeded when the time is up.
    """
    try:
        job = mpijob.apply_operator_defaults(mpijob.decode(request.object))
    except ShapeError as error:
        return Decision(denied=[_wrong_shape(error)], name=request.name)
    decision = Decision(name=_name(request, job))
    old = _old(request) if request.operation == "UPDATE" else None
    decision.skipped = _passes(request, job, old, policy)
    if decision.skipped:
        return decision
    ctx = _context(request, job, view, old)
    found = [
        (finding, action)
        for rule, settings, action in policy.rules
        for finding in _findings(rule, settings, job, ctx, time_left)
    ]
    if found and old is not None:
        known = set(_all_findings(policy, old, _context(request, old, view, old=None), time_left))
        found = [(finding, action) for finding, action in found if finding not in known]
    for finding, action in found:
        effective = action.at_most(Action.WARN) if finding.violation.advisory else action
        {Action.DENY: decision.denied, Action.WARN: decision.warned}.get(effective, decision.audited).append(finding)
    return decision


def _findings(
    rule: Rule, settings: RuleSettings, job: MPIJob, ctx: Context, time_left: Callable[[], float]
) -> Iterator[Finding]:
    if time_left() < RESERVE:
        raise DeadlineExceeded(rule.id)
    for violation in rule.check(job, settings, ctx):
        yield Finding(rule.id, violation)


def _all_findings(policy: Policy, job: MPIJob, ctx: Context, time_left: Callable[[], float]) -> Iterator[Finding]:
    for rule, settings, _ in policy.rules:
        yield from _findings(rule, settings, job, ctx, time_left)


def _hands_off(request: review.AdmissionRequest, job: MPIJob, policy: Policy) -> str:
    """Why nothing may be put into this object, empty when it may."""
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return NOT_OURS
    if request.operation == "UPDATE" and request.user_info.username in policy.document.controllers:
        return BY_CONTROLLER
    if job.metadata.deletion_timestamp:
        return "being deleted"
    if any(owner.controller for owner in job.metadata.owner_references or ()):
        return "owned by a controller"
    if any(label in job.labels for label in KUEUE_FIXED):
        return "a copy made by Kueue"
    return ""


def _passes(request: review.AdmissionRequest, job: MPIJob, old: MPIJob | None, policy: Policy) -> str:
    """Why this object is admitted unseen, empty when it is not."""
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return NOT_OURS
    if job.metadata.deletion_timestamp:
        return "being deleted"
    if request.operation == "UPDATE" and request.user_info.username in policy.document.controllers:
        return BY_CONTROLLER
    if old is not None and job.spec == old.spec and _same_metadata(job, old):
        return "nothing changed that is checked"
    return ""


def _same_metadata(job: MPIJob, old: MPIJob) -> bool:
    return job.labels == old.labels and job.annotations == old.annotations


def _old(request: review.AdmissionRequest) -> MPIJob | None:
    """The stored object, None when it cannot be read: then everything about the new one counts."""
    try:
        return mpijob.apply_operator_defaults(mpijob.decode(request.old_object))
    except ShapeError:
        return None


def _context(request: review.AdmissionRequest, job: MPIJob, view: ClusterView, old: MPIJob | None) -> Context:
    return Context(
        operation="UPDATE" if request.operation == "UPDATE" else "CREATE",
        namespace=request.namespace or job.metadata.namespace,
        username=request.user_info.username,
        groups=tuple(request.user_info.groups or ()),
        old=old,
        view=view,
    )


def _name(request: review.AdmissionRequest, job: MPIJob) -> str:
    return job.metadata.name or request.name or f"{job.metadata.generate_name}*"


def _wrong_shape(error: ShapeError) -> Finding:
    return Finding(SCHEMA, Violation(error.path, error.message, fix="Correct the type.", reason=Reason.INVALID))


def _ids(findings: list[Finding]) -> str:
    return ",".join(dict.fromkeys(finding.rule for finding in findings))


__all__ = ["DeadlineExceeded", "Decision", "Policy", "load_policy", "mutate", "policy_model", "validate"]
