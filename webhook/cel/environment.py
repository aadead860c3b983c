"""The CEL environment of custom rules: variables, functions, compilation and evaluation."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache, partial
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from webhook.cel.library import lists, quantities
from webhook.cel.library.declared import Amount, Declared

VARIABLES: Final = ("object", "oldObject", "request", "namespaceObject", "params", "job")
STRINGS_OF_KUBERNETES: Final = 2
MAX_FAULT: Final = 300
"""Maximum number of characters of an error message. The message may quote any value of a job."""
_NANO: Final = "nano"
_T: Final = cel.Type


class ExpressionError(Exception):
    """The expression cannot be compiled, or has no value."""

    def __init__(self, why: str) -> None:
        super().__init__(why if len(why) <= MAX_FAULT else f"{why[: MAX_FAULT - 3]}...")


class Program:
    def __init__(self, source: str) -> None:
        try:
            self._compiled = _environment().compile(source)
        except RuntimeError as error:
            raise ExpressionError(_message(error)) from None
        kind = self._compiled.return_type()
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
    return _environment().Activation(variables)


@cache
def _environment() -> Any:
    pool, message = _quantity()
    by_name: dict[str, list[Declared]] = {}
    for function in (*quantities.FUNCTIONS, *lists.FUNCTIONS):
        by_name.setdefault(function.name, []).append(function)
    functions = [cel.FunctionDecl(name, [*_overloads(declared, message)]) for name, declared in by_name.items()]
    return cel.NewEnv(
        pool,
        variables=dict.fromkeys(VARIABLES, _T.DYN),
        extensions=[
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(STRINGS_OF_KUBERNETES),
            cel.CelExtension("kubernetes", functions),
        ],
    )


def _quantity() -> tuple[Any, Any]:
    """`Amount` as a protobuf message, the only kind of custom type that the engine accepts from Python."""
    package, _, name = Amount.type.partition(".")
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    file.message_type.add(name=name).field.add(
        name=_NANO,
        number=1,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING,  # the number of billionths may have more than 64 bits
        label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool, message_factory.GetMessageClass(pool.FindMessageTypeByName(Amount.type))


def _overloads(declared: list[Declared], message: Any) -> Iterator[Any]:
    for number, function in enumerate(declared):
        work = partial(_called, function.work, message)
        yield cel.Overload(f"{function.name}_{number}", function.result, [*function.parameters], function.method, work)


def _called(work: Callable[..., Any], message: Any, *arguments: Any) -> Any:
    """The result of `work`. `work` handles quantities as `Amount`, and the engine handles them as `message`."""
    quantity = type(message())
    result = work(*(Amount(int(value.nano)) if isinstance(value, quantity) else value for value in arguments))
    return message(nano=str(result.nano)) if isinstance(result, Amount) else result


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
