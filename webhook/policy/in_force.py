"""Policies in force: documents compiled for the hot path; put in force by `webhook.server.policy_watch`.

Compiled once for each combination of documents that selects a namespace.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property, reduce
from typing import Final

from msgspec import structs

from webhook import injections, rules
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.view import Answer
from webhook.injections import Injection
from webhook.kit.admitted import ANYTHING, Admitted
from webhook.kit.settings import (
    Action,
    InjectionSettings,
    RuleSettings,
    UncheckedInjectionSettings,
    UncheckedRuleSettings,
)
from webhook.policy import document, layers, own_rules, staging, store
from webhook.policy.document import PolicyDocument
from webhook.policy.layers import Effective, Layer
from webhook.policy.own_rules import OwnRule
from webhook.policy.parameters import Asked, Said, Wrong, asked_by, with_values
from webhook.policy.staging import Stage
from webhook.policy.stand_ins import with_stand_ins
from webhook.rules import Rule

MOST_KEPT: Final = 1_000
"""Compiled policies: who may annotate namespaces could have any number of them made."""
MOST_NAMED: Final = 8
"""Documents whose names each log line has room for."""


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
    refused_from: Mapping[str, str] = field(default_factory=dict)
    """From when on a rule refuses that does not yet, as it is written in the policy."""
    layers: tuple[Layer, ...] = field(default=(), compare=False)
    """The documents that it is made of."""
    identity: str = field(default="", compare=False)
    """Which documents these are, in which version; empty where there are none but the built-in defaults."""
    asked: tuple[Asked, ...] = ()
    """What the Namespace has been asked for; empty where nothing is known of it."""
    wrong: tuple[Wrong, ...] = ()
    """What it says and cannot be used."""

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

    @cached_property
    def own_rules(self) -> tuple[OwnRule, ...]:
        """Those of `rules` that the policy itself says."""
        return tuple(settings for rule, settings, _ in self.rules if isinstance(settings, OwnRule))

    def action(self, rule_id: str) -> Action:
        """What a finding of the rule leads to at most."""
        return self._chosen[rule_id][1] if rule_id in self._chosen else Action.OFF

    def settings(self, rule_id: str) -> RuleSettings | None:
        """The settings of the rule, None where it is off."""
        return self._chosen[rule_id][0] if rule_id in self._chosen else None

    @cached_property
    def _chosen(self) -> Mapping[str, tuple[RuleSettings, Action]]:
        return {rule.id: (settings, action) for rule, settings, action in self.rules}


@cache
def policy_model() -> type[PolicyDocument]:
    """The policy document's model, with every rule and injection there is."""
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


def compiled(effective: Effective, stages: Sequence[Stage] = ()) -> Policy:
    """`effective`, with the rules in `stages` that have not ended weakened to the action there."""
    chosen = effective.document
    known = [(rule, chosen.settings_of_rule(rule.id)) for rule in rules.REGISTRY.values()]
    known += [(own_rules.compiled(own), own) for own in chosen.own_rules]
    active = []
    for rule, settings in known:
        action = settings.action.at_most(chosen.ceiling).at_most(staging.ceiling(rule.id, stages))
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
    more = [f"and {len(kept) - MOST_NAMED} more"] if len(kept) > MOST_NAMED else []
    return ", ".join([*(layer.identity for layer in kept[:MOST_NAMED]), *more])


def _staged(effective: Effective, stages: Sequence[Stage], namespace: str, now: datetime | None) -> Policy:
    """The policy of a namespace at a moment."""
    ended = [stage for stage in stages if stage.includes(namespace) and stage.has_come(now)]
    if any(stage.rules is None for stage in ended):
        enforcing = effective.document.model_copy(update={"mode": "enforce"})
        effective = structs.replace(effective, document=enforcing)
    going_on = [stage for stage in stages if stage not in ended]
    policy = compiled(effective, going_on)
    excluded = [stage for stage in going_on if not stage.includes(namespace)]
    if len(excluded) == len(going_on):
        return policy
    then = _staged(effective, [replace(stage, written="") for stage in stages], namespace, now)
    refusing = [rule.id for rule, _, action in then.rules if action is Action.DENY]
    days = {rule_id: staging.ends(rule_id, going_on) for rule_id in refusing}
    return replace(policy, refused_from={rule_id: day for rule_id, day in days.items() if day})


class PolicySet:
    """All documents, and what they come to in a namespace. Never changed: a reload makes a new one.

    It holds before all days that documents name (`enforceFrom`); `at` gives that of a moment.
    """

    def __init__(self, documents: Sequence[Layer] = (), cluster_version: str = "") -> None:
        self.cluster_version = cluster_version
        """That of the API server, as v1.35; empty where it is unknown."""
        self.layers = tuple(layers.in_order(documents))
        self._now: datetime | None = None
        self._policies: dict[tuple[tuple[int, ...], tuple[bool, ...], Said], Policy] = {}
        self._merged: dict[tuple[int, ...], Effective] = {}
        self._asked_by: dict[tuple[int, ...], tuple[Asked, ...]] = {}
        self._stages: dict[tuple[int, ...], tuple[Stage, ...]] = {}
        self._days = sorted({day for layer in self.layers for stage in stages_of(layer) if (day := stage.since)})
        # What is compiled for one of them is not looked at any more once the next one has come.
        self._by_days_come: dict[int, PolicySet] = {0: self}
        self.left_out: dict[str, str] = {}
        """Documents that contradict others where jobs came so far, and why."""

    def at(self, now: datetime) -> "PolicySet":
        """The same at a moment: what a day has begun to enforce, or has not yet."""
        come = bisect_right(self._days, now)
        found = self._by_days_come.get(come)
        if found is None:
            found = PolicySet(self.layers, self.cluster_version)
            found._now, found._by_days_come = self._days[come - 1], self._by_days_come
            found.left_out = self.left_out
            self._by_days_come[come] = found
        return found

    def for_namespace(self, namespace: Namespace | Answer) -> Policy:
        """The policy of a namespace.

        Without its labels the documents that select namespaces are left out, and what a document leaves to the
        namespace has its default. The service never decides by that: it reads the Namespace first.
        """
        labels = namespace.labels if isinstance(namespace, Namespace) else None
        matching = tuple(index for index, layer in enumerate(self.layers) if layer.selects(labels))
        if isinstance(namespace, Answer):
            return self._policy(matching, "")
        said = tuple([asked.text(namespace) for asked in self._asked(matching)]) if self._asks else ()
        return self._policy(matching, namespace.name, said)

    def tell_apart(self, old: Namespace | None, new: Namespace | None) -> bool:
        """Whether its jobs may have another verdict after a change of a namespace: tools annotate theirs."""
        if old is None or new is None or old.labels != new.labels:
            return True
        return self.for_namespace(old) is not self.for_namespace(new)

    def for_any_namespace(self, name: str = "") -> Policy:
        """The policy of a namespace of this name if every document were for it."""
        return self._policy(tuple(range(len(self.layers))), name)

    def merged(self, matching: Sequence[int]) -> Effective:
        """The effective document of the layers with these indices."""
        key = tuple(matching)
        if key not in self._merged:
            self._merged[key] = layers.merge([self.layers[index] for index in key], policy_model())
        return self._merged[key]

    def stages(self, matching: Sequence[int]) -> tuple[Stage, ...]:
        """What the layers with these indices enforce by and by."""
        key = tuple(matching)
        if key not in self._stages:
            self._stages[key] = self._stages_of(key)
        return self._stages[key]

    def _policy(self, matching: tuple[int, ...], namespace: str, said: Said = ()) -> Policy:
        """That of the layers with these indices, worked out once for all namespaces that say the same."""
        drawn = tuple(stage.includes(namespace) for stage in self.stages(matching)) if self._in_stages else ()
        policy = self._policies.get((matching, drawn, said))
        if policy is None:
            if len(self._policies) >= MOST_KEPT:
                self._policies.clear()
            policy = self._policies[matching, drawn, said] = self._compiled(matching, namespace, said)
        return policy

    def _asked(self, matching: tuple[int, ...]) -> tuple[Asked, ...]:
        if matching not in self._asked_by:
            self._asked_by[matching] = tuple(asked_by(self.merged(matching).document))
        return self._asked_by[matching]

    def _stages_of(self, matching: Sequence[int]) -> tuple[Stage, ...]:
        effective = self.merged(matching)
        chosen = effective.document
        of_mode = staging.of_mode(
            effective.sources.get("mode", ""), chosen.mode, chosen.enforce_from, chosen.enforce_share
        )
        kept = self._kept(matching)
        of_rules = (stage for layer in kept for stage in staging.of_rules(layer.name, layer.document.staged))
        return (*of_mode, *of_rules)

    def _compiled(self, matching: tuple[int, ...], namespace: str, said: Said) -> Policy:
        effective = self.merged(matching)
        asked = self._asked(matching) if said else ()
        chosen_document, wrong = with_values(effective.document, list(zip(asked, said, strict=True)))
        effective = structs.replace(effective, document=chosen_document)
        policy = _staged(effective, self.stages(matching), namespace, self._now)
        if self.cluster_version:
            on_cluster = ((rule, settings.on(self.cluster_version), action) for rule, settings, action in policy.rules)
            policy = replace(policy, rules=tuple(on_cluster))
        self.left_out.update(effective.dropped)
        kept = self._kept(matching)
        return replace(policy, layers=kept, identity=_identity(kept), asked=asked, wrong=tuple(wrong))

    def _kept(self, indices: Sequence[int]) -> tuple[Layer, ...]:
        """Those of the layers that the merge has not left out."""
        dropped = {name for name, _ in self.merged(indices).dropped}
        return tuple(layer for layer in (self.layers[index] for index in indices) if layer.name not in dropped)

    @cached_property
    def _in_stages(self) -> bool:
        return any(stages_of(layer) for layer in self.layers)

    @cached_property
    def _asks(self) -> bool:
        """Whether a document leaves a value to the namespace."""
        return any(any(asked_by(layer.document)) for layer in self.layers)


def stages_of(layer: Layer) -> list[Stage]:
    """What the document enforces by and by."""
    chosen = layer.document
    of_mode = staging.of_mode(layer.name, chosen.mode, chosen.enforce_from, chosen.enforce_share)
    return [*of_mode, *staging.of_rules(layer.name, chosen.staged)]
