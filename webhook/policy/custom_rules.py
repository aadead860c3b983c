"""Custom rules: entries of `rules.custom` in a policy document, compiled into ordinary rules."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from webhook.api import names
from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.custom_rules import Expression, Outcome, full_id
from webhook.kit.settings import Action, RuleSettings
from webhook.policy.limits import MAX_CUSTOM_RULES, MAX_EXPRESSION_CHARACTERS, MAX_RULE_TEXT_CHARACTERS
from webhook.rules import Rule, Violation, shortened

# Raw strings are matched first, because a backslash in them is an ordinary character.
_NOT_CODE: Final = re.compile(
    r"""[rR][bB]?(?:'{3}.*?'{3}|"{3}.*?"{3}|'[^'\n]*'|"[^"\n]*")"""
    r"""|'{3}(?:\\.|[^\\])*?'{3}|"{3}(?:\\.|[^\\])*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|//[^\n]*""",
    re.DOTALL,
)


def _at_most(limit: int) -> AfterValidator:
    def check(text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        if len(text) > limit:
            raise ValueError(f"has {len(text):,} characters, the maximum is {limit:,}")
        return text

    return AfterValidator(check)


def _name(own_id: str) -> str:
    if problem := names.dns_1123_label_problem(own_id):
        raise ValueError(problem)
    if len(own_id) > 40:
        raise ValueError(f"has {len(own_id)} characters, the maximum is 40")
    return own_id


Source = Annotated[str, _at_most(MAX_EXPRESSION_CHARACTERS)]
Text = Annotated[str, _at_most(MAX_RULE_TEXT_CHARACTERS)]


class CustomRule(RuleSettings):
    """A custom rule, written in CEL in the policy document."""

    id: Annotated[str, AfterValidator(_name)] = Field(
        description="The name of the rule; messages, metrics and exemptions use custom/ID."
        " If several documents define a rule of the same name, the document with the higher priority wins.",
    )
    match: Source | None = Field(
        None,
        description="CEL: the jobs to which the rule applies, such as `object.metadata.name.startsWith('big-')`;"
        " absent for all.",
    )
    expression: Source | None = Field(
        None, description="CEL that is true for every valid job. Required, unless the action is off."
    )
    message: Text | None = Field(
        None, description="The problem, for jobs for which the expression is false. Required, unless the action is off."
    )
    fix: Text | None = Field(None, description="The fix for the user. If it is absent, the expression is shown.")
    field: Text = Field("spec", description="The field of the job in the message, as users write it.")
    on_error: Literal["skip", "deny"] = Field(
        "skip",
        description="What happens to a job if the rule cannot be evaluated, because a field is missing or the rule"
        " takes too long: skip admits the job and informs the administrator, deny reports a violation.",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.action is not Action.OFF:
            for name in ("expression", "message"):
                if getattr(self, name) is None:
                    raise ValueError(f"has no {name}: only a rule with action off needs none")
        return self

    @cached_property
    def to_evaluate(self) -> Expression:
        source, match = self.expression or "true", self.match or ""
        of_change = any(mentions(text, name) for text in (source, match) for name in ("oldObject", "request"))
        return Expression(source, match, of_change)

    @cached_property
    def needs_namespace(self) -> bool:
        return any(mentions(text, "namespaceObject") for text in (self.expression or "", self.match or ""))

    @cached_property
    def needs_user(self) -> bool:
        sources = (self.expression or "", self.match or "")
        return any(mentions(source, "request") and "userInfo" in source for source in sources)

    @property
    def advice(self) -> str:
        return self.fix or f"This must be true: {shortened(' '.join((self.expression or '').split()), 200)}"


def mentions(source: str, variable: str) -> bool:
    return re.search(rf"(?<!\w)(?<!\.)(?<!\.\?){variable}\b", _NOT_CODE.sub("''", source)) is not None


def check(_job: MPIJob, settings: CustomRule, ctx: Context) -> Iterator[Violation]:
    outcome = ctx.custom_rules.get(settings.id, Outcome())
    if outcome.too_large:  # also with `onError: skip`: a user could otherwise avoid the rule by a larger job
        fix = "Use fewer variables, labels and so on, and shorter texts."
        yield Violation("spec", outcome.too_large, fix=fix)
    elif outcome.fault:
        if settings.on_error == "deny":
            why = shortened(outcome.fault, 120)
            fix = "Ask your administrator: the policy rejects such jobs."
            yield Violation(settings.field, f"the rule could not be evaluated ({why})", fix=fix)
    elif not outcome.holds:
        yield Violation(settings.field, (settings.message or "").rstrip(" ."), fix=settings.advice)


def compiled(settings: CustomRule) -> Rule:
    return Rule(id=full_id(settings.id), settings=CustomRule, check=check, since="")


def merged(below: list[dict[str, Any]], above: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rules of both lists. A rule of `above` replaces a rule of `below` with the same id."""
    return [*({rule["id"]: rule for rule in (*below, *above)}.values())]


def each_once(rules: tuple[CustomRule, ...]) -> tuple[CustomRule, ...]:
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise ValueError(f'two rules are called "{rule.id}"')
        seen.add(rule.id)
    return rules


CustomRules = Annotated[
    tuple[CustomRule, ...], AfterValidator(each_once), Field(json_schema_extra={"maxItems": MAX_CUSTOM_RULES})
]
"""Editors use the maximum in this type. `webhook.policy.document` enforces it for each document."""
