"""The review of a policy ConfigMap: rejects an invalid policy, and reports what a valid policy would change.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from webhook.admission.limits import MAX_FAULT_CHARACTERS, MAX_LISTED_FINDINGS
from webhook.admission.messages import first_of, warnings
from webhook.api import review
from webhook.api.review import AdmissionRequest, AdmissionResponse, ResponseStatus, StatusCause, StatusDetails
from webhook.cluster.resources.namespaces import Namespace
from webhook.kit.custom_rules import Outcome
from webhook.policy import custom_rules_check, layers, store
from webhook.policy.document import TOO_EXPENSIVE, PolicyDocument, PolicyError, PolicyFault
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.layers import Layer, may_meet

NAME_LABEL = "kubernetes.io/metadata.name"


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None


class ConfigMap(msgspec.Struct):
    """The fields of a ConfigMap that the review reads."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    data: dict[str, str] | None = None

    @property
    def is_policy(self) -> bool:
        return (self.metadata.labels or {}).get(store.LABEL) == "true"


@dataclass(slots=True)
class PolicyVerdict:
    """The outcome of the review of a policy ConfigMap."""

    uid: str
    name: str
    error: PolicyError | None = None
    after: PolicySet | None = None
    """The policies after the change; None if nothing would change or the document is broken."""
    notes: list[str] = field(default_factory=list)
    document: PolicyDocument | None = None
    text: str = ""

    def add_trial(self, outcomes: Sequence[Outcome]) -> None:
        """Reject the document if a custom rule in it could not be evaluated or took too long."""
        assert self.document is not None, "its rules were tried"  # noqa: S101 - for the type checker
        checked = custom_rules_check.check(self.document, self.text, outcomes)
        if checked.faults:
            self.error, self.after = PolicyError(*checked.faults), None
        self.notes += checked.notes

    @property
    def response(self) -> AdmissionResponse:
        """The reply of the webhook. If the policy is valid, the notes are warnings."""
        if self.error is None:
            return AdmissionResponse(uid=self.uid, allowed=True, warnings=warnings(self.notes))
        faults = self.error.faults[:MAX_LISTED_FINDINGS]
        causes = [
            StatusCause(
                reason="FieldValueInvalid",
                message=_cut((f"line {fault.line}: " if fault.line else "") + fault.reason),
                field=f"data[{store.KEY}]" + (f".{_cut(fault.field)}" if fault.field else ""),
            )
            for fault in faults
        ]
        more = len(self.error.faults) - len(faults) + self.error.more
        causes[0].message = first_of(causes[0].message, len(faults) + more)
        lines = [*(_cut(str(fault)) for fault in faults), *([f"... and {more} more"] if more else [])]
        details = StatusDetails(name=self.name, kind="ConfigMap", causes=causes)
        message = "\n".join([f'policy "{self.name}" was rejected:', *lines])
        return AdmissionResponse(
            uid=self.uid,
            allowed=False,
            status=ResponseStatus(message=message, reason="Invalid", code=422, details=details),
            audit_annotations={"denied": "policy"},
        )


def too_expensive(request: AdmissionRequest) -> PolicyVerdict:
    return PolicyVerdict(request.uid, request.name, PolicyError(PolicyFault("", TOO_EXPENSIVE)))


def verdict_on(
    request: AdmissionRequest,
    *,
    policies: PolicySet,
    namespaces: Sequence[Namespace] | None,
    now: datetime,
) -> PolicyVerdict:
    """The verdict on a created, changed or deleted ConfigMap. `namespaces` are all namespaces; None if unknown."""
    verdict = PolicyVerdict(request.uid, request.name)
    try:
        new, old = (msgspec.json.decode(raw, type=ConfigMap | None) for raw in (request.object, request.old_object))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise review.ReviewError(f"not a ConfigMap: {error}", uid=request.uid) from None
    verdict.name = next(
        (config.metadata.name for config in (new, old) if config and config.metadata.name), request.name
    )
    others = [layer for layer in policies.layers if layer.name != verdict.name]
    if new is None or not new.is_policy:
        if old is not None and old.is_policy:
            verdict.after = PolicySet(others, policies.cluster_version)
            verdict.notes.append(f'policy "{verdict.name}" is removed: other policies or the defaults replace it')
        if new is not None and (value := (new.metadata.labels or {}).get(store.LABEL)) is not None:
            verdict.notes.append(f'this is not a policy: the label {store.LABEL} is "{value}". Set it to "true".')
        return verdict
    try:
        data = new.data or {}
        document = store.read_from(data, policy_model(), MAX_LISTED_FINDINGS)
    except PolicyError as error:
        # A copy without the traceback: the traceback refers to the verdict, and the cycle would keep both in memory.
        verdict.error = PolicyError(*error.faults, more=error.more)
        return verdict
    layer = Layer(verdict.name, document, new.metadata.resource_version, layers.digest_of(data[store.KEY]))
    verdict.document, verdict.text = document, data[store.KEY]
    verdict.after = PolicySet([*others, layer], policies.cluster_version)
    verdict.notes += _notes(layer, others, namespaces, now)
    return verdict


def _notes(
    layer: Layer, others: Sequence[Layer], namespaces: Sequence[Namespace] | None, now: datetime
) -> Iterator[str]:
    yield from _selected(layer, namespaces)
    for index, exemption in enumerate(layer.document.exemptions):
        if exemption.expired(now.date()):
            yield f"exemptions[{index}]: it ended on {exemption.expires} and has no effect"
        for name in _unknown(exemption.namespaces, namespaces):
            yield f'exemptions[{index}].namespaces: there is no namespace "{name}"'
    others = [other for other in others if may_meet(layer, other)]
    for first, second, path in layers.ties([layer, *others]):
        if layer.name in {first, second}:
            rival = second if first == layer.name else first
            yield f'{path}: "{rival}" has the same priority and a different value; "{second}" wins'
    for other in others:
        for dropped, reason in layers.merge(layers.in_order([other, layer]), policy_model()).dropped:
            yield f'with "{other.name}", "{dropped}" would be left out: {reason}'


def _selected(layer: Layer, namespaces: Sequence[Namespace] | None) -> Iterator[str]:
    selector = layer.document.selector
    if selector is None or namespaces is None:
        return
    named = [
        value
        for requirement in selector.requirements or ()
        if requirement.key == NAME_LABEL and requirement.positive
        for value in sorted(requirement.values or ())
    ]
    unknown = _unknown(named, namespaces)
    for name in unknown:
        yield f'namespaces: there is no namespace "{name}"'
    if not unknown and not any(layer.selects(namespace.labels) for namespace in namespaces):
        yield "namespaces: the selector matches no namespace that exists now"


def _unknown(names: Iterable[str], namespaces: Sequence[Namespace] | None) -> list[str]:
    if namespaces is None:
        return []
    existing = {namespace.name for namespace in namespaces}
    return [name for name in names if name not in existing]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_FAULT_CHARACTERS else text[: MAX_FAULT_CHARACTERS - 3] + "..."
