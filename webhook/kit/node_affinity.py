"""Adds conditions on node labels to a node affinity. The user's conditions stay unchanged."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from webhook.api.pod import PodTemplate
from webhook.kit.patch import PatchBuilder, Path

WEIGHT: Final = 50

_AFFINITY: Final = ("affinity", "nodeAffinity")
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = (*_AFFINITY, REQUIRED, "nodeSelectorTerms")
_PREFERRED: Final = (*_AFFINITY, PREFERRED)


class Requirement(NamedTuple):
    """The label `key` must have one of `values`."""

    key: str
    values: Sequence[str] = ("true",)

    @property
    def item(self) -> dict[str, object]:
        return {"key": self.key, "operator": "In", "values": list(self.values)}


def is_free(template: PodTemplate, key: str) -> bool:
    """Whether the template has no required condition on this label."""
    required = (condition.key for term in template.node_terms for condition in term.match_expressions or ())
    return key not in template.node_selector and key not in required


def require(patch: PatchBuilder, spec: Path, template: PodTemplate, requirements: Sequence[Requirement]) -> list[str]:
    """Adds the conditions to every term, or to a new term if there is none; returns the added keys.

    A requirement is left out if the user's `nodeSelector` or one of the user's terms has the same key. Otherwise the
    requirement would restrict the user's other terms too. `spec` is the path of the pod spec.
    """
    requirements = [requirement for requirement in requirements if is_free(template, requirement.key)]
    if not requirements:
        return []
    path = (*spec, *_REQUIRED)
    if not template.node_terms:
        added = patch.add(path, [{"matchExpressions": [requirement.item for requirement in requirements]}])
        return [requirement.key for requirement in requirements] if added else []
    # A term without conditions matches no node, but would match nodes if a condition were added.
    terms = [index for index, term in enumerate(template.node_terms) if term.match_expressions or term.match_fields]
    return [
        requirement.key
        for requirement in requirements
        if sum(patch.append((*path, index, "matchExpressions"), requirement.item, key="key") for index in terms)
    ]


def prefer(patch: PatchBuilder, spec: Path, template: PodTemplate, requirement: Requirement) -> bool:
    """Adds the condition as a preference, unless the template has a condition on the same label."""
    path = (*spec, *_PREFERRED)
    if not is_free(template, requirement.key) or any(requirement.key in _keys(item) for item in patch.get(path) or ()):
        return False
    return patch.append(path, _preference(requirement), key=None)


def _preference(requirement: Requirement) -> dict[str, object]:
    return {"weight": WEIGHT, "preference": {"matchExpressions": [requirement.item]}}


def is_requirement(_: str, item: Any) -> bool:
    """Whether `require` could have written this condition."""
    return (
        isinstance(item, dict)
        and item.keys() == {"key", "operator", "values"}
        and item["operator"] == "In"
        and isinstance(item["values"], list)
        and bool(item["values"])
    )


def is_term(_: str, term: Any) -> bool:
    """Whether `require` could have written this term."""
    conditions = term.get("matchExpressions") if isinstance(term, dict) and len(term) == 1 else None
    return isinstance(conditions, list) and bool(conditions) and all(is_requirement("", item) for item in conditions)


def is_preference(_: str, item: Any) -> bool:
    """Whether `prefer` could have written this preference."""
    return any(item == _preference(Requirement(key)) for key in _keys(item))


def _keys(item: Any) -> set[str]:
    """The labels in a preference. The argument may be any JSON value."""
    preference = item.get("preference") if isinstance(item, dict) else None
    conditions = preference.get("matchExpressions") if isinstance(preference, dict) else None
    if not isinstance(conditions, list):
        return set()
    return {str(condition.get("key")) for condition in conditions if isinstance(condition, dict)}
