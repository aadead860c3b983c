"""Stages of a roll-out: what only warns until a day, or outside of a share of the namespaces, and denies after it.

Which namespaces are in a share follows from their names and the name of the policy, so every replica and every command
draws the same ones, and a larger share has all those of the smaller.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from webhook.api import moment
from webhook.kit.settings import Action, Settings
from webhook.policy.exemptions import names_rule

ALL: Final = 100
"""Percent."""


def _moment(value: Any) -> Any:
    if value is None:
        return None
    try:
        moment.parse(str(value))
    except moment.MomentError as error:
        raise ValueError(str(error)) from None
    return str(value)


MomentOrNone = Annotated[str | None, BeforeValidator(_moment)]
"""A day, which begins in UTC, or a time with its zone."""


class StagedRules(Settings):
    """Rules that do not deny yet, or not everywhere."""

    rules: tuple[str, ...] = Field(min_length=1, description='Ids of rules, or "*" for all of them.')
    until: Literal["warn", "audit"] = Field("warn", description="What their violations lead to at most until then.")
    enforce_from: MomentOrNone = Field(
        None, description="When that ends: a day such as 2027-02-01, which begins in UTC, or 2027-02-01T08:00:00+01:00."
    )
    enforce_share: int | None = Field(
        None, ge=0, le=ALL, description="In how many percent of the namespaces it ends; in the others it does not."
    )

    @model_validator(mode="after")
    def _ends(self) -> "StagedRules":
        if self.enforce_from is None and self.enforce_share is None:
            raise ValueError("needs enforceFrom or enforceShare: without one it would never end")
        return self


@dataclass(frozen=True, slots=True)
class Stage:
    """A ceiling on rules that ends on a day, or in a share of the namespaces, or both."""

    policy: str
    """The policy that it stands in."""
    rules: frozenset[str] | None
    """None for all of them, and for all else that a mode is a ceiling on."""
    until: Action
    """The ceiling."""
    written: str
    """When it ends, as it stands in the policy; empty where no day is given."""
    share: int | None
    """In how many percent of the namespaces it ends; None for all of them."""

    @property
    def since(self) -> datetime | None:
        """When it ends; None where no day is given."""
        return moment.parse(self.written) if self.written else None

    def concerns(self, rule_id: str) -> bool:
        """Whether it is a ceiling on this rule."""
        return self.rules is None or names_rule(self.rules, rule_id)

    def has_come(self, now: datetime | None) -> bool:
        """Whether its day has come; `now` is None for before all days."""
        return not self.written or (now is not None and moment.parse(self.written) <= now)

    def includes(self, namespace: str) -> bool:
        """Whether a namespace is in the share; one whose name is not known is in none but the whole."""
        if self.share is None or self.share == ALL:
            return True
        return bool(namespace) and position(self.policy, namespace) * ALL < self.share << 64


def position(policy: str, namespace: str) -> int:
    """Where the namespace stands among all, as a part of 2**64: in a share are those below it."""
    return int.from_bytes(sha256(f"{policy}/{namespace}".encode()).digest()[:8])


def of_mode(policy: str, mode: str, enforce_from: str | None, share: int | None) -> Iterator[Stage]:
    """The stage that a mode is, where it is one."""
    if enforce_from is not None or share is not None:
        yield Stage(policy, None, Action(mode), enforce_from or "", share)


def of_rules(policy: str, staged: Iterable[StagedRules]) -> Iterator[Stage]:
    """The stages of rules that a policy lists."""
    for each in staged:
        yield Stage(policy, frozenset(each.rules), Action(each.until), each.enforce_from or "", each.enforce_share)


def ceiling(rule_id: str, stages: Iterable[Stage]) -> Action:
    """What `stages`, none of which has ended, let the rule do at most."""
    found = Action.DENY
    for stage in stages:
        if stage.concerns(rule_id):
            found = found.at_most(stage.until)
    return found


def ends(rule_id: str, stages: Sequence[Stage]) -> str:
    """When the last of `stages` ends that concern the rule, as it is written; empty where none does."""
    days = [stage.written for stage in stages if stage.written and stage.concerns(rule_id)]
    return max(days, key=moment.parse, default="")
