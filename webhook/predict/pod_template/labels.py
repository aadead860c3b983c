"""The API server's checks of labels, annotations and selectors."""

from collections.abc import Mapping

from webhook.api import names
from webhook.predict.limits import MAX_TEMPLATE_ANNOTATIONS_BYTES
from webhook.predict.pod_template import model, texts
from webhook.predict.pod_template.fault import Faults, Kind, shown


def check_labels(labels: Mapping[str, str | None], path: str, faults: Faults) -> None:
    for key, value in labels.items():
        if problem := texts.label_key(key):
            faults.add(f"{path}[{shown(key)}]", f"its key {problem}", _renamed(key))
        if value and (problem := texts.label_value(value)):
            texts.note(faults, f"{path}[{shown(key)}]", value, problem)


def _renamed(key: str) -> str:
    corrected = names.corrected(key, names.label_key_problem)
    return f"Rename it to {corrected}." if corrected else texts.SPELLING


def check_annotations(annotations: Mapping[str, str | None], path: str, faults: Faults) -> None:
    """The API server lowercases annotation keys before it checks them, so capitals are allowed."""
    for key in annotations:
        if problem := texts.label_key(key) and texts.label_key(key.lower()):
            faults.add(f"{path}[{shown(key)}]", f"its key {problem}", _renamed(key))
    text = "".join([*annotations, *filter(None, annotations.values())])
    # A character has at most four bytes. Annotations with few characters are therefore not encoded.
    if 4 * len(text) > MAX_TEMPLATE_ANNOTATIONS_BYTES and (size := len(text.encode())) > MAX_TEMPLATE_ANNOTATIONS_BYTES:
        fault = f"have {size:,} bytes, the maximum is {MAX_TEMPLATE_ANNOTATIONS_BYTES:,}"
        faults.add(path, fault, "Leave some out.")


def check_selector(selector: model.Selector | model.PodSelector | None, path: str, faults: Faults) -> None:
    if selector is None:
        return
    if selector.match_labels:
        check_labels(selector.match_labels, f"{path}.matchLabels", faults)
    for index, requirement in enumerate(selector.match_expressions or ()):
        check_requirement(requirement, f"{path}.matchExpressions[{index}]", faults)


def check_requirement(
    requirement: model.Requirement | model.NodeRequirement, path: str, faults: Faults, *, any_value: bool = False
) -> None:
    """With `any_value`, the syntax of the values is not checked."""
    operator, values = requirement.operator, requirement.values or []
    match operator:
        case "In" | "NotIn" if not values:
            faults.add(f"{path}.values", f"is empty, but {operator} needs a value", "Name the values.", Kind.REQUIRED)
        case "Exists" | "DoesNotExist" if values:
            faults.add(f"{path}.values", f"does not go with {operator}", "Remove it.", Kind.FORBIDDEN)
        case "Gt" | "Lt" if len(values) != 1:
            faults.add(f"{path}.values", f"must be one number for {operator}", "Name one number.", Kind.REQUIRED)
    if texts.label_key(requirement.key):
        texts.check(faults, f"{path}.key", requirement.key, texts.label_key)
    if values and not any_value:
        texts.check_each(faults, f"{path}.values", values, texts.label_value)
