"""Describes documents, values and exemptions in words."""

from datetime import date
from typing import Any

from webhook.api import yaml
from webhook.policy.document import PolicyDocument
from webhook.policy.exemptions import EVERY_RULE, Exemption


def selection(document: PolicyDocument) -> str:
    return "for all namespaces" if document.namespaces is None else f"for namespaces {inline(document.namespaces)}"


def inline(value: Any) -> str:
    """A value as YAML on one line. Words such as `off` are not quoted."""
    return value if isinstance(value, str) and value.isidentifier() else yaml.dump_inline(value)


def exemption_in_words(exemption: Exemption, today: date) -> str:
    rules = "every rule" if EVERY_RULE in exemption.rules else ", ".join(exemption.rules)
    subjects = [
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
    return f"from {rules} for {'; '.join(subjects)}{until}: {exemption.reason}"
