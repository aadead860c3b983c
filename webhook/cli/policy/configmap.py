"""A policy document in a complete ConfigMap."""

import re
from collections.abc import Iterable
from dataclasses import replace
from textwrap import indent
from typing import Any, Final

from webhook.api import names, yaml
from webhook.api.labels import Selector
from webhook.cli.policy import inputs, job_fields
from webhook.policy import store
from webhook.policy.document import API_VERSION, KIND, PolicyError
from webhook.policy.in_force import policy_model

# One condition of a selector of kubectl
# (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors).
_EQUAL: Final = re.compile(r"([^\s=!,()]+)\s*(==?|!=)\s*([^\s=!,()]*)")
_AMONG: Final = re.compile(r"([^\s=!,()]+)\s+(in|notin)\s*\(([^()]*)\)")
_THERE: Final = re.compile(r"(!?)\s*([^\s=!,()]+)")
_COMMA: Final = re.compile(r",(?![^(]*\))")


def text(
    name: str,
    namespace: str,
    *,
    source: str | None,
    selector: str | None,
    mode: str | None,
    priority: int | None,
    inject_only: str | None,
    settings: Iterable[str] = (),
) -> str:
    """The ConfigMap in YAML; ValueError or PolicyError if that is not possible.

    Each of the `settings` is a path and a value: rules.worker-count.max=8.
    """
    for what, given, problem in (
        ("the name", name, names.dns_1123_subdomain_problem(name)),
        ("--policy-namespace", namespace, names.dns_1123_label_problem(namespace)),
    ):
        if problem:
            raise ValueError(f'{what} "{given[:63]}" {problem}')
    changes: dict[str, Any] = {
        "priority": priority,
        "namespaces": None if selector is None else selector_of(selector),
        "mode": mode,
        "injectOnly": None
        if inject_only is None
        else [part.strip() for part in inject_only.split(",") if part.strip()],
    }
    written = {**_start(source), **{key: value for key, value in changes.items() if value is not None}}
    for setting in settings:
        _set(written, setting)
    document = yaml.dump({"apiVersion": API_VERSION, "kind": KIND, **written})
    try:
        store.read(document, policy_model())
    except PolicyError as error:  # its lines are those of a text that no user sees
        raise PolicyError(*(replace(fault, line=None) for fault in error.faults)) from None
    head = yaml.dump(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "labels": {store.LABEL: "true"}},
        }
    )
    return f"{head}data:\n  {store.KEY}: |\n{indent(document, '    ')}"


def _set(written: dict[str, Any], setting: str) -> None:
    path, equals, value = setting.partition("=")
    try:
        if not equals:
            raise ValueError("is not PATH=VALUE, as rules.worker-count.max=8")
        values = yaml.load_all(value)
        job_fields.put(written, path.strip(), values[0] if values else None)
    except ValueError as error:
        raise ValueError(f"--set {setting}: {error}") from None


def selector_of(given: str) -> dict[str, Any] | None:
    """The label selector that kubectl would take; None for an empty one, which selects everything."""
    expressions = [_expression(part.strip()) for part in _COMMA.split(given)] if given.strip() else []
    equal = {each["key"]: each["values"][0] for each in expressions if each["operator"] == "="}
    others = [each for each in expressions if each["operator"] != "="]
    if len(equal) + len(others) < len(expressions):
        raise ValueError("--selector: one label cannot have two values")
    found = {**({"matchLabels": equal} if equal else {}), **({"matchExpressions": others} if others else {})}
    try:
        Selector.parse(found)
    except ValueError as error:
        raise ValueError(f"--selector: {error}") from None
    return found or None


def labels_of(selector: dict[str, Any] | None) -> dict[str, str]:
    """Labels of a namespace that the selector selects."""
    found = {key: str(value) for key, value in ((selector or {}).get("matchLabels") or {}).items()}
    for each in (selector or {}).get("matchExpressions") or ():
        if each["operator"] == "In":
            found.setdefault(each["key"], str(each["values"][0]))
        elif each["operator"] == "Exists":
            found.setdefault(each["key"], "true")
    return found


def _expression(part: str) -> dict[str, Any]:
    if found := _EQUAL.fullmatch(part):
        key, operator, value = found.groups()
        return {"key": key, "operator": "NotIn" if operator == "!=" else "=", "values": [value]}
    if found := _AMONG.fullmatch(part):
        key, operator, values = found.groups()
        among = [value.strip() for value in values.split(",")]
        return {"key": key, "operator": "In" if operator == "in" else "NotIn", "values": among}
    if found := _THERE.fullmatch(part):
        return {"key": found[2], "operator": "DoesNotExist" if found[1] else "Exists"}
    shown = f'"{part[:63]}"' if part else "an empty condition"
    raise ValueError(f"--selector: {shown} is not key=value, key!=value, key in (a,b), key notin (a,b), key or !key")


def _start(source: str | None) -> dict[str, Any]:
    """The settings of the file's only policy."""
    if source is None:
        return {}
    found = inputs.policies([source])
    if len(found.layers) != 1:
        raise ValueError(f"{source} has {len(found.layers)} policies, and --from takes one")
    document = found.layers[0].document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {key: value for key, value in document.items() if key not in {"apiVersion", "kind"}}
