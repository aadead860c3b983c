"""Messages for faults of a policy document, in terms of YAML and the policy's settings.

Only this module translates pydantic's errors.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from webhook import PROGRAM
from webhook.api import yaml
from webhook.api.names import closest_name
from webhook.policy.limits import MAX_EXAMPLE_CHARACTERS, MAX_LISTED_CHOICES

Location = tuple[str | int, ...]

HINT: Final = f"`{PROGRAM} rules` lists rules and injections, `{PROGRAM} explain NAME` their settings"
INDENTED: Final = "is empty; is the next line indented too little?"

_QUOTED: Final = re.compile(r"'([^']*)'")
_MAPPING: Final = ", as {key: value}"
_NO_MAPPING: Final = frozenset({"model_type", "model_attributes_type", "dict_type"})


def first(
    error: ValidationError, model: type[BaseModel], most: int | None = None
) -> tuple[list[tuple[Location, str]], int]:
    """(location, reason) of the first `most` faults, and the number of the other faults.

    A mistake with several consequences is one fault. `most` saves time: a document may have tens of thousands of
    faults, and each message takes a fraction of a millisecond.
    """
    faults = error.errors(include_url=False)
    broken = {fault["loc"][:end] for fault in faults for end in range(len(fault["loc"]))}
    left_out = dict(_left_out(faults, model))
    reported = [
        fault
        for fault in faults
        if not (fault["type"] == "extra_forbidden" and fault["loc"] in left_out)
        and not (fault["type"] == "too_short" and fault["loc"] in broken)  # an entry exists, but is invalid
    ]
    kept_faults: list[tuple[Location, str]] = []
    for fault in reported[:most]:
        location: Location = fault["loc"]
        reason = _reason(fault, location, model)
        if members := [str(member[-1]) for member, owner in left_out.items() if owner == location]:
            verb = "belongs" if len(members) == 1 else "belong"
            reason = f"{INDENTED} {', '.join(members[:MAX_LISTED_CHOICES])} {verb} to it"
        kept_faults.append((location, reason))
    return kept_faults, len(reported) - len(kept_faults)


def _left_out(faults: Iterable[Any], model: type[BaseModel]) -> Iterator[tuple[Location, Location]]:
    """(setting, section) for each setting that is indented too little, so that it is next to its section, not in it."""
    empty = [fault["loc"] for fault in faults if fault["type"] in _NO_MAPPING and fault["input"] is None]
    beside: dict[Location, list[tuple[Location, Collection[str]]]] = {}
    for owner in empty:
        if owner and isinstance(owner[-1], str):  # an entry of a list has no settings as siblings
            beside.setdefault(owner[:-1], []).append((owner, _fields(_at(model, owner))))
    for fault in faults:
        location = fault["loc"]
        if fault["type"] == "extra_forbidden":
            owners = (owner for owner, fields in beside.get(location[:-1], ()) if location[-1] in fields)
            yield from ((location, owner) for owner in islice(owners, 1))


def _reason(fault: Mapping[str, Any], location: Location, model: type[BaseModel]) -> str:
    kind, value, context = str(fault["type"]), fault["input"], fault.get("ctx", {})
    match kind:
        case "extra_forbidden":
            return _unknown(location, model)
        case "missing":
            return "is missing"
        case "value_error":
            return str(context["error"]) + _shown(value)
        case "model_type" | "model_attributes_type" | "dict_type" if value is None:
            return INDENTED
    return _of_value(kind, value, context, _at(model, location))


def _of_value(kind: str, value: Any, context: Mapping[str, Any], annotation: Any) -> str:
    choices = _QUOTED.findall(str(context.get("expected", ""))) if kind in {"literal_error", "enum"} else []
    if value is None:
        return f"is empty: {_wanted(kind, choices)}, or remove it"
    if len(choices) > MAX_LISTED_CHOICES:
        near = closest_name(str(value), choices)
        return f'there is no "{str(value)[:100]}"; {f"did you mean {near}?" if near else HINT}'
    if kind == "tuple_type":
        return "must be a list" + _as_list(value, annotation)
    if kind in _NO_MAPPING:
        return "must be a mapping" + _as_mapping(value, annotation)
    if kind == "string_type":
        exact = isinstance(value, bool | int)
        return "must be text, in quotes" + (f': "{_plain(value)}"' if exact else _shown(value))
    return (_bound(kind, context) or f"must be {_wanted(kind, choices)}") + _shown(value)


def _wanted(kind: str, choices: list[str]) -> str:
    if choices:
        return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"
    if kind in _NO_MAPPING:
        return f"a mapping{_MAPPING}"
    names = {"int": "a whole number", "bool": "true or false", "date": "a date such as 2027-01-31", "string": "text"}
    return names.get(kind.partition("_")[0], "a list" if kind == "tuple_type" else "of another type")


def _bound(kind: str, context: Mapping[str, Any]) -> str:
    match kind:
        case "greater_than_equal":
            return f"must be at least {context['ge']}"
        case "less_than_equal":
            return f"must be at most {context['le']}"
        case "string_too_short":
            return "must not be empty"
        case "too_short":
            least = context["min_length"]
            return f"must have at least {least} {'entry' if least == 1 else 'entries'}"
        case "too_long":
            return f"has more than {context['max_length']} entries"
    return ""


def _unknown(location: Location, model: type[BaseModel]) -> str:
    name = str(location[-1])
    if len(location) > 1 and name in _fields(model):
        return "belongs to the document itself: indent it less"
    kinds = {"rules": "a rule", "injections": "an injection"}
    sections = [section for section in kinds if name in _fields(_at(model, (section,)))]
    if sections and location[0] not in sections:
        is_a = " and ".join(kinds[section] for section in sections)
        return f"is {is_a}: write it below {' or '.join(sections)}"
    if location == ("spec",):
        return "is not a setting: remove it, and write its content without indentation"
    settings = _fields(_at(model, location[:-1]))
    if near := _like(name, settings):
        return f"is not a setting; did you mean {near}?"
    return (
        f"is not a setting; {'accepted: ' + ', '.join(settings) if 0 < len(settings) <= MAX_LISTED_CHOICES else HINT}"
    )


def _like(name: str, settings: Iterable[str]) -> str | None:
    """The only setting that contains `name`, or else the most similar setting."""
    longer = [setting for setting in settings if name and name.casefold() in setting.casefold()]
    return longer[0] if len(longer) == 1 else closest_name(name, settings)


def _as_list(value: Any, annotation: Any) -> str:
    choices = list(_choices(annotation))
    entries: list[Any] = [value]
    if not isinstance(value, dict):
        entries = [part.strip() for part in _plain(value).split(",")]
        if choices:
            instead = choices[0] if len(choices) <= MAX_LISTED_CHOICES else ""
            entries = [*dict.fromkeys(closest_name(entry, choices) or instead or entry for entry in entries)]
    fitting = not isinstance(value, dict) or _fields(annotation)
    example = yaml.dump_inline(entries)
    return f": {example}" if fitting and len(example) <= MAX_EXAMPLE_CHARACTERS else ", each entry after `- `"


def _as_mapping(value: Any, annotation: Any) -> str:
    fields, corrected = _fields(annotation), dict[str, Any]()
    if isinstance(value, bool) and "enabled" in fields:
        corrected = {"enabled": value}
    elif "action" in fields and (action := "off" if value is False else value) in [
        *_choices(fields["action"].annotation)
    ]:
        corrected = {"action": action}
    elif isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        corrected = {key: inner for entry in value for key, inner in entry.items()}
    elif isinstance(value, list) and all(isinstance(entry, str) and entry in fields for entry in value):
        corrected = {entry: {} for entry in value}
    example = yaml.dump_inline(corrected) if corrected else ""
    return f": {example}{_shown(value)}" if 0 < len(example) <= MAX_EXAMPLE_CHARACTERS else _MAPPING + _shown(value)


def _choices(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
        return
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (str(member.value) for member in annotation)
        return
    for part in get_args(annotation):
        yield from _choices(part)


def _at(model: type[BaseModel], location: Location) -> Any:
    """The type of the value at `location` of a document; None if this setting does not exist."""
    annotation: Any = model
    for part in location:
        if isinstance(part, int):
            continue  # entries have the element type of their list
        field = _fields(_model_in(annotation)).get(part)
        if field is None:
            return None
        annotation = field.annotation
    return annotation


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)


def _fields(annotation: Any) -> dict[str, FieldInfo]:
    """The fields of the model in `annotation`, by their names in YAML."""
    model = _model_in(annotation)
    return {field.alias or name: field for name, field in model.model_fields.items()} if model else {}


def _shown(value: Any) -> str:
    """The value in parentheses; empty if it is not a scalar."""
    if isinstance(value, bool):
        return f" (it is {_plain(value)}{'' if value else ': without quotes, off and no mean false'})"
    return f" (it is {json.dumps(value, ensure_ascii=False)}"[:98] + ")" if isinstance(value, str | int | float) else ""


def _plain(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)
