"""Label selectors (`matchLabels`, `matchExpressions`).

The API server's validation and `metav1.LabelSelectorAsSelector` are the model:
https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/apis/meta/v1/validation/validation.go
https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/apis/meta/v1/helpers.go
An unknown field is an error, because a selector with a misspelt `matchLabel` would select everything.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Self

import msgspec

from webhook.api import names
from webhook.api.shape import ShapeError

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


class SelectorError(ShapeError):
    """`path` is the field with the fault, such as `matchExpressions[0].values`. It is empty for the selector itself."""


class Requirement(msgspec.Struct, frozen=True):
    """A condition on a label: its value is in `values`, or the label exists if `values` is None.

    The condition is negated if `positive` is False.
    """

    key: str
    values: frozenset[str] | None
    positive: bool


class Selector(msgspec.Struct, frozen=True):
    """An empty tuple selects everything, None selects nothing."""

    requirements: tuple[Requirement, ...] | None

    @classmethod
    def parse(cls, obj: object) -> Self:
        """SelectorError at the first fault."""
        if obj is None:
            return cls(None)
        fields = _fields(obj, "", ("matchLabels", "matchExpressions"))
        equals = _equals(fields.get("matchLabels"))
        expressions = _list(fields.get("matchExpressions"), "matchExpressions")
        return cls((*equals, *(_expression(e, f"matchExpressions[{i}]") for i, e in enumerate(expressions))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """A missing label satisfies NotIn, as in Kubernetes."""
        if self.requirements is None:
            return False
        for requirement in self.requirements:
            key, values = requirement.key, requirement.values
            is_met = key in labels if values is None else labels.get(key) in values
            if is_met is not requirement.positive:
                return False
        return True


def _equals(obj: object) -> Iterator[Requirement]:
    if obj is None:
        return
    for key, value in _mapping(obj, "matchLabels").items():
        name = _key(key, "matchLabels")
        yield Requirement(name, frozenset([_value(value, f"matchLabels[{name}]")]), positive=True)


def _expression(obj: object, path: str) -> Requirement:
    fields = _fields(obj, path, ("key", "operator", "values"))
    key = _key(fields.get("key"), f"{path}.key")
    operator = fields.get("operator")
    if operator not in _OPERATORS:
        given = operator if isinstance(operator, str) else ""
        near = given.capitalize() if given.capitalize() in _OPERATORS else names.closest_name(given, _OPERATORS)
        choices = near or f"one of {', '.join(_OPERATORS)}"
        raise SelectorError(f"{path}.operator", f"must be {choices}")
    values = _list(fields.get("values"), f"{path}.values")
    takes_values = operator in {"In", "NotIn"}
    if takes_values and not values:
        raise SelectorError(f"{path}.values", f"operator {operator} needs at least one value")
    if values and not takes_values:
        raise SelectorError(f"{path}.values", f"operator {operator} takes no values, remove them")
    allowed = frozenset([_value(value, f"{path}.values[{i}]") for i, value in enumerate(values)])
    return Requirement(key, allowed if takes_values else None, positive=operator in {"In", "Exists"})


def _mapping(obj: object, path: str) -> Mapping[object, object]:
    if not isinstance(obj, Mapping):
        raise SelectorError(path, "must be a mapping")
    return obj


def _fields(obj: object, path: str, valid: tuple[str, ...]) -> Mapping[object, object]:
    fields = _mapping(obj, path)
    for name in fields:
        if name not in valid:
            shown = f' "{name[:63]}"' if isinstance(name, str) else ""
            near = names.closest_name(str(name), valid)
            advice = f"write {near}" if near else f"use one of {', '.join(valid)}"
            raise SelectorError(path, f"unknown field{shown}, {advice}")
    return fields


def _list(obj: object, path: str) -> list[object]:
    if obj is None:
        return []
    if not isinstance(obj, list):
        raise SelectorError(path, "must be a list")
    return obj


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise SelectorError(path, "must be the key of a label, as text")
    if problem := names.label_key_problem(key):
        raise SelectorError(path, f"the label key {problem}")
    return key


def _value(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise SelectorError(path, "must be the value of a label, as text: numbers, true and false need quotes")
    if problem := names.label_value_problem(value):
        raise SelectorError(path, f"the label value {problem}")
    return value
