"""Checks the custom rules of a document by the outcomes of their trial (`webhook.cel.trial`)."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from webhook.kit.custom_rules import PREFIX, Outcome
from webhook.kit.settings import Action
from webhook.policy.document import PolicyDocument, PolicyFault, faults_at
from webhook.policy.faults import Location

# An error message with one of these parts occurs for every job.
_ALWAYS: Final = ("no matching overload", "is of the type")


class Checked(NamedTuple):
    faults: tuple[PolicyFault, ...] = ()
    """Reasons to reject the document."""
    notes: tuple[str, ...] = ()
    """Possible mistakes."""


def sources(document: PolicyDocument) -> list[str]:
    """The expressions of the document's custom rules, in the order of `check`."""
    return [source for _, source in _places(document)]


def check(document: PolicyDocument, text: str, outcomes: Sequence[Outcome]) -> Checked:
    """Problems of the custom rules in the document. `text` is its YAML.

    `outcomes` are the trial's outcomes for `sources`. An expression can end the trial, so outcomes may be missing at
    the end.
    """
    faults: list[tuple[Location, str]] = []
    notes: list[str] = []
    for ((index, name), _), outcome in zip(_places(document), outcomes, strict=False):
        if outcome.written_wrong or any(sign in outcome.fault.lower() for sign in _ALWAYS):
            faults.append((("rules", PREFIX, index, name), outcome.fault))
        elif outcome.fault:
            rule = document.custom_rules[index]
            leads_to = "such a job is rejected" if rule.on_error == "deny" else "such a job is admitted"
            notes.append(f"rules.{PREFIX}[{index}].{name}: no value for a usual job, {leads_to}: {outcome.fault}")
    return Checked(tuple(faults_at(faults, text)), tuple(notes))


def _places(document: PolicyDocument) -> Iterator[tuple[tuple[int, str], str]]:
    """((index of the rule, setting), source) of each expression."""
    for index, rule in enumerate(document.custom_rules):
        if rule.action is not Action.OFF:
            for name, source in (("match", rule.match), ("expression", rule.expression)):
                if source is not None:
                    yield (index, name), source
