"""How documents, values and exemptions are put into words."""

from datetime import date, datetime
from typing import Any

from webhook.api import yaml
from webhook.policy.document import PolicyDocument
from webhook.policy.exemptions import EVERY_RULE, Exemption
from webhook.policy.staging import Stage


def selection(document: PolicyDocument) -> str:
    """The namespaces that a document is for."""
    return "for all namespaces" if document.namespaces is None else f"for namespaces {inline(document.namespaces)}"


def inline(value: Any) -> str:
    """A value as YAML on one line; a word needs no quotes here, not even `off`."""
    return value if isinstance(value, str) and value.isidentifier() else yaml.dump_inline(value)


def stage_in_words(stage: Stage, namespace: str, now: datetime) -> str:
    """What only warns until when, or where, and what that means for a namespace."""
    whom = "the mode" if stage.rules is None else ", ".join(sorted(stage.rules))
    when = f" {'since' if stage.has_come(now) else 'from'} {stage.written}{'' if stage.has_come(now) else ' on'}"
    told = f"{whom}, by {stage.policy}: enforced{when if stage.written else ''}"
    if stage.share is None:
        return told
    drawn = "one of them" if stage.includes(namespace) else f"not one of them, and stays with {stage.until}"
    return f"{told} in {stage.share} % of the namespaces; {namespace} is {drawn}"


def exemption_in_words(exemption: Exemption, today: date) -> str:
    """Who need not follow what, until when, and why."""
    what = "every rule" if EVERY_RULE in exemption.rules else ", ".join(exemption.rules)
    whom = [
        f"{kind} {', '.join(names)}"
        for kind, names in (
            ("namespaces", exemption.namespaces),
            ("users", exemption.users),
            ("groups", exemption.groups),
            ("service accounts", exemption.service_accounts),
        )
        if names
    ]
    until = ""
    if exemption.expires is not None:
        until = f", {'ended on' if exemption.expired(today) else 'until'} {exemption.expires}"
    return f"from {what} for {'; '.join(whom)}{until}: {exemption.reason}"
