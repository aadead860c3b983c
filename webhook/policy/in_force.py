"""Compiled policies for reviews; `webhook.server.policy_watch` puts them in force.

Each combination of documents that selects a namespace is compiled once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from typing import Any

from webhook import injections, rules
from webhook.cluster.resources.namespaces import Namespace
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
from webhook.policy.custom_rules import OwnRule
from webhook.policy.document import Described, PolicyDocument
from webhook.policy.layers import Effective, Layer
from webhook.policy.limits import MAX_NAMED_DOCUMENTS
from webhook.rules import Rule


@dataclass(frozen=True, slots=True)
class _StandIn:
    settings: type[Settings]


def with_stand_ins(registry: Registry[Any], unchecked: type[Settings]) -> dict[str, Described]:
    """All registered entries; broken ones are replaced by an entry with `unchecked` settings."""
    broken = {entry_id: _StandIn(unchecked) for entry_id in registry.unusable}
    return dict(sorted({**broken, **registry}.items()))


@dataclass(frozen=True)
class Policy:
    """A compiled policy document."""

    document: PolicyDocument
    """The merged document."""
    rules: tuple[tuple[Rule, RuleSettings, Action], ...]
    """The rules that are not off, with the action after every ceiling."""
    injections: tuple[tuple[Injection, InjectionSettings], ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    """As in `layers.Effective`."""
    admitted: Admitted = ANYTHING
    """The values of numbers in advice that no rejecting rule forbids."""
    layers: tuple[Layer, ...] = field(default=(), compare=False)
    """The documents that it is made of."""
    identity: str = field(default="", compare=False)
    """The documents and their versions; empty for the built-in defaults alone."""

    def admitted_but(self, excused: frozenset[str]) -> Admitted:
        """The admitted values for a job that is exempt from the rules `excused`."""
        refusing = (
            rule.admits(settings)
            for rule, settings, action in self.rules
            if action is Action.DENY and rule.id not in excused
        )
        return reduce(Admitted.__and__, refusing, ANYTHING)

    @cached_property
    def required(self) -> tuple[tuple[Injection, InjectionSettings], ...]:
        """The `injections` that every stored job must have."""
        return tuple((injection, wanted) for injection, wanted in self.injections if wanted.required is not Action.OFF)

    @cached_property
    def own_rules(self) -> tuple[OwnRule, ...]:
        """The custom rules among `rules`."""
        return tuple(settings for rule, settings, _ in self.rules if isinstance(settings, OwnRule))

    def action(self, rule_id: str) -> Action:
        """The strongest action that a finding of the rule triggers."""
        return self._chosen[rule_id][1] if rule_id in self._chosen else Action.OFF

    def settings(self, rule_id: str) -> RuleSettings | None:
        """The settings of the rule, None if it is off."""
        return self._chosen[rule_id][0] if rule_id in self._chosen else None

    @cached_property
    def _chosen(self) -> Mapping[str, tuple[RuleSettings, Action]]:
        return {rule.id: (settings, action) for rule, settings, action in self.rules}


@cache
def policy_model() -> type[PolicyDocument]:
    """The policy document's model, with every registered rule and injection."""
    return document.assemble(
        with_stand_ins(rules.REGISTRY, UncheckedRuleSettings),
        with_stand_ins(injections.REGISTRY, UncheckedInjectionSettings),
    )


def load_policy(text: str | bytes | None) -> Policy:
    """The policy in a file's `text`, for every namespace; the defaults for None. PolicyError for a broken document."""
    return load_policies(text).for_any_namespace()


def load_policies(text: str | bytes | None, name: str = "") -> "PolicySet":
    """The policies in the `text` of a file of this name; none for None. PolicyError for a broken document."""
    return PolicySet(() if text is None else store.load_file(name, text, policy_model()))


def compiled(effective: Effective) -> Policy:
    """`effective`, with what is off left out."""
    chosen = effective.document
    known = [(rule, chosen.settings_of_rule(rule.id)) for rule in rules.REGISTRY.values()]
    known += [(custom_rules.compiled(own), own) for own in chosen.own_rules]
    active = []
    for rule, settings in known:
        action = settings.action.at_most(chosen.ceiling)
        if action is not Action.OFF:
            active.append((rule, settings, action))
    switched_on = [
        (injection, chosen.settings_of_injection(injection.id))
        for injection in injections.REGISTRY.values()
        if chosen.injects(injection.id)
    ]
    policy = Policy(chosen, tuple(active), tuple(switched_on), effective.sources)
    return replace(policy, admitted=policy.admitted_but(frozenset()))


def _identity(kept: Sequence[Layer]) -> str:
    more = [f"and {len(kept) - MAX_NAMED_DOCUMENTS} more"] if len(kept) > MAX_NAMED_DOCUMENTS else []
    return ", ".join([*(layer.identity for layer in kept[:MAX_NAMED_DOCUMENTS]), *more])


class PolicySet:
    """All documents, and their effective policy in a namespace. Immutable: a reload makes a new one."""

    def __init__(self, documents: Sequence[Layer] = (), cluster_version: str = "") -> None:
        self.cluster_version = cluster_version
        """The API server's version, such as v1.35; empty if it is unknown."""
        self.layers = tuple(layers.in_order(documents))
        self._policies: dict[tuple[int, ...], Policy] = {}
        self._merged: dict[tuple[int, ...], Effective] = {}
        self.left_out: dict[str, str] = {}
        """Documents that contradicted others in the namespaces seen so far, and why."""

    def for_namespace(self, namespace: Namespace | Answer) -> Policy:
        """The policy of a namespace.

        Without its labels the documents that select namespaces are left out. The service never decides with that: it
        reads the Namespace first.
        """
        labels = namespace.labels if isinstance(namespace, Namespace) else None
        return self._policy(tuple(index for index, layer in enumerate(self.layers) if layer.selects(labels)))

    def for_any_namespace(self) -> Policy:
        """The policy as if every document selected the namespace."""
        return self._policy(tuple(range(len(self.layers))))

    def merged(self, matching: Sequence[int]) -> Effective:
        """The effective document of the layers with these indices."""
        key = tuple(matching)
        if key not in self._merged:
            self._merged[key] = layers.merge([self.layers[index] for index in key], policy_model())
        return self._merged[key]

    def _policy(self, matching: tuple[int, ...]) -> Policy:
        """The policy of the layers with these indices, compiled once."""
        policy = self._policies.get(matching)
        if policy is None:
            policy = self._policies[matching] = self._compiled(matching)
        return policy

    def _compiled(self, matching: tuple[int, ...]) -> Policy:
        effective = self.merged(matching)
        policy = compiled(effective)
        if self.cluster_version:
            on_cluster = ((rule, settings.on(self.cluster_version), action) for rule, settings, action in policy.rules)
            policy = replace(policy, rules=tuple(on_cluster))
        self.left_out.update(effective.dropped)
        kept = self._kept(matching)
        return replace(policy, layers=kept, identity=_identity(kept))

    def _kept(self, indices: Sequence[int]) -> tuple[Layer, ...]:
        """The layers that the merge has not left out."""
        dropped = {name for name, _ in self.merged(indices).dropped}
        return tuple(layer for layer in (self.layers[index] for index in indices) if layer.name not in dropped)
