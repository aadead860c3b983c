"""Settings whose value a Namespace may give, in a label or an annotation of it: `max: {fromNamespaceLabel: gpus, ...}`.

In a document such a mapping stands in the place of the value. The settings themselves have its default, until
`webhook.policy.parameters` puts in what a namespace says.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, Literal, Self, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializationInfo,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails

from webhook.api import names

ANNOTATION: Final = "fromNamespaceAnnotation"
LABEL: Final = "fromNamespaceLabel"
_SOURCES: Final = frozenset({ANNOTATION, LABEL})

Kind = Literal["number", "switch", "text"]


class Parameter(BaseModel):
    """Where the value of a setting comes from, and what it is where that says nothing."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, defer_build=True)

    from_namespace_annotation: str | None = Field(None, description="An annotation of the Namespace with the value.")
    from_namespace_label: str | None = Field(None, description="A label of the Namespace with the value.")
    default: Any = Field(
        description="What holds where the Namespace does not say, says what is wrong, or is not known."
    )
    min: int | None = Field(None, description="The least number that the Namespace may say.")
    max: int | None = Field(None, description="The greatest number that the Namespace may say.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.from_namespace_annotation and self.from_namespace_label:
            raise ValueError(f"has both {ANNOTATION} and {LABEL}: keep one")
        if problem := names.label_key_problem(self.key):
            raise ValueError(f'"{self.key}" {problem}')
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min ({self.min}) is above max ({self.max})")
        return self

    @property
    def key(self) -> str:
        """Of the label or annotation."""
        return self.from_namespace_annotation or self.from_namespace_label or ""

    @property
    def source(self) -> str:
        """What a user would look for: `annotation example.com/gpus`."""
        return f"{'annotation' if self.from_namespace_annotation else 'label'} {self.key}"

    @property
    def written(self) -> dict[str, Any]:
        """As it stands in a document."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


_ACCEPTED: Final = tuple(str(field.alias) for field in Parameter.model_fields.values())


def kind_of(annotation: Any) -> Kind | None:  # noqa: PLR0911 - one for each form of a type
    """What kind of value a setting of this type has; None for lists, mappings, and what else no label can hold."""
    if get_origin(annotation) is Annotated:
        return kind_of(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        kinds = {kind_of(each) for each in get_args(annotation) if each is not type(None)}
        return kinds.pop() if len(kinds) == 1 else None
    if get_origin(annotation) is Literal:
        return "text" if all(isinstance(each, str) for each in get_args(annotation)) else None
    if not isinstance(annotation, type):
        return None
    if issubclass(annotation, bool):
        return "switch"
    if issubclass(annotation, int):
        return "number"
    return "text" if issubclass(annotation, str) and (annotation is str or issubclass(annotation, Enum)) else None


class Parameterised(BaseModel):
    """Settings of which those with a single value may come from the Namespace."""

    model_config = ConfigDict(defer_build=True)

    _parameters: dict[str, Parameter] = PrivateAttr(default_factory=dict)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """By the name of the setting as it is written."""
        return self._parameters

    @classmethod
    def kinds(cls) -> dict[str, Kind]:
        """Which settings may come from the Namespace, by their names as they are written."""
        found = {field.alias or name: kind_of(field.annotation) for name, field in cls.model_fields.items()}
        return {name: kind for name, kind in found.items() if kind}

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        written = data if isinstance(data, dict) else {}
        mentioned = [name for name, each in written.items() if isinstance(each, dict) and each.keys() & _SOURCES]
        if not mentioned or cls.model_config.get("extra") == "allow":  # those of a broken plug-in: any value will do
            return handler(data)
        kinds = cls.kinds()
        found = {name: _parameter(cls, name, written[name], kinds.get(name)) for name in mentioned}
        try:
            settings = handler({**written, **{name: parameter.default for name, parameter in found.items()}})
        except ValidationError as error:
            raise _moved(error, lambda at: (at[0], "default", *at[1:]) if at and at[0] in found else at) from None
        settings._parameters.update(found)  # noqa: SLF001 - it is of this class
        return settings

    @model_serializer(mode="wrap")
    def _written(self, handler: Callable[[Any], dict[str, Any]], info: SerializationInfo) -> dict[str, Any]:
        values = handler(self)
        for name, field in type(self).model_fields.items():
            parameter = self._parameters.get(field.alias or name)
            key = (field.alias or name) if info.by_alias else name
            if parameter is not None and key in values:
                values[key] = parameter.written
        return values


def _parameter(cls: type[BaseModel], name: str, value: dict[str, Any], kind: Kind | None) -> Parameter:
    """The parameter in the place of the setting `name`; ValidationError with its place."""
    if unknown := next((key for key in value if key not in _ACCEPTED), None):
        raise _fault(
            cls, (name, str(unknown)), f"is not a part of a value from the Namespace: {', '.join(_ACCEPTED)} are"
        )
    try:
        parameter = Parameter.model_validate(value)
    except ValidationError as error:
        raise _moved(error, lambda at: (name, *at)) from None
    if kind is None:
        raise _fault(cls, (name,), "takes no value from the Namespace: only a number, true or false, or a text does")
    bounds = {"min": parameter.min, "max": parameter.max}
    if kind != "number" and (bound := next((each for each, number in bounds.items() if number is not None), "")):
        raise _fault(cls, (name, bound), "bounds a number, which this setting is not")
    if problem := beyond(parameter, parameter.default):
        raise _fault(cls, (name, "default"), problem)
    return parameter


def beyond(parameter: Parameter, value: object) -> str:
    """What is wrong with a value that is not within the parameter's bounds, else empty."""
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    if parameter.min is not None and value < parameter.min:
        return f"must be at least {parameter.min}"
    if parameter.max is not None and value > parameter.max:
        return f"must be at most {parameter.max}"
    return ""


def _moved(error: ValidationError, to: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> ValidationError:
    """The same faults in other places."""
    details = [
        InitErrorDetails(type=each["type"], loc=to(each["loc"]), input=each["input"], ctx=each.get("ctx", {}))
        for each in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data(error.title, details)


def _fault(cls: type[BaseModel], location: tuple[str, ...], text: str) -> ValidationError:
    detail = InitErrorDetails(type="value_error", loc=location, input=None, ctx={"error": ValueError(text)})
    return ValidationError.from_exception_data(cls.__name__, [detail])
