"""The differences between two policies, or two sets of policies, value by value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import PurePath
from typing import Any

from webhook.cli.policy.documents import PolicyFile
from webhook.cli.policy.wording import exemption_in_words, inline
from webhook.cli.terminal import added, bad, heading, printable
from webhook.policy import layers
from webhook.policy.document import PolicyDocument
from webhook.policy.exemptions import Exemption
from webhook.policy.in_force import policy_model


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a setting in a document."""

    value: Any
    is_set: bool
    """False for a built-in default."""

    def __str__(self) -> str:
        return inline(self.value) if self.is_set else f"not set (default {inline(self.value)})"


@dataclass(frozen=True, slots=True)
class Change:
    """The changes in one document."""

    name: str
    kind: str
    """"changes", "comes" (a new document) or "goes" (a removed document)."""
    values: Sequence[tuple[str, Value, Value]]
    """(path, old value, new value)."""
    exemptions_gone: Sequence[Exemption]
    exemptions_new: Sequence[Exemption]

    def as_text(self, today: date) -> Iterator[str]:
        yield heading(printable(f"{self.name} {self.kind}"))
        for path, old, new in self.values:
            yield f"  {path}: {printable(f'{old} -> {new}')}"
        for exemption in self.exemptions_gone:
            yield f"  {bad('- exemption')} {printable(exemption_in_words(exemption, today))}"
        for exemption in self.exemptions_new:
            yield f"  {added('+ exemption')} {printable(exemption_in_words(exemption, today))}"

    def as_json(self) -> dict[str, Any]:
        return {
            "policy": self.name,
            "what": self.kind,
            "values": [
                {"path": path, "old": old.value, "oldIsSet": old.is_set, "new": new.value, "newIsSet": new.is_set}
                for path, old, new in self.values
            ],
            "exemptionsGone": [exempt.model_dump(mode="json", by_alias=True) for exempt in self.exemptions_gone],
            "exemptionsNew": [exempt.model_dump(mode="json", by_alias=True) for exempt in self.exemptions_new],
        }


def differences(old: Sequence[PolicyFile], new: Sequence[PolicyFile]) -> list[Change]:
    """The changes from `old` to `new`. Documents with the same name are compared.

    If `old` and `new` have one document each, these two are compared, whatever their names are.
    """
    before, after = _by_name(old), _by_name(new)
    if len(before) == len(after) == 1:
        (old_name,), (new_name,) = before, after
        name = new_name if old_name == new_name else f"{old_name} -> {new_name}"
        before, after = {name: before[old_name]}, {name: after[new_name]}
    changes = []
    for name in sorted(before.keys() | after.keys()):
        kind = "comes" if name not in before else "goes" if name not in after else "changes"
        empty = policy_model()()
        change = _change(name, kind, before.get(name, empty), after.get(name, empty))
        if kind != "changes" or change.values or change.exemptions_gone or change.exemptions_new:
            changes.append(change)
    return changes


def _by_name(policies: Sequence[PolicyFile]) -> dict[str, PolicyDocument]:
    return {
        policy.name if policy.in_configmap else PurePath(policy.name).name: policy.document
        for policy in policies
        if policy.document is not None
    }


def _change(name: str, kind: str, old: PolicyDocument, new: PolicyDocument) -> Change:
    before, after = _values(old), _values(new)
    defaults = policy_model()().model_dump(mode="json", by_alias=True, exclude={"api_version", "kind"})
    unset = {path: Value(value, is_set=False) for path, value in layers.leaves(defaults)}
    values = [
        (path, before.get(path, unset[path]), after.get(path, unset[path]))
        for path in unset
        if before.get(path) != after.get(path)
    ]
    return Change(
        name,
        kind,
        values,
        [exemption for exemption in old.exemptions if exemption not in new.exemptions],
        [exemption for exemption in new.exemptions if exemption not in old.exemptions],
    )


def _values(document: PolicyDocument) -> dict[str, Value]:
    own = {"priority": document.priority, "namespaces": document.namespaces}
    return {path: Value(value, is_set=True) for path, value in (*own.items(), *layers.leaves(layers.written(document)))}
