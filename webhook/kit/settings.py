"""The base of every rule's and injection's settings."""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticKnownError

from webhook.api import duration, names


class Action(StrEnum):
    """The actions for a job with a violation, the strongest first."""

    DENY = "deny"
    WARN = "warn"
    AUDIT = "audit"
    OFF = "off"

    def at_most(self, ceiling: "Action") -> "Action":
        return max(self, ceiling, key=_STRONGEST_FIRST.index)


_STRONGEST_FIRST: Final = tuple(Action)


OFF_UNQUOTED: Final = BeforeValidator(lambda value: "off" if value is False else value)
"""For fields with the choice `off`. YAML 1.1, which kubectl uses, parses an unquoted `off` as false."""

ActionField = Annotated[Action, OFF_UNQUOTED]


_Entries = TypeVar("_Entries", bound=Iterable[str])


def valid_entries(problem_of: Callable[[str], str | None]) -> AfterValidator:
    """Rejects a list or mapping with an invalid entry or key; the message names the entry."""

    def check(entries: _Entries) -> _Entries:
        for entry in entries:
            if problem := problem_of(entry):
                raise ValueError(f'"{entry}" {problem}')
        return entries

    return AfterValidator(check)


ObjectNames = Annotated[tuple[str, ...], valid_entries(names.dns_1123_subdomain_problem)]


def _object_name(name: str) -> str:
    if name and (problem := names.dns_1123_subdomain_problem(name)):
        raise ValueError(problem)
    return name


ObjectName = Annotated[str, AfterValidator(_object_name)]
"""The name of an object; empty if there is no object."""


def _name_in_label(name: str) -> str:
    if name and (problem := names.dns_1123_subdomain_problem(name) or names.label_value_problem(name)):
        raise ValueError(problem)
    return name


NameInLabel = Annotated[str, AfterValidator(_name_in_label)]
"""The name of an object that is also a label value, like Kueue's queues; empty if there is no object."""


def _labels(labels: dict[str, str]) -> dict[str, str]:
    for key, value in labels.items():
        if problem := names.label_key_problem(key) or names.label_value_problem(value):
            raise ValueError(f'"{key}: {value}" {problem}')
    return labels


Labels = Annotated[dict[str, str], AfterValidator(_labels)]


_QUALIFIED = re.compile(r"[A-Za-z0-9.*-]+/[A-Za-z0-9._*-]+")


def _qualified(resources: tuple[str, ...]) -> tuple[str, ...]:
    for name in resources:
        if not _QUALIFIED.fullmatch(name):
            raise ValueError(f'"{name}" is not a resource name such as nvidia.com/gpu or nvidia.com/mig-*')
    return resources


ResourceNames = Annotated[tuple[str, ...], AfterValidator(_qualified)]
"""Names of extended resources. In a name, `*` matches any text."""


def _duration(value: object) -> object:
    """Gives every invalid duration a message with an example."""
    if value is None:
        return None
    accepted = "accepted: 72h, 7d or null"
    if not isinstance(value, str):
        raise ValueError(f"is not a duration; {accepted}")  # noqa: TRY004 - pydantic requires ValueError
    try:
        duration.parse(value)
    except duration.DurationError as error:
        problem = str(error) if duration.is_written_well(value) else "is not a duration"
        raise ValueError(f"{problem}; {accepted}") from None
    return value


DurationOrNone = Annotated[str | None, BeforeValidator(_duration)]
"""A duration; None means no limit."""


_NUMBERS = (int, int | None)


class Settings(BaseModel):
    """Base of all settings. Users write the fields in camelCase, and unknown fields are rejected.

    Pydantic builds the validators on first use, because building the validators of all rules takes a tenth of a second.
    Defaults alone (`model_construct`) do not need validators.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_number_is_yes(cls, value: Any, info: ValidationInfo) -> Any:
        """Rejects a Boolean for a number. pydantic would accept an unquoted `yes`, which is true in YAML, as 1."""
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation in _NUMBERS:
            raise PydanticKnownError("int_type")
        return value


class RuleSettings(Settings):
    """Settings of every rule."""

    action: ActionField = Field(Action.DENY, description="The action for a violation: deny, warn, audit or off.")

    def on(self, cluster_version: str) -> Self:
        """The settings for an API server of this version, such as v1.35."""
        return self


class WarningRuleSettings(RuleSettings):
    """Settings of a rule that only warns by default."""

    action: ActionField = Field(Action.WARN, description="The action for a violation: deny, warn, audit or off.")


class RangeRuleSettings(RuleSettings):
    """Settings of a rule with a minimum and a maximum. Each rule sets the defaults of both."""

    min: int
    max: int

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is above max ({self.max})")
        return self


class InjectionSettings(Settings):
    """Settings of every injection."""

    enabled: bool = Field(True, description="Whether the injection is used.")
    required: ActionField = Field(
        Action.OFF,
        description="The action for a job without the injected values, for example if another webhook removed them:"
        " deny, warn, audit or off. With deny, warn or audit, a job needs the values even if"
        " training.openshift.io/skip names the injection. In a cluster with Kueue, a job with an owner and a copy"
        " by MultiKueue do not need the values, if one of the policy's controllers creates them.",
    )


class UncheckedRuleSettings(RuleSettings):
    """Settings of a rule whose plug-in is broken. These settings have no effect."""

    model_config = ConfigDict(extra="allow")

    action: ActionField = Field(Action.OFF, description="The action for a violation: deny, warn, audit or off.")


class UncheckedInjectionSettings(InjectionSettings):
    """Settings of an injection whose plug-in is broken. These settings have no effect."""

    model_config = ConfigDict(extra="allow")

    enabled: bool = Field(False, description="Whether the injection is used.")
