"""Tolerations, affinity and spread."""

from typing import Final

from webhook.predict.pod_template import texts
from webhook.predict.pod_template.fault import MANY, Faults, Kind, shown
from webhook.predict.pod_template.labels import check_requirement, check_selector
from webhook.predict.pod_template.scheduling import (
    Affinity,
    NodeAffinity,
    NodeTerm,
    PodAffinity,
    PodAffinityTerm,
    Selector,
    SpreadConstraint,
    Toleration,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_tolerations(tolerations: list[Toleration], path: str, found: Faults) -> None:
    """Key, operator, value and effect, and which go together."""
    for index, one in enumerate(tolerations):
        if one.key:
            if problem := texts.label_key(one.key):
                texts.note(found, f"{path}[{index}].key", one.key, problem, "Correct the key.")
        elif one.operator in {None, "", "Equal"}:
            fault, fix = "must be Exists where no key is set", "Set the key, or operator: Exists for every taint."
            found.add(f"{path}[{index}].operator", fault, fix)
        if one.value:
            if one.operator == "Exists":
                fault = "does not go with operator Exists"
                found.add(f"{path}[{index}].value", fault, "Remove it, or use operator: Equal.", Kind.FORBIDDEN)
            elif problem := texts.label_value(one.value):
                texts.note(found, f"{path}[{index}].value", one.value, problem, "Correct the value.")
        if one.toleration_seconds is not None and one.effect in {None, "", "NoSchedule", "PreferNoSchedule"}:
            fault = "must be NoExecute where tolerationSeconds is set"
            found.add(f"{path}[{index}].effect", fault, "Write NoExecute, or remove tolerationSeconds.")


def check_affinity(affinity: Affinity, path: str, found: Faults) -> None:
    """To nodes and to pods."""
    if affinity.node_affinity is not None:
        _nodes(affinity.node_affinity, f"{path}.nodeAffinity", found)
    if affinity.pod_affinity is not None:
        _pods(affinity.pod_affinity, f"{path}.podAffinity", found)
    if affinity.pod_anti_affinity is not None:
        _pods(affinity.pod_anti_affinity, f"{path}.podAntiAffinity", found)


def _nodes(affinity: NodeAffinity, path: str, found: Faults) -> None:
    if (required := affinity.required_during_scheduling_ignored_during_execution) is not None:
        for index, term in enumerate(required.node_selector_terms):
            _node_term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]", found)
    for index, preferred in enumerate((affinity.preferred_during_scheduling_ignored_during_execution or ())[:MANY]):
        if preferred.preference is not None:
            _node_term(preferred.preference, f"{path}.{_PREFERRED}[{index}].preference", found, preferred=True)


def _node_term(term: NodeTerm, path: str, found: Faults, *, preferred: bool = False) -> None:
    for index, one in enumerate((term.match_expressions or ())[:MANY]):
        check_requirement(one, f"{path}.matchExpressions[{index}]", found, any_value=preferred)
    for index, field in enumerate((term.match_fields or ())[:MANY]):
        for name in field.values[:1]:
            if problem := texts.subdomain(name):
                texts.note(found, f"{path}.matchFields[{index}].values[0]", name, problem, "Name a node.")


def _pods(affinity: PodAffinity, path: str, found: Faults) -> None:
    for index, term in enumerate((affinity.required_during_scheduling_ignored_during_execution or ())[:MANY]):
        _pod_term(term, f"{path}.{_REQUIRED}[{index}]", found)
    for index, weighted in enumerate((affinity.preferred_during_scheduling_ignored_during_execution or ())[:MANY]):
        _pod_term(weighted.pod_affinity_term, f"{path}.{_PREFERRED}[{index}].podAffinityTerm", found)


def _pod_term(term: PodAffinityTerm, path: str, found: Faults) -> None:
    if problem := texts.label_key(term.topology_key):
        texts.note(found, f"{path}.topologyKey", term.topology_key, problem, "Name a label of nodes.")
    check_selector(term.label_selector, f"{path}.labelSelector", found)
    check_selector(term.namespace_selector, f"{path}.namespaceSelector", found)
    for index, name in enumerate((term.namespaces or ())[:MANY]):
        if problem := texts.label(name):
            texts.note(found, f"{path}.namespaces[{index}]", name, problem, "Name a namespace.")
    _keys(term.match_label_keys, term.label_selector, f"{path}.matchLabelKeys", found)
    _keys(term.mismatch_label_keys, term.label_selector, f"{path}.mismatchLabelKeys", found)
    for key in sorted({*(term.match_label_keys or ())[:MANY]} & {*(term.mismatch_label_keys or ())[:MANY]}):
        found.add(f"{path}.matchLabelKeys", f'"{shown(key)}" is in mismatchLabelKeys too', "Keep one of the two.")


def _keys(keys: list[str] | None, selector: Selector | None, path: str, found: Faults) -> None:
    if not keys:
        return
    if selector is None:
        found.add(path, "needs a labelSelector", "Add the labelSelector, or remove it.", Kind.FORBIDDEN)
        return
    for index, key in enumerate(keys[:MANY]):
        if problem := texts.label_key(key):
            texts.note(found, f"{path}[{index}]", key, problem, "Correct the key.")


def check_spread(constraints: list[SpreadConstraint], path: str, found: Faults) -> None:
    """Each constraint; none twice."""
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        where = f"{path}[{index}]"
        if one.topology_key and (one.topology_key, one.when_unsatisfiable) in seen:
            fault = f'"{shown(one.topology_key)}" with {one.when_unsatisfiable} is there twice'
            found.add(f"{where}.topologyKey", fault, "Remove one of the two.")
        seen.add((one.topology_key, one.when_unsatisfiable))
        if one.min_domains is not None and one.when_unsatisfiable == "ScheduleAnyway":
            fault, fix = "needs whenUnsatisfiable: DoNotSchedule", "Remove it, or write DoNotSchedule."
            found.add(f"{where}.minDomains", fault, fix, Kind.FORBIDDEN)
        check_selector(one.label_selector, f"{where}.labelSelector", found)
        _keys(one.match_label_keys, one.label_selector, f"{where}.matchLabelKeys", found)
