"""The JSON Schema of policy documents, and a document with all defaults."""

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pkgutil import get_data
from typing import Any, Final

from webhook import PROGRAM, injections, rules
from webhook.api import yaml
from webhook.cli.explanations import in_words, resolved
from webhook.cli.policy.documents import TEST_KIND
from webhook.cli.policy.suite_document import SuiteDocument
from webhook.kit.custom_rules import PREFIX
from webhook.policy.document import API_VERSION, KIND
from webhook.policy.exemptions import EVERY_RULE
from webhook.policy.in_force import policy_model
from webhook.policy.limits import MAX_ENTRIES

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
ID: Final = "https://policy.training.openshift.io/v1/mpijobpolicy.schema.json"
ID_OF_TESTS: Final = "https://policy.training.openshift.io/v1/mpijobpolicytest.schema.json"
COMMENT_WIDTH: Final = 100

HEADER: Final = f"""\
# A policy for MPIJobs: the rules that check jobs, and the injections. Here every setting has its default.
# Keep only the settings that you change: every setting in this file overrides documents of lower priority.
# `{PROGRAM} policy validate FILE` checks the file, `{PROGRAM} explain NAME` explains a rule or an injection.
"""
# A comment "Value: mapping." does not help. "mapping of text to ..." does.
_UNHELPFUL: Final = re.compile(r"\bmapping\b(?! of)")
_SELECTOR, EXAMPLES = yaml.load_all(get_data(__package__, "policy_schema.yaml") or b"")


@cache
def json_schema() -> dict[str, Any]:
    """The JSON Schema of policy documents. The result is cached, so callers must not change it."""
    schema = policy_model().model_json_schema()
    definitions = schema.pop("$defs")
    properties = schema["properties"]
    for name, registry in (("rules", rules.REGISTRY), ("injections", injections.REGISTRY)):
        section = _inlined(properties[name], definitions)
        custom = {PREFIX: section["properties"][PREFIX]} if name == "rules" else {}
        section["properties"] = custom | {
            entry.id: _inlined(section["properties"][entry.id], definitions) | {"description": entry.documentation[0]}
            for entry in registry.values()
        }
        properties[name] = section
    properties["namespaces"]["anyOf"][0] = _SELECTOR
    exemption = definitions["Exemption"]["properties"]
    ids = {"enum": [EVERY_RULE, PREFIX, *rules.REGISTRY]}
    exemption["rules"]["items"] = {"anyOf": [ids, {"type": "string", "pattern": f"^{PREFIX}/."}]}
    for name, example in EXAMPLES.items():
        properties[name]["examples"] = [example]
    whole = {**schema, "$defs": {name: definitions[name] for name in sorted(_used(schema, definitions))}}
    head = {"$schema": DIALECT, "$id": ID, "title": KIND, "type": "object", "required": ["apiVersion", "kind"]}
    bare: dict[str, Any] = _everywhere(lambda schema: _bounded(_without_title(schema)), whole)
    return head | bare


def schema_of_tests() -> dict[str, Any]:
    bare: dict[str, Any] = _everywhere(_without_title, SuiteDocument.model_json_schema())
    return {"$schema": DIALECT, "$id": ID_OF_TESTS, "title": TEST_KIND} | bare


def accepted(field: str) -> str:
    """The accepted values of a policy's field, in words; empty for a field with inner fields.

    If a part of the path `field` does not exist, the result lists the names that exist there.
    """
    schema = json_schema()
    definitions = schema["$defs"]
    node: Mapping[str, Any] = schema
    for part in re.findall(r"[^.\[\]]+", field):
        node = _structure(resolved(node, definitions), definitions)
        properties = node.get("properties", {})
        if part in properties:
            node = properties[part]
        elif "items" in node:
            node = node["items"]
        elif properties:
            return ", ".join(properties)
        else:
            break  # any key is valid here
    node = resolved(node, definitions)
    return "" if "properties" in node else in_words(node, definitions)


def starting_document() -> str:
    """A policy in YAML with every setting at its default. Comments explain the settings."""
    values = {**policy_model()().model_dump(mode="json", by_alias=True), "apiVersion": API_VERSION, "kind": KIND}
    text = yaml.dump(values)
    at = yaml.lines(text)
    before = {at[path]: (path, comment) for path, comment in _comments(json_schema(), ()) if path in at}
    rows = [HEADER]
    for number, row in enumerate(text.splitlines(), start=1):
        if number in before:
            path, comment = before[number]
            rows += [""] if len(path) < 3 else []  # an empty line before each top-level setting, rule and injection
            rows += ["  " * (len(path) - 1) + f"# {line}" for line in comment]
        rows.append(row)
    return "\n".join(rows) + "\n"


def _comments(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Iterator[str]]]:
    definitions = json_schema()["$defs"]
    for name, field in schema["properties"].items():
        inner = resolved(field, definitions)
        if "const" not in inner:
            yield (*path, name), _comment(inner, in_words(field, definitions))
        if "properties" in inner:
            yield from _comments(inner, (*path, name))


def _comment(field: Mapping[str, Any], words: str) -> Iterator[str]:
    text: str = field.get("description", "")
    value = f"Value: {words}." if words not in text and not _UNHELPFUL.search(words) else ""
    paragraphs = [f"{text} {value}".strip()] if len(text) + len(value) < COMMENT_WIDTH else [text, value]
    for paragraph in paragraphs:
        yield from textwrap.wrap(paragraph, COMMENT_WIDTH, break_on_hyphens=False)
    for example in field.get("examples", ()):
        yield from ("Example:", *(f"  {row}" for row in yaml.dump(example).splitlines()))


def _structure(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = [resolved(choice, definitions) for choice in schema.get("anyOf", ())]
    return next((choice for choice in choices if {"properties", "items"} & choice.keys()), schema)


def _used(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> set[str]:
    used: set[str] = set()
    text = json.dumps(schema)
    while new := {name for name in definitions if f'"#/$defs/{name}"' in text} - used:
        used |= new
        text = json.dumps([definitions[name] for name in new])
    return used


def _inlined(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in resolved(schema, definitions).items() if key != "$ref"}


def _bounded(schema: dict[str, Any]) -> dict[str, Any]:
    bound: dict[str, Any] = {}
    if schema.get("type") == "array":
        bound = {"maxItems": MAX_ENTRIES}
    elif schema.get("type") == "object" and schema.get("additionalProperties"):
        bound = {"maxProperties": MAX_ENTRIES}
    return bound | schema


def _without_title(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without its title, which pydantic derives from the name of a Python class or field."""
    return {key: value for key, value in schema.items() if key != "title"}


def _everywhere(change: Callable[[dict[str, Any]], dict[str, Any]], schema: Any) -> Any:
    if isinstance(schema, list):
        return [_everywhere(change, item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return change(
        {
            key: {name: _everywhere(change, field) for name, field in value.items()}
            if key in {"properties", "$defs"}
            else value
            if key in {"default", "examples", "enum"}
            else _everywhere(change, value)
            for key, value in schema.items()
        }
    )
