"""Compiled policies for reviews; `webhook.server.policy_watch` activates them.

All documents that select a namespace are compiled together, once for each combination of documents.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from typing import Any

from webhook import injections, rules
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.resources.reservations import Reservation
from webhook.cluster.view import Answer
from webhook.injections import Injection
from webhook.kit.advice_bounds import ANYTHING, Admitted
from webhook.kit.registry import Registry
from webhook.kit.settings import (
    Action,
    InjectionSettings,
    RuleSettings,
    Settings,
    UncheckedInjectionSettings,
    UncheckedRuleSettings,
)
from webhook.policy import custom_rules, document, layers, store
from webhook.policy.custom_rules import CustomRule
from webhook.policy.document import PolicyDocument
from webhook.policy.layers import Effective, Layer
from webhook.policy.limits import MAX_NAMED_DOCUMENTS
from webhook.rules import Rule


def _settings(registry: Registry[Any], unchecked: type[Settings]) -> dict[str, type[Settings]]:
    """The settings of each entry. The settings of a broken entry are `unchecked`."""
    usable = {entry_id: entry.settings for entry_id, entry in registry.items()}
    return dict(sorted({**dict.fromkeys(registry.unusable, unchecked), **usable}.items()))


@dataclass(frozen=True)
class Policy:
    document: PolicyDocument
    rules: tuple[tuple[Rule, RuleSettings, Action], ...]
    """The rules that are not off, with the action that `mode` allows."""
    injections: tuple[tuple[Injection, InjectionSettings], ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    """The source of each value, as in `layers.Effective`."""
    admitted: Admitted = ANYTHING
    """The values that no rejecting rule forbids. Advice may suggest only these values."""
    layers: tuple[Layer, ...] = field(default=(), compare=False)
    identity: str = field(default="", compare=False)
    """The documents with their versions; empty for the built-in defaults."""

    def admitted_except(self, excused: frozenset[str]) -> Admitted:
        """The admitted values for a job that is exempt from these rules."""
        limits = (
            rule.admits(settings)
            for rule, settings, action in self.rules
            if action is Action.DENY and rule.id not in excused
        )
        return reduce(Admitted.__and__, limits, ANYTHING)

    @cached_property
    def required(self) -> tuple[tuple[Injection, InjectionSettings], ...]:
        return tuple(entry for entry in self.injections if entry[1].required is not Action.OFF)

    @cached_property
    def quiet(self) -> frozenset[str]:
        """The injections that warnings and the list of injections leave out."""
        return frozenset(injection.id for injection, _ in self.injections if injection.quiet)

    @cached_property
    def reserves(self) -> tuple[Callable[..., Reservation | None], ...]:
        """`Rule.reserves` of the rules that may reject a job."""
        return tuple(rule.reserves for rule, _, action in self.rules if rule.reserves and action is Action.DENY)

    @cached_property
    def custom_rules(self) -> tuple[CustomRule, ...]:
        return tuple(settings for rule, settings, _ in self.rules if isinstance(settings, CustomRule))

    def action(self, rule_id: str) -> Action:
        """The strongest action that a violation of the rule triggers."""
        return self._by_rule[rule_id][1] if rule_id in self._by_rule else Action.OFF

    def settings(self, rule_id: str) -> RuleSettings | None:
        """The settings of the rule; None if the rule is off."""
        return self._by_rule[rule_id][0] if rule_id in self._by_rule else None

    @cached_property
    def _by_rule(self) -> Mapping[str, tuple[RuleSettings, Action]]:
        return {rule.id: (settings, action) for rule, settings, action in self.rules}


@cache
def policy_model() -> type[PolicyDocument]:
    return document.assemble(
        _settings(rules.REGISTRY, UncheckedRuleSettings),
        _settings(injections.REGISTRY, UncheckedInjectionSettings),
    )


def load_policy(text: str | bytes | None) -> Policy:
    """The policy for a namespace that every document in `text` selects. If `text` is None, the defaults.

    PolicyError if a document is broken.
    """
    return load_policies(text).for_any_namespace()


def load_policies(text: str | bytes | None, name: str = "") -> "PolicySet":
    """The policies in `text`, or no policies if `text` is None. PolicyError if a document is broken."""
    return PolicySet(() if text is None else store.load_file(name, text, policy_model()))


def compiled(effective: Effective) -> Policy:
    merged = effective.document
    configured = [(rule, merged.settings_of_rule(rule.id)) for rule in rules.REGISTRY.values()]
    configured += [(custom_rules.compiled(rule), rule) for rule in merged.custom_rules]
    active = []
    for rule, settings in configured:
        action = settings.action.at_most(merged.ceiling)
        if action is not Action.OFF:
            active.append((rule, settings, action))
    switched_on = [
        (injection, merged.settings_of_injection(injection.id))
        for injection in injections.REGISTRY.values()
        if merged.injects(injection.id)
    ]
    policy = Policy(merged, tuple(active), tuple(switched_on), effective.sources)
    return replace(policy, admitted=policy.admitted_except(frozenset()))


def _identity(kept: Sequence[Layer]) -> str:
    more = [f"and {len(kept) - MAX_NAMED_DOCUMENTS} more"] if len(kept) > MAX_NAMED_DOCUMENTS else []
    return ", ".join([*(layer.identity for layer in kept[:MAX_NAMED_DOCUMENTS]), *more])


class PolicySet:
    def __init__(self, documents: Sequence[Layer] = (), cluster_version: str = "") -> None:
        self.cluster_version = cluster_version
        """The API server's version, such as v1.35; empty if it is unknown."""
        self.layers = tuple(layers.in_order(documents))
        self._policies: dict[tuple[int, ...], Policy] = {}
        self._merged: dict[tuple[int, ...], Effective] = {}
        self.left_out: dict[str, str] = {}
        """The documents that were left out because they contradict other documents in some namespace, and the reasons.
        """

    def for_namespace(self, namespace: Namespace | Answer) -> Policy:
        """The policy of a namespace.

        If its labels are unknown, documents that select namespaces are left out. The service never decides about a job
        while the labels are unknown, because it reads the Namespace first.
        """
        labels = namespace.labels if isinstance(namespace, Namespace) else None
        return self._policy(tuple(index for index, layer in enumerate(self.layers) if layer.selects(labels)))

    def for_any_namespace(self) -> Policy:
        """The policy as if every document selected the namespace."""
        return self._policy(tuple(range(len(self.layers))))

    def merged(self, matching: Sequence[int]) -> Effective:
        key = tuple(matching)
        if key not in self._merged:
            self._merged[key] = layers.merge([self.layers[index] for index in key], policy_model())
        return self._merged[key]

    def _policy(self, matching: tuple[int, ...]) -> Policy:
        if matching not in self._policies:
            self._policies[matching] = self._compiled(matching)
        return self._policies[matching]

    def _compiled(self, matching: tuple[int, ...]) -> Policy:
        effective = self.merged(matching)
        policy = compiled(effective)
        if self.cluster_version:
            on_cluster = ((rule, settings.on(self.cluster_version), action) for rule, settings, action in policy.rules)
            policy = replace(policy, rules=tuple(on_cluster))
        self.left_out.update(effective.dropped)
        dropped = {name for name, _ in effective.dropped}
        kept = tuple(self.layers[index] for index in matching if self.layers[index].name not in dropped)
        return replace(policy, layers=kept, identity=_identity(kept))
