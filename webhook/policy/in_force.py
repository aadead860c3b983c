"""Policies in force: documents compiled for the hot path; put in force by `webhook.server.policy_watch`.

Compiled once for each combination of documents that selects a namespace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from typing import Any

from webhook import injections, rules
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.view import Answer
from webhook.injections import Injection
from webhook.kit.admitted import ANYTHING, Admitted
from webhook.kit.registry import Registry
from webhook.kit.settings import (
    Action,
    InjectionSettings,
    RuleSettings,
    Settings,
    UncheckedInjectionSettings,
    UncheckedRuleSettings,
)
from webhook.policy import document, layers, store
from webhook.policy.document import Described, PolicyDocument
from webhook.policy.layers import Effective, Layer
from webhook.rules import Rule


@dataclass(frozen=True)
class Policy:
    """A policy document, ready for the hot path."""

    document: PolicyDocument
    """The merged document."""
    rules: tuple[tuple[Rule, RuleSettings, Action], ...]
    """Those that are not off, with the action after every ceiling."""
    injections: tuple[tuple[Injection, InjectionSettings], ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    """As in `layers.Effective`."""
    admitted: Admitted = ANYTHING
    """What all rules that refuse admit of the numbers that advice changes."""

    def admitted_but(self, excused: frozenset[str]) -> Admitted:
        """What is admitted of a job that these rules are not held against."""
        refusing = (
            rule.admits(settings)
            for rule, settings, action in self.rules
            if action is Action.DENY and rule.id not in excused
        )
        return reduce(Admitted.__and__, refusing, ANYTHING)

    @cached_property
    def required(self) -> tuple[tuple[Injection, InjectionSettings], ...]:
        """Those of `injections` without which no job is stored."""
        return tuple((injection, wanted) for injection, wanted in self.injections if wanted.required is not Action.OFF)

    def action(self, rule_id: str) -> Action:
        """What a finding of the rule leads to at most."""
        return self._chosen[rule_id][1] if rule_id in self._chosen else Action.OFF

    def settings(self, rule_id: str) -> RuleSettings | None:
        """The settings of the rule, None where it is off."""
        return self._chosen[rule_id][0] if rule_id in self._chosen else None

    @cached_property
    def _chosen(self) -> Mapping[str, tuple[RuleSettings, Action]]:
        return {rule.id: (settings, action) for rule, settings, action in self.rules}


@dataclass(frozen=True, slots=True)
class _Unusable:
    """What a policy may say of a broken plug-in's rule or injection: a policy outlives its plug-ins."""

    settings: type[Settings]


@cache
def policy_model() -> type[PolicyDocument]:
    """The policy document's model, with every rule and injection there is."""
    return document.assemble(
        _described(rules.REGISTRY, UncheckedRuleSettings), _described(injections.REGISTRY, UncheckedInjectionSettings)
    )


def _described(registry: Registry[Any], unchecked: type[Settings]) -> dict[str, Described]:
    unusable = {entry_id: _Unusable(unchecked) for entry_id in registry.unusable}
    return dict(sorted({**unusable, **registry}.items()))


def load_policy(text: str | bytes | None) -> Policy:
    """The policy in a file's `text`, for every namespace; the defaults for None. PolicyError for a broken document."""
    model = policy_model()
    found = () if text is None else store.load_file("", text, model)
    return compiled(layers.merge(layers.in_order(found), model))


def compiled(effective: Effective, uncertain: frozenset[str] = frozenset()) -> Policy:
    """`effective`, with what is in `uncertain` (`rules.gpus`, `injections.istio`) weakened to warnings."""
    chosen = effective.document
    active = []
    for rule in rules.REGISTRY.values():
        settings = chosen.settings_of_rule(rule.id)
        action = settings.action.at_most(chosen.ceiling)
        if f"rules.{rule.id}" in uncertain:
            action = action.at_most(Action.WARN)
        if action is not Action.OFF:
            active.append((rule, settings, action))
    switched_on = []
    for injection in injections.REGISTRY.values():
        wanted = chosen.settings_of_injection(injection.id)
        if f"injections.{injection.id}" in uncertain:
            wanted = wanted.model_copy(update={"required": wanted.required.at_most(Action.WARN)})
        if chosen.injects(injection.id):
            switched_on.append((injection, wanted))
    policy = Policy(chosen, tuple(active), tuple(switched_on), effective.sources)
    return replace(policy, admitted=policy.admitted_but(frozenset()))


class PolicySet:
    """All documents, and what they come to in a namespace. Never changed: a reload makes a new one."""

    def __init__(self, documents: Sequence[Layer] = ()) -> None:
        self.layers = tuple(layers.in_order(documents))
        self._policies: dict[tuple[int, ...] | None, Policy] = {}

    def for_namespace(self, namespace: Namespace | Answer) -> Policy:
        """The policy of a namespace.

        While its labels are unknown, documents that select namespaces are left out, and the rules that they set only
        warn.
        """
        if isinstance(namespace, Answer) and self._selective():
            return self._unknown()
        labels = namespace.labels if isinstance(namespace, Namespace) else None
        matching = tuple(index for index, layer in enumerate(self.layers) if layer.selects(labels))
        policy = self._policies.get(matching)
        if policy is None:
            policy = self._policies[matching] = compiled(self.merged(matching))
        return policy

    def merged(self, matching: Sequence[int]) -> Effective:
        """The effective document of the layers with these indices."""
        return layers.merge([self.layers[index] for index in matching], policy_model())

    def _selective(self) -> list[Layer]:
        return [layer for layer in self.layers if layer.document.selector is not None]

    def _unknown(self) -> Policy:
        policy = self._policies.get(None)
        if policy is None:
            for_all = [index for index, layer in enumerate(self.layers) if layer.document.selector is None]
            uncertain = frozenset[str]().union(*map(_touched, self._selective()))
            policy = self._policies[None] = compiled(self.merged(for_all), uncertain)
        return policy


def _touched(layer: Layer) -> frozenset[str]:
    """The rules and injections whose outcome the document may change."""
    written = layers.written(layer.document)
    everything = bool(written.keys() & {"mode", "exemptions", "controllers"})
    of_rules = rules.REGISTRY if everything else written.get("rules", {})
    of_injections = injections.REGISTRY if everything or "injectOnly" in written else written.get("injections", {})
    return frozenset([*(f"rules.{entry}" for entry in of_rules), *(f"injections.{entry}" for entry in of_injections)])
