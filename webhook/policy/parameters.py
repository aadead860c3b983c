"""What a Namespace says of the settings that a policy leaves to it: resolved once for each of its values.

A wrong value counts for nothing: the policy's default holds, and whoever creates a job there is told, as somebody who
can have it mended. Of a namespace that is not known nothing is certain.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec
from pydantic import ValidationError

from webhook import injections, rules
from webhook.api.text import visible
from webhook.cluster.resources.namespaces import LONGEST_ANNOTATION, Namespace
from webhook.kit.parameters import Kind, Parameter, Parameterised, beyond
from webhook.policy import faults
from webhook.policy.document import PolicyDocument, attribute

Said = tuple[str | None, ...]
"""What a namespace says, for each setting that it is asked for."""
Section = Literal["rules", "injections"]

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,9}")
_SWITCH: Final = {"true": True, "false": False}


class Asked(msgspec.Struct, frozen=True):
    """A setting that a policy leaves to the Namespace."""

    section: Section
    entry: str
    """The id of the rule or injection."""
    name: str
    """Of the setting, as it is written."""
    parameter: Parameter

    @property
    def path(self) -> str:
        """As in `layers.Effective.sources`."""
        return f"{self.section}.{self.entry}.{self.name}"

    def text(self, namespace: Namespace) -> str | None:
        """What the namespace says, None where it says nothing."""
        values = namespace.annotations if self.parameter.from_namespace_annotation else namespace.labels
        return values.get(self.parameter.key)


class Wrong(msgspec.Struct, frozen=True):
    """A namespace says what cannot be used."""

    asked: Asked
    reason: str

    @property
    def message(self) -> str:
        """For whoever creates a job there."""
        default = self.asked.parameter.default
        shown = str(default).lower() if isinstance(default, bool) else "no limit" if default is None else default
        return visible(f"its {self.asked.parameter.source} {self.reason}: {self.asked.name} is {shown}")


FIX: Final = "Ask whoever administers the namespace to correct it."


def asked_by(document: PolicyDocument) -> Iterator[Asked]:
    """The settings that a document leaves to the Namespace."""
    for rule in rules.REGISTRY:
        for name, parameter in document.settings_of_rule(rule).parameters.items():
            yield Asked("rules", rule, name, parameter)
    for injection in injections.REGISTRY:
        for name, parameter in document.settings_of_injection(injection).parameters.items():
            yield Asked("injections", injection, name, parameter)


def with_values(
    document: PolicyDocument, said: Sequence[tuple[Asked, str | None]]
) -> tuple[PolicyDocument, list[Wrong]]:
    """`document` with what a namespace says for each parameter, and what of that cannot be used."""
    if not said:
        return document, []
    by_entry: dict[tuple[Section, str], list[tuple[Asked, str | None]]] = {}
    for asked, text in said:
        by_entry.setdefault((asked.section, asked.entry), []).append((asked, text))
    changed: dict[str, dict[str, Any]] = {"rules": {}, "injections": {}}
    wrong: list[Wrong] = []
    for (section, entry), values in by_entry.items():
        of_rule = section == "rules"
        settings = document.settings_of_rule(entry) if of_rule else document.settings_of_injection(entry)
        changed[section][attribute(entry)], found = resolve(settings, values)
        wrong += found
    sections = {name: getattr(document, name).model_copy(update=settings) for name, settings in changed.items()}
    return document.model_copy(update=sections), wrong


def resolve(settings: Parameterised, said: list[tuple[Asked, str | None]]) -> tuple[Parameterised, list[Wrong]]:
    """`settings` with what the namespace says in them, one after the other: what does not fit is left out."""
    model = type(settings)
    kinds = model.kinds()
    written = settings.model_dump(mode="json", by_alias=True, exclude_unset=True)
    written |= {asked.name: asked.parameter.default for asked, _ in said}
    wrong = []
    for asked, text in said:
        if text is None:
            continue
        try:
            value = _value(text, kinds[asked.name], asked.parameter)
            model.model_validate({**written, asked.name: value})
        except ValidationError as error:
            wrong.append(Wrong(asked, "; ".join(reason for _, reason in faults.of(error, model))))
        except ValueError as error:
            wrong.append(Wrong(asked, f"{error} (it is {_shown(text)})"))
        else:
            written[asked.name] = value
    return model.model_validate(written), wrong


def _value(text: str, kind: Kind, parameter: Parameter) -> bool | int | str:
    """The value in `text`; ValueError that says what it must be."""
    text = text.strip()
    if len(text) > LONGEST_ANNOTATION:
        raise ValueError(f"must have at most {LONGEST_ANNOTATION} characters")
    if kind == "switch":
        if text not in _SWITCH:
            raise ValueError("must be true or false")
        return _SWITCH[text]
    if kind == "text":
        return text
    if not _NUMBER.fullmatch(text):
        raise ValueError("must be a whole number")
    if problem := beyond(parameter, int(text)):
        raise ValueError(problem)
    return int(text)


def _shown(text: str) -> str:
    return f'"{text}"' if len(text) <= 40 else f'"{text[:37]}..."'
