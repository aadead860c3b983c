"""The base of every rule's and injection's settings."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Action(StrEnum):
    """What a violation leads to, from strongest to weakest."""

    DENY = "deny"
    WARN = "warn"
    AUDIT = "audit"
    OFF = "off"

    def at_most(self, ceiling: "Action") -> "Action":
        """This action, weakened to `ceiling` where it is stronger."""
        order = list(Action)
        return max(self, ceiling, key=order.index)


class Settings(BaseModel):
    """Settings are frozen, written in camelCase, and refuse what they do not know."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class RuleSettings(Settings):
    """What every rule has."""

    action: Action = Field(Action.DENY, description="What a violation leads to: deny, warn, audit or off.")


class InjectionSettings(Settings):
    """What every injection has."""

    enabled: bool = Field(True, description="Whether anything is put in.")
