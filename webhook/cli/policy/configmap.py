"""Writes a policy as a ConfigMap."""

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

# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
_EQUAL: Final = re.compile(r"([^\s=!,()]+)\s*(==?|!=)\s*([^\s=!,()]*)")
_AMONG: Final = re.compile(r"([^\s=!,()]+)\s+(in|notin)\s*\(([^()]*)\)")
_EXISTS: Final = re.compile(r"(!?)\s*([^\s=!,()]+)")
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
    """The ConfigMap in YAML; ValueError or PolicyError for an invalid option. A setting is written as PATH=VALUE."""
    for option, value, problem in (
        ("the name", name, names.dns_1123_subdomain_problem(name)),
        ("--policy-namespace", namespace, names.dns_1123_label_problem(namespace)),
    ):
        if problem:
            raise ValueError(f'{option} "{value[:63]}" {problem}')
    changes: dict[str, Any] = {
        "priority": priority,
        "namespaces": None if selector is None else selector_of(selector),
        "mode": mode,
        "injectOnly": None
        if inject_only is None
        else [part.strip() for part in inject_only.split(",") if part.strip()],
    }
    fields = {**_start(source), **{key: value for key, value in changes.items() if value is not None}}
    for setting in settings:
        _set(fields, setting)
    document = yaml.dump({"apiVersion": API_VERSION, "kind": KIND, **fields})
    try:
        store.read(document, policy_model())
    except PolicyError as error:  # line numbers do not help: the user does not see this text
        raise PolicyError(*(replace(fault, line=None) for fault in error.faults)) from None
    head = yaml.dump(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "labels": {store.LABEL: "true"}},
        }
    )
    return f"{head}data:\n  {store.KEY}: |\n{indent(document, '    ')}"


def _set(fields: dict[str, Any], setting: str) -> None:
    path, equals, value = setting.partition("=")
    try:
        if not equals:
            raise ValueError("is not PATH=VALUE, such as rules.worker-count.max=8")
        values = yaml.load_all(value)
        job_fields.put(fields, path.strip(), values[0] if values else None)
    except ValueError as error:
        raise ValueError(f"--set {setting}: {error}") from None


def selector_of(option: str) -> dict[str, Any] | None:
    """The label selector for an option in kubectl's syntax; None for an empty option, which selects everything."""
    conditions = [_condition(part.strip()) for part in _COMMA.split(option)] if option.strip() else []
    equal = {condition["key"]: condition["values"][0] for condition in conditions if condition["operator"] == "="}
    others = [condition for condition in conditions if condition["operator"] != "="]
    if len(equal) + len(others) < len(conditions):
        raise ValueError("--selector: one label cannot have two values")
    selector = {**({"matchLabels": equal} if equal else {}), **({"matchExpressions": others} if others else {})}
    try:
        Selector.parse(selector)
    except ValueError as error:
        raise ValueError(f"--selector: {error}") from None
    return selector or None


def _condition(part: str) -> dict[str, Any]:
    if match := _EQUAL.fullmatch(part):
        key, operator, value = match.groups()
        return {"key": key, "operator": "NotIn" if operator == "!=" else "=", "values": [value]}
    if match := _AMONG.fullmatch(part):
        key, operator, values = match.groups()
        among = [value.strip() for value in values.split(",")]
        return {"key": key, "operator": "In" if operator == "in" else "NotIn", "values": among}
    if match := _EXISTS.fullmatch(part):
        return {"key": match[2], "operator": "DoesNotExist" if match[1] else "Exists"}
    shown = f'"{part[:63]}"' if part else "an empty condition"
    raise ValueError(f"--selector: {shown} is not key=value, key!=value, key in (a,b), key notin (a,b), key or !key")


def _start(source: str | None) -> dict[str, Any]:
    if source is None:
        return {}
    layers = inputs.policies([source]).layers
    if len(layers) != 1:
        raise ValueError(f"{source} has {len(layers)} policies, and --from takes one")
    head = {"api_version", "kind"}
    return layers[0].document.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=head)
