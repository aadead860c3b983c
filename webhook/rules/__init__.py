"""The rules. Each rule has its own module, which is loaded automatically.

A rule has an id, settings, and one pure function. The docstring of a rule's module is its documentation for users; the
first line is the summary. A rule reads the job with the operator's defaults and yields violations. The policy decides
which violations reject the job. A rule does not depend on the webhook's own changes to jobs (injections) or on the
results of other rules.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from webhook.api.mpijob import MPIJob
from webhook.cluster.resources.reservations import Reservation
from webhook.kit.advice_bounds import ANYTHING, Admitted
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.registry import Registry, documentation
from webhook.kit.settings import Action, RuleSettings


class CauseReason(StrEnum):
    """Kubernetes' CauseType (apimachinery `meta/v1/types.go`)."""

    INVALID = "FieldValueInvalid"
    REQUIRED = "FieldValueRequired"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"


class Degree(msgspec.Struct, frozen=True):
    """How bad a fault is. An update that makes the fault smaller is admitted."""

    of: str
    """Identifies the fault within the rule, before and after an update."""
    amount: int | frozenset[str] | Mapping[str, int]
    """The excess over a limit, the wrong values, or the excess over each of several limits."""

    def is_within(self, other: "Degree") -> bool:
        if isinstance(self.amount, frozenset):
            return isinstance(other.amount, frozenset) and self.amount <= other.amount
        if isinstance(self.amount, Mapping):
            bounds = other.amount if isinstance(other.amount, Mapping) else {}
            return all(key in bounds and amount <= bounds[key] for key, amount in self.amount.items())
        return isinstance(other.amount, int) and self.amount <= other.amount


@dataclass(frozen=True, slots=True)
class Violation:
    """A fault of a job, its field, and the fix."""

    path: str
    """The field in the user's YAML."""
    message: str
    fix: str
    reason: CauseReason = CauseReason.INVALID
    advisory: bool = False
    """True if the fault is likely but not certain. It then leads to a warning at most, whatever the rule's action."""
    audit_only: bool = False
    """True if the violation appears only in the audit log; the user does not see it."""
    of_lines: bool = False
    """True if the rule breaks message and fix into lines. If False, a line break can only come from the user's text."""
    degree: Degree | None = field(default=None, compare=False)
    """If None, two violations are the same fault only if their texts are equal."""
    follows: str = field(default="", compare=False)
    """The path of a field, or empty. If another rule reports this field, that rule's fix also fixes this violation."""

    @property
    def ceiling(self) -> Action:
        """The strictest action that this violation can trigger."""
        if self.audit_only:
            return Action.AUDIT
        return Action.WARN if self.advisory else Action.DENY


S = TypeVar("S", bound=RuleSettings)
Check = Callable[[MPIJob, S, Context], Iterator[Violation]]


def not_allowed(path: str, value: str, allowed: Sequence[str], *, default: str) -> Violation:
    """`default` is the operator's default."""
    return Violation(
        path,
        f'"{value}" is not allowed here (the default is "{default}")',
        fix=f"Use one of {', '.join(allowed)}.",
        reason=CauseReason.NOT_SUPPORTED,
    )


def shortened(text: str, limit: int = 100) -> str:
    """The text, cut to `limit` characters for a message."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def number_of(count: int, noun: str) -> str:
    """`1 GPU`, `2 GPUs`"""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def first_of(texts: Sequence[str], limit: int) -> str:
    """A list of up to `limit` texts for a message, with `...` for the others."""
    return ", ".join(texts[:limit]) + (", ..." if len(texts) > limit else "")


class Rule(msgspec.Struct, frozen=True):
    """A registered rule; `check` sees the job with the operator's defaults applied and must not change it."""

    id: str
    settings: type[RuleSettings]
    check: Callable[[MPIJob, Any, Context], Iterator[Violation]]
    since: str
    admits: Callable[[Any], Admitted] = lambda _: ANYTHING
    """The numbers of workers, accelerators and slots that the rule admits."""
    importance: Importance = Importance.HARMS
    reserves: Callable[[MPIJob, Context], Reservation | None] | None = None
    """Returns the job's use of the quotas that the rule checks. It is called only if the policy lets the rule
    reject jobs.
    """
    plugin: str = ""
    """The plug-in with the rule; empty for a rule of this package."""

    @property
    def documentation(self) -> tuple[str, str]:
        """(summary, explanation) from the docstring of the rule's module."""
        return documentation(self.check.__module__)


REGISTRY: Registry[Rule] = Registry(__name__)


def rule(
    rule_id: str,
    settings: type[S],
    *,
    since: str,
    admits: Callable[[S], Admitted] = lambda _: ANYTHING,
    importance: Importance = Importance.HARMS,
    reserves: Callable[[MPIJob, Context], Reservation | None] | None = None,
) -> Callable[[Check[S]], Check[S]]:
    """Register the decorated function as the rule `rule_id`, which exists since version `since`.

    `admits` returns the rule's limits for workers, accelerators and slots: other rules suggest only sizes within them.
    """

    def register(check: Check[S]) -> Check[S]:
        entry = Rule(rule_id, settings, check, since, admits=admits, importance=importance, reserves=reserves)
        REGISTRY.declare(check, entry)
        return check

    return register
