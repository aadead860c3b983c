"""Whether labels satisfy what a pod asks of its node (component-helpers `scheduling/corev1/nodeaffinity`)."""

from collections.abc import Mapping, Sequence

from webhook.api.pod import NodeRequirement


def satisfies(labels: Mapping[str, str], requirement: NodeRequirement) -> bool:
    """Whether labels satisfy the requirement; one that the API server would refuse is taken to be satisfied."""
    value = labels.get(requirement.key)
    values = requirement.values or []
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, requirement.operator, values)
        case _:
            return True


def _compares(value: str | None, operator: str, values: Sequence[str]) -> bool:
    if value is None:
        return False
    try:
        label, bound = int(value), int(values[0])
    except (ValueError, IndexError):
        return True
    return label > bound if operator == "Gt" else label < bound
