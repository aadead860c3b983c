"""Pod templates with one changed value, generated from the API's schema. Most of the values are wrong.

Each field has mutants. A mutant of an existing value removes, empties or doubles it, or replaces it by a value of a
wrong type or by an extreme value of the right type. A mutant of a missing field adds the field.
"""

import copy
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tests.support.strategies import parent_of

Json = dict[str, Any]
Path = tuple[str | int, ...]

# The operator overwrites these fields, or derives them from other fields of the job.
NOT_THE_USERS: Final = frozenset({"restartPolicy", "hostname", "subdomain"})
# The only fields of embedded metadata that are stored with a job.
KEPT_OF_METADATA: Final = ("annotations", "finalizers", "labels", "name", "namespace")
DEEPEST: Final = 11
LONG: Final = "a" * 300
TEXTS: Final = ("", "Bad_Name!", "a" * 64, LONG, "../up", "/abs", "a b", "x-", "8080", "ok")
NUMBERS: Final = (-1, 0, 1, 700, 70_000, 2**31, 2**40)
QUANTITIES: Final = ("-1", "1.5", "64", "3Mi", "100", 0, "nonsense")
PORTS: Final = (0, 22, 70_000, "8080", "ssh", "Bad_Port", "")
KEYS: Final = ("Bad Key", "a" * 64, "x/y/z", "ok", "example.com/ok")


_REMOVED: Final = object()


class Mutant(NamedTuple):
    """A template with one change. The template is computed on access."""

    place: str
    """The path without indices, which groups similar fields."""
    change: str
    """The description of the change."""
    original: Json
    path: Path
    value: Any

    @property
    def template(self) -> Json:
        mutated: Json = copy.deepcopy(self.original)
        target = parent_of(mutated, self.path)
        if self.value is _REMOVED:
            del target[self.path[-1]]
        else:
            target[self.path[-1]] = copy.deepcopy(self.value)
        return mutated


class Schema:
    """The schemas of the API by name, with references resolved."""

    def __init__(self, document: Json) -> None:
        self._schemas = document["components"]["schemas"]

    def of(self, name: str) -> Json:
        return self.resolved({"$ref": f"#/components/schemas/{name}"})

    def resolved(self, schema: Json) -> Json:
        """The schema without references. The field `name` of the result is the name of the referenced schema."""
        while True:
            inner = [schema, *schema.get("allOf", ())]
            reference = next((part["$ref"] for part in inner if "$ref" in part), None)
            if reference is None:
                return schema
            name = reference.rpartition("/")[2]
            schema = {**self._schemas[name], "name": name.rpartition(".")[2]}
            if schema["name"] == "ObjectMeta":
                schema["properties"] = {key: schema["properties"][key] for key in KEPT_OF_METADATA}


_MAP: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_TEMPLATE: Final = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "properties": {"labels": _MAP, "annotations": _MAP}},
        "spec": {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"},
    },
}


def mutants(schema: Schema, template: Json) -> Iterator[Mutant]:
    """All mutants of a pod template: of its spec, and of the metadata that pods get."""
    for path, change, value in _changes(schema, _TEMPLATE, template, ()):
        if len(path) > 1 and not NOT_THE_USERS.intersection(path[1:2]):
            place = ".".join(str(step) for step in path if not isinstance(step, int))
            yield Mutant(place, change, template, path, value)


Change = tuple[Path, str, Any]


def _changes(schema: Schema, kind: Json, value: Any, path: Path) -> Iterator[Change]:
    if len(path) > DEEPEST:
        return
    kind = schema.resolved(kind)
    if path:
        for index, other in enumerate(_others(schema, kind)):
            if other != value:
                yield path, f"{_name(other)} ({index})", other
    if isinstance(value, dict):
        yield from _of_object(schema, kind, value, path)
    elif isinstance(value, list):
        if path:
            yield path, "emptied", []
            if value:
                yield path, "doubled", [*value, value[0]]
        for index, item in enumerate(value):
            yield from _changes(schema, kind.get("items", {}), item, (*path, index))


def _of_object(schema: Schema, kind: Json, value: Json, path: Path) -> Iterator[Change]:
    properties = kind.get("properties", {})
    for key, inner in value.items():
        yield (*path, key), "removed", _REMOVED
        yield from _changes(schema, properties.get(key, kind.get("additionalProperties", {})), inner, (*path, key))
    for key, inner in properties.items():
        if key not in value:
            for index, other in enumerate(_others(schema, schema.resolved(inner))):
                yield (*path, key), f"{_name(other)} put in ({index})", other
    if "additionalProperties" in kind:
        sample = next(iter(value.values()), "1")
        for key in KEYS:
            yield (*path, key), "key put in", sample


def _others(schema: Schema, kind: Json) -> list[Any]:
    """Replacements for a value of this kind. Some of them are valid."""
    if kind.get("name") in _OF_NAME:
        return _OF_NAME[kind["name"]]
    if choices := kind.get("enum"):
        return [*choices, *(choice.swapcase() for choice in choices[:1]), "nonsense", "", 7]
    if kind.get("type") == "array":
        items = [_good(schema, kind["items"]), _good(schema, kind["items"], most=True)]
        return ["x", [], *([item] for item in items), items[:1] * 2]
    if "additionalProperties" in kind:
        value = _good(schema, kind["additionalProperties"])
        return ["x", {}, *({key: value} for key in KEYS)]
    if kind.get("type") == "object":
        return ["x", {}, _good(schema, kind), _good(schema, kind, most=True)]
    return _OF_TYPE.get(kind.get("type", ""), ["x", 7])


_OF_NAME: Final = {"Quantity": [*QUANTITIES, True], "IntOrString": [*PORTS, True]}
_OF_TYPE: Final[dict[str, list[Any]]] = {
    "string": [*TEXTS, 7],
    "integer": [*NUMBERS, "7", True],
    "boolean": [True, False, "yes"],
}
_GOOD_OF_NAME: Final = {"Quantity": "1Gi", "IntOrString": 22}
_GOOD_OF_TYPE: Final[dict[str, Any]] = {"string": "ok", "integer": 1, "boolean": True}
_GOOD_DEPTH: Final = 5


def _good(schema: Schema, kind: Json, depth: int = 0, *, most: bool = False) -> Any:
    """A valid value of this kind with only the required fields. With `most`, it has as many fields as possible."""
    kind = schema.resolved(kind)
    if kind.get("name") in _GOOD_OF_NAME:
        return _GOOD_OF_NAME[kind["name"]]
    if choices := kind.get("enum"):
        return choices[0]
    inside = depth < _GOOD_DEPTH
    if kind.get("type") == "array":
        return [_good(schema, kind["items"], depth + 1, most=most)] if inside else []
    if "additionalProperties" in kind:
        return {"ok": _good(schema, kind["additionalProperties"], depth + 1)} if inside else {}
    if kind.get("type", "object") != "object":
        return _GOOD_OF_TYPE[kind["type"]]
    properties = kind.get("properties", {}) if inside else {}
    names = properties if most else kind.get("required", ())
    return {key: _good(schema, properties[key], depth + 1) for key in names if key in properties}


def _name(value: Any) -> str:
    return type(value).__name__
