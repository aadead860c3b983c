"""The values that apply in one namespace, each with the policy that sets the value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from webhook.cli.policy.wording import exemption_in_words, inline, selection
from webhook.cli.terminal import caution, faint, heading, printable
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.view import ABSENT, Answer
from webhook.kit.settings import Action
from webhook.policy import layers
from webhook.policy.exemptions import Exemption
from webhook.policy.in_force import Policy, PolicySet
from webhook.policy.layers import DEFAULTS, OWN, Effective

NOT_KNOWN: Final = "the namespace's labels are unknown without --kubeconfig, or --cluster with namespaces"


@dataclass(frozen=True, slots=True)
class EffectiveValues:
    """The values that apply in a namespace."""

    namespace: str
    stored: Namespace | Answer
    """The namespace in the cluster, or ABSENT or UNKNOWN."""
    policies: PolicySet
    matching: Sequence[int]
    """The indexes of the layers in `policies` that select the namespace."""
    merged: Effective
    policy: Policy
    today: date
    origin: str
    """The source of the policies, for messages; may be empty."""

    @property
    def notes(self) -> list[str]:
        lines = []
        if isinstance(self.stored, Answer):
            lines.append(f'there is no namespace "{self.namespace}"' if self.stored is ABSENT else NOT_KNOWN)
            selective = [layer.name for layer in self.policies.layers if layer.document.selector is not None]
            if selective:
                lines.append(f"ignored here, because it is unknown whether they apply: {', '.join(selective)}")
        lines += [f"{name} is left out: {reason}" for name, reason in self.merged.dropped]
        mode = self.merged.document.mode
        if mode != "enforce":
            source = self.merged.sources.get("mode", DEFAULTS)
            lines.append(f"the mode is {mode}, by {source}: no rule does more than {mode}")
        only = self.merged.document.inject_only
        if only is not None:
            lines.append(f"injectOnly is [{', '.join(only)}]: no other injection is active")
        return lines

    @property
    def actions(self) -> dict[str, Action]:
        actions = {rule.id: action for rule, _, action in self.policy.rules}
        return {rule_id: actions.get(rule_id, Action.OFF) for rule_id in self._values()["rules"]}

    @property
    def exemptions(self) -> list[tuple[str, Exemption]]:
        dropped = {name for name, _ in self.merged.dropped}
        chosen = (self.policies.layers[index] for index in self.matching)
        return [
            (layer.name, exemption)
            for layer in chosen
            if layer.name not in dropped
            for exemption in layer.document.exemptions
        ]

    def as_text(self) -> Iterator[str]:
        """The lines for people. Each value has one line with its whole path, for grep."""
        labels = self.stored.labels if isinstance(self.stored, Namespace) else {}
        shown = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        yield heading(f"namespace {printable(self.namespace)}") + (f" ({printable(shown)})" if shown else "")
        for index, layer in enumerate(self.policies.layers):
            unmatched = "may apply" if isinstance(self.stored, Answer) else "does not apply"
            verb = "applies" if index in self.matching else unmatched
            about = f"priority {layer.document.priority}, {selection(layer.document)}"
            yield printable(f"  {layer.name} {verb}: {about}")
        if not self.policies.layers:
            where = f" in {self.origin}" if self.origin else ""
            yield printable(f"  no policy{where}: the built-in defaults apply")
        yield from (f"{caution('note')}: {printable(note)}" for note in self.notes)
        yield ""
        yield from self._table()
        yield ""
        yield heading("exemptions")
        for name, exemption in self.exemptions:
            yield printable(f"  {name}: {exemption_in_words(exemption, self.today)}")
        if not self.exemptions:
            yield "  none"

    def as_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "known": not isinstance(self.stored, Answer),
            "labels": self.stored.labels if isinstance(self.stored, Namespace) else None,
            "policies": [
                {
                    "name": layer.name,
                    "resourceVersion": layer.version,
                    "digest": layer.digest,
                    "priority": layer.document.priority,
                    "holds": index in self.matching,
                }
                for index, layer in enumerate(self.policies.layers)
            ],
            "notes": self.notes,
            "values": [{"path": p, "value": value, "source": source} for p, value, source in self._rows()],
            "actions": {rule_id: str(action) for rule_id, action in self.actions.items()},
            "exemptions": [
                {**exemption.model_dump(mode="json", by_alias=True), "source": name}
                for name, exemption in self.exemptions
            ],
        }

    def _values(self) -> dict[str, Any]:
        values = self.merged.document.model_dump(mode="json", by_alias=True)
        return {key: value for key, value in values.items() if key not in OWN}

    def _rows(self) -> Iterator[tuple[str, Any, str]]:
        for path, value in layers.leaves(self._values()):
            yield path, value, self.merged.sources.get(path, DEFAULTS)

    def _table(self) -> Iterator[str]:
        rows = list(self._rows())
        paths, sources = (max(len(str(row[column])) for row in rows) for column in (0, 2))
        yield heading(f"{'setting':{paths}}  {'from':{sources}}  value")
        for path, value, source in rows:
            shown = f"{printable(source):{sources}}"
            shown = faint(shown) if source == DEFAULTS else shown
            yield f"{path:{paths}}  {shown}  {printable(inline(value))}{self._weakened(path)}"

    def _weakened(self, path: str) -> str:
        section, _, rest = path.partition(".")
        entry_id, _, name = rest.partition(".")
        document = self.merged.document
        if (section, name) == ("rules", "action"):
            setting, effect = document.settings_of_rule(entry_id).action, self.actions[entry_id]
            return "" if setting is effect else faint(f" ({effect} here)")
        if (section, name) == ("injections", "enabled"):
            off = document.settings_of_injection(entry_id).enabled and not document.injects(entry_id)
            return faint(" (false here)") if off else ""
        return ""


def for_namespace(
    namespace: str, stored: Namespace | Answer, policies: PolicySet, *, today: date, origin: str = ""
) -> EffectiveValues:
    labels = stored.labels if isinstance(stored, Namespace) else None
    matching = [index for index, layer in enumerate(policies.layers) if layer.selects(labels)]
    merged, policy = policies.merged(matching), policies.for_namespace(stored)
    return EffectiveValues(namespace, stored, policies, matching, merged, policy, today, origin)
