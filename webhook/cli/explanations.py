"""Explanations of rules and injections, for the command line and the reference."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pkgutil import get_data
from typing import Any, Final, Literal

from webhook import injections, rules
from webhook.api import yaml
from webhook.cli.terminal import heading
from webhook.injections import Injection
from webhook.kit.custom_rules import PREFIX
from webhook.kit.settings import RuleSettings, Settings
from webhook.policy.document import API_VERSION, KIND
from webhook.policy.in_force import policy_model
from webhook.rules import Rule


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a rule or an injection."""

    name: str
    """The path in the policy, such as `a.b`. `a[].b` is a field of the items of the list `a`."""
    type: str
    """The accepted values in words."""
    default: str
    """The default in YAML. It is empty for a required setting, and for a setting with inner settings."""
    description: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """The documentation of a rule or an injection."""

    id: str
    kind: Literal["rule", "injection"]
    summary: str
    """The first line of the docstring."""
    explanation: str
    """The rest of the docstring."""
    default: str
    """The default action of a rule; `on` or `off` for an injection."""
    since: str
    settings: tuple[Setting, ...] = ()
    defaults: Mapping[str, Any] | None = None
    plugin: str = ""
    """The plug-in that defines the rule or injection, or empty."""

    @property
    def policy(self) -> str:
        """A policy with every setting at its default; empty if there are no settings."""
        if self.defaults is None:
            return ""
        section = {self.id: dict(self.defaults)}
        return yaml.dump({"apiVersion": API_VERSION, "kind": KIND, f"{self.kind}s": section})

    def as_text(self) -> Iterator[str]:
        word = "action" if self.kind == "rule" else "default"
        of = f" of the plug-in {self.plugin}" if self.plugin else ""
        yield heading(self.id) + f" ({self.kind}{of}, {word}: {self.default}, since {self.since})"
        yield ""
        yield self.summary
        if self.explanation:
            yield from ("", *self.explanation.splitlines())
        if self.settings:
            yield from ("", heading("Settings"))
        for setting in self.settings:
            default = f", default {setting.default}" if setting.default else ", required" if setting.required else ""
            yield f"  {setting.name}: {setting.type}{default}"
            yield f"      {setting.description}"
        if self.policy:
            yield from ("", heading("In a policy file, with the defaults"))
            yield from (f"  {line}" for line in self.policy.splitlines())


def _other_rules() -> Iterator[Explanation]:
    """Rules without a module. The rule `custom` describes the custom rules of policies."""
    schema = policy_model().model_json_schema()
    custom = resolved(schema["properties"]["rules"], schema["$defs"])["properties"][PREFIX]
    settings = tuple(_settings(resolved(custom["items"], schema["$defs"]), schema["$defs"], prefix="[]."))
    for about in yaml.load_all(get_data(__package__, "other_rules.yaml") or b""):
        yield Explanation(kind="rule", since="0.1", settings=settings if about["id"] == PREFIX else (), **about)


def entries() -> list[Explanation]:
    """Every rule, then every injection, each sorted by id."""
    from_modules = [_entry("rule", rule) for rule in rules.REGISTRY.values()]
    every_rule = sorted([*_other_rules(), *from_modules], key=lambda entry: entry.id)
    return every_rule + [_entry("injection", injection) for injection in injections.REGISTRY.values()]


def find(entry_id: str) -> list[Explanation]:
    return [entry for entry in entries() if entry.id == entry_id]


def similar(entry_id: str) -> list[str]:
    ids = list(dict.fromkeys(entry.id for entry in entries()))
    return get_close_matches(entry_id.lower().replace("_", "-"), ids, n=3, cutoff=0.5)


def settings(model: type[Settings]) -> tuple[Setting, ...]:
    schema = model.model_json_schema()
    return tuple(_settings(schema, schema.get("$defs", {}), prefix=""))


def _entry(kind: Literal["rule", "injection"], of: Rule | Injection) -> Explanation:
    summary, explanation = of.documentation
    defaults = of.settings()
    default = str(defaults.action) if isinstance(defaults, RuleSettings) else "on" if defaults.enabled else "off"
    return Explanation(
        id=of.id,
        kind=kind,
        summary=summary,
        explanation=explanation,
        default=default,
        since=of.since,
        settings=settings(of.settings),
        defaults=defaults.model_dump(mode="json", by_alias=True),
        plugin=of.plugin,
    )


def _settings(schema: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str) -> Iterator[Setting]:
    for name, field in schema.get("properties", {}).items():
        default = yaml.dump_inline(field["default"]) if "default" in field else ""
        required = name in schema.get("required", ())
        yield Setting(prefix + name, in_words(field, definitions), default, field.get("description", ""), required)
        inner = resolved(field, definitions)
        yield from _settings(inner, definitions, f"{prefix}{name}.")
        yield from _settings(resolved(inner.get("items", {}), definitions), definitions, f"{prefix}{name}[].")


def resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON schema. Its reference to `definitions`, if any, is replaced; references in inner schemas stay."""
    reference = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**definitions[reference], **schema} if reference else schema


def in_words(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    schema = resolved(schema, definitions)
    if "anyOf" in schema:
        return " or ".join(in_words(choice, definitions) for choice in schema["anyOf"])
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else None):
        *most, last = (choice if isinstance(choice, str) else yaml.dump_inline(choice) for choice in choices)
        return f"{', '.join(most)} or {last}" if most else last
    match schema.get("type"):
        case "array":
            return f"list of {in_words(schema.get('items', {}), definitions)}"
        case "object" if "properties" not in schema:
            values = schema.get("additionalProperties")
            return f"mapping of text to {in_words(values if isinstance(values, dict) else {}, definitions)}"
        case "string" if schema.get("format") == "date":
            return "date such as 2027-01-31"
        case kind:
            return _WORDS.get(kind or "", "anything") + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    match schema.get("minimum"), schema.get("maximum"):
        case None, None:
            return ""
        case low, None:
            return f", {low} or more"
        case None, high:
            return f", {high} or less"
        case low, high:
            return f", {low} to {high}"


_WORDS: Final = {
    "boolean": "true or false", "integer": "whole number", "null": "null", "number": "number", "object": "mapping",
    "string": "text",
}  # fmt: skip


def overview(entries: Sequence[Explanation]) -> Iterator[str]:
    width = max(len(entry.id) for entry in entries)
    for kind, title in (("rule", "Rules: what a job is checked for"), ("injection", "Injections: what is injected")):
        yield heading(title)
        yield from (
            f"  {e.id:{width}}  {e.default:6}  {e.summary}" + (f" (plug-in {e.plugin})" if e.plugin else "")
            for e in entries
            if e.kind == kind
        )
        yield ""


def as_json(entries: Iterable[Explanation]) -> dict[str, list[dict[str, str]]]:
    return {
        f"{kind}s": [
            {"id": entry.id, "default": entry.default, "summary": entry.summary, "since": entry.since}
            | ({"plugin": entry.plugin} if entry.plugin else {})
            for entry in entries
            if entry.kind == kind
        ]
        for kind in ("rule", "injection")
    }
