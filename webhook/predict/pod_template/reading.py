"""Decodes jobs and templates from JSON, and finds each invalid value of a template.

msgspec decodes valid templates, but stops at the first fault of an invalid template. An invalid template is therefore
read again, value by value, with the types of `model`, so that all faults are reported at once.
"""

import re
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from webhook.api import mpijob, names, untyped
from webhook.api.crd_schema import such_as
from webhook.api.mpijob import MPIJob, MPIJobSpec, ReplicaSpec
from webhook.api.shape import decode_error
from webhook.predict.pod_template import model
from webhook.predict.pod_template.fault import Faults, Kind, shown

_NOUNS: Final[dict[type[inspect.Type], str]] = {
    inspect.StrType: "a string",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.ListType: "a list",
    inspect.DictType: "a mapping",
    inspect.StructType: "a mapping",
    inspect.LiteralType: "a string",
}
_OF_VALUES: Final[dict[type, str]] = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
    type(None): "null",
}
_NEUTRAL: Final[dict[type[inspect.Type], Any]] = {
    inspect.StrType: "",
    inspect.LiteralType: "",
    inspect.IntType: 0,
    inspect.FloatType: 0,
    inspect.BoolType: False,
}


class _ReplicaSpec(ReplicaSpec, rename="camel", gc=False):
    template: model.Template = msgspec.field(default_factory=model.Template)


class _JobSpec(MPIJobSpec, rename="camel", gc=False):
    mpi_replica_specs: dict[str, _ReplicaSpec | None] | None = None


class _Job(MPIJob, rename="camel", dict=True):
    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)


_good_job = msgspec.json.Decoder(_Job, float_hook=untyped.number)
_good_template = msgspec.json.Decoder(model.Template | None)


def decode_job(document: bytes | msgspec.Raw) -> MPIJob:
    """Like `mpijob.decode`, but the templates have `model`'s types if the API server accepts all their values."""
    try:
        return _good_job.decode(document)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return mpijob.decode(document)


def decode(template: bytes, path: str, faults: Faults) -> model.Template:
    """Decodes the template at `path`, and adds a fault for each invalid value."""
    try:
        return _good_template.decode(template) or model.Template()
    except (msgspec.ValidationError, RecursionError) as error:
        first = decode_error(error)
    reader = _Reader(faults)
    result: model.Template = reader.read(_type_of_template(), untyped.decode(template), path)
    if not faults and not reader.left_to_others:
        faults.add(f"{path}.{first.path}", first.message, "Correct it.")
    return result


@cache
def _type_of_template() -> inspect.Type:
    return inspect.type_info(model.Template)


@cache
def _in_order(kind: type) -> list[inspect.Field]:
    """The fields of a type, in the order of `model`. Fields that `model` does not narrow are last."""
    listed: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ == model.__name__:
            listed |= dict.fromkeys(base.__annotations__)
    fields = {field.name: field for field in inspect.type_info(kind).fields}  # type: ignore[attr-defined]
    return [fields[name] for name in {**listed, **fields}]


class _Reader:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.left_to_others = False

    def read(self, kind: inspect.Type, value: Any, path: str) -> Any:
        """Returns the value, with neutral values instead of invalid parts, and adds a fault for each invalid part."""
        if isinstance(kind, inspect.UnionType):
            return self._member(kind, value, path)
        if isinstance(kind, inspect.Metadata):
            # A quantity, which another rule checks.
            readable = value is None or type(value) in {str, int, float}
            # `model.Amount` does not accept floats, because msgspec needs 10 microseconds for 1e+308.
            self.left_to_others = self.left_to_others or not readable or type(value) is float
            return value if readable else ""
        return value if isinstance(kind, inspect.CustomType) else self._plain(kind, value, path)

    def _plain(self, kind: inspect.Type, value: Any, path: str) -> Any:
        if not _is_like(kind, value):
            got = _OF_VALUES.get(type(value), "this")
            self._faults.add(path, f"must be {_NOUNS[type(kind)]}, not {got}", f"Write {_NOUNS[type(kind)]}.")
            return _neutral(kind)
        match kind:
            case inspect.StructType():
                return self._struct(kind, value, path)
            case inspect.ListType():
                self._length(kind, value, path)
                return [self.read(kind.item_type, item, f"{path}[{index}]") for index, item in enumerate(value)]
            case inspect.DictType():
                return {key: self.read(kind.value_type, item, f"{path}[{shown(key)}]") for key, item in value.items()}
            case inspect.LiteralType():
                self._choice(kind, value, path)
            case inspect.StrType() if kind.min_length and not value:
                self._faults.add(path, "is empty", such_as(path), Kind.REQUIRED)
            case inspect.IntType():
                self._range(kind, value, path)
        return value

    def _member(self, union: inspect.UnionType, value: Any, path: str) -> Any:
        if value is None and union.includes_none:
            return None
        members = [member for member in union.types if not isinstance(member, inspect.NoneType)]
        if fitting := [member for member in members if _is_like(member, value)]:
            return self.read(fitting[0], value, path)
        nouns = " or ".join(_NOUNS[type(member)] for member in members)
        got = _OF_VALUES.get(type(value), "this")
        self._faults.add(path, f"must be {nouns}, not {got}", f"Write {nouns}.")
        return _neutral(union)

    def _struct(self, kind: inspect.StructType, value: dict[str, Any], path: str) -> Any:
        fields = {}
        for field in _in_order(kind.cls):
            given = value.get(field.encode_name)
            if given is not None:
                fields[field.name] = self.read(field.type, given, f"{path}.{field.encode_name}")
            elif field.required:
                # Null means missing.
                where = f"{path}.{field.encode_name}"
                self._faults.add(where, "is missing", such_as(where), Kind.REQUIRED)
                fields[field.name] = _neutral(field.type)
        return kind.cls(**fields)

    def _choice(self, kind: inspect.LiteralType, value: str | int, path: str) -> None:
        if value in kind.values:
            return
        choices = [str(choice) for choice in kind.values if choice != ""]
        fault = f'"{shown(str(value))}" is not supported'
        self._faults.add(path, fault, names.choose(str(value), choices), Kind.NOT_SUPPORTED)

    def _range(self, kind: inspect.IntType, value: int, path: str) -> None:
        amount = value if -(2**64) < value < 2**64 else "too large"
        if kind.le is not None and value > kind.le:
            octal = f"0{value}" if re.fullmatch("[0-7]{3}", str(value)) else "it in octal, as 0644"
            fix = f"Write {octal}." if kind.le == model.MOST_OF_A_MODE else f"Set it to {kind.le} or less."
            self._faults.add(path, f"is {amount}, the maximum is {kind.le}", fix)
        elif kind.ge is not None and value < kind.ge:
            self._faults.add(path, f"is {amount}, the minimum is {kind.ge}", f"Set it to {kind.ge} or more.")

    def _length(self, kind: inspect.ListType, value: list[Any], path: str) -> None:
        if kind.min_length and len(value) < kind.min_length:
            self._faults.add(path, "is empty", such_as(path), Kind.REQUIRED)
        elif kind.max_length is not None and len(value) > kind.max_length:
            fault = f"has {len(value)} entries, the maximum is {kind.max_length}"
            self._faults.add(path, fault, "Remove the rest.")


def _is_like(kind: inspect.Type, value: Any) -> bool:
    if isinstance(kind, inspect.LiteralType):
        return type(value) is type(kind.values[0])
    return _NOUNS.get(type(kind)) == _OF_VALUES.get(type(value))


def _neutral(kind: inspect.Type) -> Any:
    # Checks that compare fields need a value of the right type.
    match kind:
        case inspect.StructType():
            return kind.cls(**{field.name: _neutral(field.type) for field in kind.fields if field.required})
        case inspect.ListType():
            return []
        case inspect.DictType():
            return {}
        case inspect.UnionType():
            return None if kind.includes_none else _neutral(kind.types[0])
    return _NEUTRAL.get(type(kind))
