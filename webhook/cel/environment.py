"""The CEL environment of custom rules: variables, functions, compilation and evaluation."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from webhook.cel.library import addresses, lists, quantities, regexes, semvers, urls
from webhook.cel.library.declared import LIST_OF_STRINGS, LISTS_BY_KEY, Declared, Text, Type

VARIABLES: Final = ("object", "oldObject", "request", "namespaceObject", "params", "job")
FUNCTIONS: Final[tuple[Declared, ...]] = (
    *quantities.FUNCTIONS,
    *addresses.FUNCTIONS,
    *urls.FUNCTIONS,
    *regexes.FUNCTIONS,
    *lists.FUNCTIONS,
    *semvers.FUNCTIONS,
)
STRINGS_OF_KUBERNETES: Final = 2
MAX_FAULT: Final = 300
"""Characters of a message, which may quote any value of a job."""
_TEXT_FIELD: Final = "text"
_T: Final = cel.Type
_OWN_OF_CEL: Final[Mapping[str, Any]] = {
    "bool": _T.BOOL,
    "bytes": _T.BYTES,
    "double": _T.DOUBLE,
    "duration": _T.DURATION,
    "dyn": _T.DYN,
    "int": _T.INT,
    "list": _T.List(_T.DYN),
    "map": _T.MAP,
    "null": _T.NULL,
    "string": _T.STRING,
    "timestamp": _T.TIMESTAMP,
    LIST_OF_STRINGS: _T.List(_T.STRING),
    LISTS_BY_KEY: _T.Map(_T.STRING, _T.List(_T.STRING)),
}


class ExpressionError(Exception):
    """The expression cannot be compiled, or has no value."""

    def __init__(self, why: str) -> None:
        super().__init__(why if len(why) <= MAX_FAULT else f"{why[: MAX_FAULT - 3]}...")


class Program:
    def __init__(self, source: str) -> None:
        checker, runtime = _environments()
        try:
            checked = checker.compile(source)
            self._compiled = runtime.deserialize(checked.serialize())
        except RuntimeError as error:
            raise ExpressionError(_message(error)) from None
        kind = checked.return_type()
        if kind != _T.BOOL and kind != _T.DYN:  # noqa: PLR1714 - types are not hashable
            raise ExpressionError(f"is of the type {kind.name().lower()}, and must be true or false")

    def holds(self, variables: Any) -> bool:
        """`variables` are a result of `activation`. ExpressionError if the expression has no Boolean value."""
        try:
            value = self._compiled.eval(variables)
            kind = value.type()
            if kind == _T.BOOL:
                return bool(value.value())
            fault = str(value.value()) if kind == _T.ERROR else f"is of the type {kind.name().lower()} here"
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            raise ExpressionError(_message(error)) from None
        raise ExpressionError(_without_code(fault))


@lru_cache(maxsize=1_000)  # a long compiled expression takes 100 kB
def compiled(source: str) -> Program | ExpressionError:
    try:
        return Program(source)
    except ExpressionError as error:
        return error


def activation(variables: Mapping[str, Any]) -> Any:
    """The variables in the engine's form. They can be used for any number of expressions."""
    return _environments()[1].Activation(variables)


@cache
def _environments() -> tuple[Any, Any]:
    """One environment to check types, and one to evaluate.

    The runtime does not distinguish subclasses of `Text`, so it cannot have functions that differ only in them.
    """
    pool, messages = _types()
    by_name: dict[str, list[Declared]] = {}
    for function in FUNCTIONS:
        by_name.setdefault(function.name, []).append(function)
    overloads = [(name, [*_overloads(name, declared, messages)]) for name, declared in by_name.items()]
    checked = [cel.FunctionDecl(name, [*chain.from_iterable(groups)]) for name, groups in overloads]
    run = [cel.FunctionDecl(name, [group[0] for group in groups]) for name, groups in overloads]
    return _environment(pool, checked), _environment(pool, run)


def _environment(pool: Any, functions: list[Any]) -> Any:
    return cel.NewEnv(
        pool,
        variables=dict.fromkeys(VARIABLES, _T.DYN),
        extensions=[
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(STRINGS_OF_KUBERNETES),
            cel.CelExtension("kubernetes", functions),
        ],
    )


def _types() -> tuple[Any, Mapping[str, Any]]:
    """The subclasses of `Text` as protobuf messages, the only custom types that the engine accepts from Python."""
    names = sorted({kind.type for kind in Text.__subclasses__()})
    package = names[0].partition(".")[0]
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name in names:
        message = file.message_type.add(name=name.partition(".")[2])
        message.field.add(
            name=_TEXT_FIELD,
            number=1,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool, {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names}


def _overloads(name: str, declared: list[Declared], messages: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Overloads in groups. Overloads of a group differ only in subclasses of `Text`, and share one Python function."""
    alike: dict[tuple[Any, ...], list[Declared]] = {}
    for function in declared:
        kinds = tuple(kind if isinstance(kind, str) else Text for kind in function.parameters)
        alike.setdefault((function.method, *kinds), []).append(function)
    for number, group in enumerate(alike.values()):
        work = _adapted(group, messages)
        yield [
            cel.Overload(
                f"{name}_{number}_{part}",
                _type(function.result),
                [*map(_type, function.parameters)],
                function.method,
                work,
            )
            for part, function in enumerate(group)
        ]


def _type(declared: Type) -> Any:
    return _OWN_OF_CEL[declared] if isinstance(declared, str) else _T(declared.type)


def _adapted(declared: list[Declared], messages: Mapping[str, Any]) -> Callable[..., Any]:
    """The Python function for a group of overloads. It converts messages to `Text` values and back."""
    ours = {type(message()): kind for kind in Text.__subclasses__() for message in (messages[kind.type],)}
    by_types = {
        tuple(kind for kind in function.parameters if not isinstance(kind, str)): function.work for function in declared
    }

    def adapted(*given: Any) -> Any:
        values = [value if (kind := ours.get(type(value))) is None else kind(value.text) for value in given]
        work = by_types.get(tuple(type(value) for value in values if isinstance(value, Text)))
        if work is None:
            raise TypeError("no such overload")
        result = work(*values)
        return messages[result.type](text=result.text) if isinstance(result, Text) else result

    return adapted


def _message(error: Exception) -> str:
    return _without_code(str(error) or type(error).__name__)


def _without_code(text: str) -> str:
    first = text.partition("\n")[0]
    _, code, rest = first.partition("ERROR: <input>:")
    if code:
        line, column, problem = (*rest.split(":", 2), "", "")[:3]
        position = f"column {column}" if line == "1" else f"its line {line}, column {column}"
        return f"{position}: {problem.strip().replace(' (in container ' + repr('') + ')', '')}"
    head, colon, rest = first.partition(": ")
    plain = rest if colon and head.replace("_", "").isupper() else first
    return plain.removesuffix(f" [{head}]")
