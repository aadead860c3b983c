"""Where pods may run: tolerations, affinity, spread."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from webhook.predict.pod_template.forms import (
    FieldOperator,
    Inclusion,
    Int64,
    NodeOperator,
    NonEmpty,
    Percentage,
    Positive,
    SelectorOperator,
    Strings,
)


class Toleration(msgspec.Struct, rename="camel", gc=False):
    """Taints that the pod bears; Lt and Gt are taken where a feature gate of the API server is on."""

    key: str | None = None
    operator: Literal["", "Equal", "Exists", "Lt", "Gt"] | None = None
    value: str | None = None
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: Int64 | None = None


class NodeRequirement(msgspec.Struct, gc=False):
    """A condition on a label of nodes."""

    key: NonEmpty
    operator: NodeOperator
    values: list[str] | None = None


class FieldRequirement(msgspec.Struct, gc=False):
    """A condition on the name of nodes."""

    key: Literal["metadata.name"]
    operator: FieldOperator
    values: Annotated[list[NonEmpty], Meta(min_length=1, max_length=1)]


class NodeTerm(msgspec.Struct, rename="camel", gc=False):
    """Conditions that hold together."""

    match_expressions: list[NodeRequirement] | None = None
    match_fields: list[FieldRequirement] | None = None


class NodeTerms(msgspec.Struct, rename="camel", gc=False):
    """Terms of which one has to hold."""

    node_selector_terms: Annotated[list[NodeTerm], Meta(min_length=1)]


class PreferredNodes(msgspec.Struct, gc=False):
    """Nodes that would be better."""

    weight: Percentage
    preference: NodeTerm | None = None


class NodeAffinity(msgspec.Struct, rename="camel", gc=False):
    """Affinity to nodes."""

    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodes] | None = None


class Requirement(msgspec.Struct, gc=False):
    """A condition on a label."""

    key: NonEmpty
    operator: SelectorOperator
    values: list[str] | None = None


class Selector(msgspec.Struct, rename="camel", gc=False):
    """Objects by their labels."""

    match_labels: Strings | None = None
    match_expressions: list[Requirement] | None = None


class PodAffinityTerm(msgspec.Struct, rename="camel", gc=False):
    """Pods, and the label of nodes that says what near is."""

    topology_key: NonEmpty
    label_selector: Selector | None = None
    namespace_selector: Selector | None = None
    namespaces: list[NonEmpty] | None = None
    match_label_keys: list[NonEmpty] | None = None
    mismatch_label_keys: list[NonEmpty] | None = None


class WeightedTerm(msgspec.Struct, rename="camel", gc=False):
    """Pods that it would be better to be near to, or far from."""

    weight: Percentage
    pod_affinity_term: PodAffinityTerm


class PodAffinity(msgspec.Struct, rename="camel", gc=False):
    """Pods to be near to, or far from."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedTerm] | None = None


class Affinity(msgspec.Struct, rename="camel", gc=False):
    """Affinity to nodes, and to other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(msgspec.Struct, rename="camel", gc=False):
    """How evenly pods are spread."""

    max_skew: Positive
    topology_key: NonEmpty
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: Selector | None = None
    min_domains: Positive | None = None
    node_affinity_policy: Inclusion | None = None
    node_taints_policy: Inclusion | None = None
    match_label_keys: list[NonEmpty] | None = None
