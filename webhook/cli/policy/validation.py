"""Checks policies for faults and suspicious settings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from typing import Any

from webhook.cli.policy.document_schema import accepted
from webhook.cli.policy.documents import PolicyFile
from webhook.cli.policy.wording import selection
from webhook.cli.terminal import bad, caution, counted, good, printable
from webhook.policy import layers, store
from webhook.policy.document import PolicyFault
from webhook.policy.faults import HINT
from webhook.policy.in_force import policy_model
from webhook.policy.layers import Layer, may_meet


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of checking policies."""

    policies: Sequence[PolicyFile]
    warnings: Sequence[str]

    @property
    def good(self) -> bool:
        return not any(policy.faults for policy in self.policies)

    def as_text(self) -> Iterator[str]:
        valid = _layers(self.policies)
        for policy in self.policies:
            if policy.document is not None:
                summary = _summary(policy.layer(), valid)
                yield f"{printable(policy.title)}: {good('good')} ({printable(summary)})"
                continue
            yield f"{printable(policy.title)}: {bad('broken')}"
            for fault in policy.faults:
                yield f"  {printable(str(_brief(fault)))}"
                if values := accepted(fault.field):
                    yield f"    accepted: {values}"
        yield from (f"{caution('warning')}: {printable(warning)}" for warning in self.warnings)

    def as_json(self) -> dict[str, Any]:
        return {
            "documents": [
                {
                    "name": policy.name,
                    "title": policy.title,
                    "good": policy.document is not None,
                    "faults": [
                        {"field": f.field, "reason": f.reason, "line": f.line, "accepted": accepted(f.field)}
                        for f in map(_brief, policy.faults)
                    ],
                }
                for policy in self.policies
            ],
            "warnings": list(self.warnings),
        }


def validate(policies: Sequence[PolicyFile], *, today: date) -> Validation:
    """Check each policy alone, and all policies together. `today` (UTC) decides which exemptions have ended."""
    return Validation(policies, [*_each(policies, today), *_together(policies)])


def _brief(fault: PolicyFault) -> PolicyFault:
    """The fault without HINT, because the report lists the accepted values."""
    return replace(fault, reason=fault.reason.removesuffix(f"; {HINT}"))


def _layers(policies: Sequence[PolicyFile]) -> list[Layer]:
    return layers.in_order(policy.layer() for policy in policies if policy.document is not None)


def _mode(layer: Layer, layers_in_order: Sequence[Layer]) -> str:
    text, mode = f"mode {layer.document.mode}", layer.document.mode
    for other in layers_in_order:
        document = other.document
        if "mode" not in document.model_fields_set or not may_meet(other, layer):
            continue
        if document is layer.document:
            text, mode = f"mode {document.mode}", document.mode
        elif document.namespaces in (None, layer.document.namespaces):
            text, mode = f'mode {document.mode} (of "{other.name}")', document.mode
        elif document.mode != mode:
            text += f', {document.mode} where "{other.name}" also applies'
    return text


def _summary(layer: Layer, layers_in_order: Sequence[Layer]) -> str:
    document = layer.document
    settings = sum(1 for path, _ in layers.leaves(layers.written(document)) if path != "mode")
    exemptions = f", {counted(len(document.exemptions), 'exemption')}" if document.exemptions else ""
    mode = _mode(layer, layers_in_order)
    return f"{selection(document)}, priority {document.priority}, {mode}, {counted(settings, 'setting')}{exemptions}"


def _each(policies: Sequence[PolicyFile], today: date) -> Iterator[str]:
    for policy in policies:
        if policy.in_configmap and not policy.labelled:
            yield f'{policy.title}: has no label {store.LABEL}: "true", so the service does not see it'
        yield from (f"{policy.title}: {note}" for note in policy.notes)
        for index, exemption in enumerate(policy.document.exemptions if policy.document else ()):
            if exemption.expired(today):
                yield f"{policy.title}: exemptions[{index}] ended on {exemption.expires} and has no effect"
    names = Counter(policy.name for policy in policies if policy.in_configmap)
    yield from (f'{count} ConfigMaps are called "{name}"' for name, count in names.items() if count > 1)


def _together(policies: Sequence[PolicyFile]) -> Iterator[str]:
    for pair in combinations(_layers(policies), 2):
        if not may_meet(*pair):
            continue
        for first, second, path in layers.ties(pair):
            yield f'{path}: "{first}" and "{second}" have the same priority and different values; "{second}" wins'
        for dropped, reason in layers.merge(pair, policy_model()).dropped:
            other = next(layer.name for layer in pair if layer.name != dropped)
            yield f'"{dropped}" conflicts with "{other}", and is ignored where both apply: {reason}'
