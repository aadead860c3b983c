"""Merges the policy documents of a namespace into one document, and records the source of every value.

The defaults come first, then the documents that select the namespace, by ascending priority and then by name. A later
value of a setting replaces an earlier value. It replaces a list or a mapping of labels as a whole. Exemptions, custom
rules and params are combined. If two custom rules or params have the same name, the later one is used.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from pydantic import ValidationError

from webhook.api.labels import Requirement
from webhook.policy import custom_rules, faults
from webhook.policy.document import PolicyDocument

DEFAULTS = "built-in default"
# Fields that decide where a document applies and when it wins. The merged document does not have them.
OWN = frozenset({"apiVersion", "kind", "priority", "namespaces"})


DIGITS = 12
"""Characters of a digest in messages."""


def digest_of(text: str) -> str:
    """The SHA-256 of a document's text in hexadecimal, like the output of `sha256sum` for `policy.yaml`."""
    return sha256(text.encode()).hexdigest()


class Layer(msgspec.Struct, frozen=True):
    """A policy document and its source: the name of its ConfigMap, or a file."""

    name: str
    document: PolicyDocument
    version: str = ""
    """The ConfigMap's resourceVersion; empty for a file."""
    digest: str = ""
    """The result of `digest_of`."""

    @property
    def identity(self) -> str:
        """The document and its version, for logs. Documents with the same text have the same digest."""
        version = f"@{self.version}" if self.version else ""
        return f"{self.name}{version} sha256:{self.digest[:DIGITS]}"

    def selects(self, labels: Mapping[str, str] | None) -> bool:
        """Whether the document applies to a namespace with these labels. `labels` is None if they are unknown."""
        selector = self.document.selector
        return selector is None or (labels is not None and selector.matches(labels))


class Effective(msgspec.Struct, frozen=True):
    document: PolicyDocument
    sources: Mapping[str, str]
    """The source layer of each value that is not a default, by path (`rules.gpus.max`)."""
    dropped: tuple[tuple[str, str], ...] = ()
    """(layer, reason) for documents that were left out because the result would be invalid."""


def in_order(layers: Iterable[Layer]) -> list[Layer]:
    """The layers by ascending priority, then by name."""
    return sorted(layers, key=lambda layer: (layer.document.priority, layer.name))


def ties(layers: Sequence[Layer]) -> list[tuple[str, str, str]]:
    """(layer, layer, path) for values that documents of equal priority set differently. The second layer wins."""
    conflicts = []
    ordered = in_order(layers)
    for index, first in enumerate(ordered):
        for second in ordered[index + 1 :]:
            if first.document.priority != second.document.priority:
                break
            mine, theirs = (dict(leaves(written(layer.document))) for layer in (first, second))
            both = [path for path in mine if path in theirs]
            conflicts += [(first.name, second.name, path) for path in both if mine[path] != theirs[path]]
    return conflicts


def merge(layers: Sequence[Layer], model: type[PolicyDocument]) -> Effective:
    """The merged document of `layers`, which are sorted and select the namespace.

    Two valid documents may contradict each other: `min` of one may exceed `max` of the other. The later document is
    then left out.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    dropped: list[tuple[str, str]] = []
    document = model.model_construct()
    for layer in layers:
        ours = written(layer.document)
        candidate = _over(values, ours)
        try:
            document = model.model_validate(candidate)
        except ValidationError as error:
            reasons, _ = faults.first(error, model)
            dropped.append((layer.name, "; ".join(reason for _, reason in reasons)))
            continue
        values = candidate
        sources.update((path, layer.name) for path, _ in leaves(ours))
    return Effective(document, sources, tuple(dropped))


def written(document: PolicyDocument) -> dict[str, Any]:
    """The values that the document sets, without defaults and without the fields in OWN."""
    values = document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {key: value for key, value in values.items() if key not in OWN}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        if key == "exemptions":
            merged[key] = [*below.get(key, []), *value]
        elif key in {"rules", "injections"}:
            settings = dict(below.get(key, {}))
            for entry, changes in value.items():
                if isinstance(changes, list):
                    settings[entry] = custom_rules.merged(settings.get(entry, []), changes)
                else:
                    settings[entry] = {**settings.get(entry, {}), **changes}
            merged[key] = settings
        elif key == "params":
            merged[key] = {**below.get(key, {}), **value}
        else:
            merged[key] = value
    return merged


def leaves(values: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in values.items():
        if key in {"rules", "injections"}:
            for entry, settings in value.items():
                if isinstance(settings, list):
                    yield from ((f"{key}.{entry}[{rule['id']}]", rule) for rule in settings)
                else:
                    yield from ((f"{key}.{entry}.{name}", setting) for name, setting in settings.items())
        elif key == "params":
            yield from ((f"{key}.{name}", param) for name, param in value.items())
        elif key != "exemptions":
            yield key, value


def may_meet(first: Layer, second: Layer) -> bool:
    """Whether a namespace can match both selectors; True if uncertain."""
    by_key: dict[str, list[Requirement]] = defaultdict(list)
    for layer in (first, second):
        selector = layer.document.selector
        for requirement in (selector.requirements or ()) if selector is not None else ():
            by_key[requirement.key].append(requirement)
    return all(map(_can_hold, by_key.values()))


def _can_hold(requirements: Sequence[Requirement]) -> bool:
    positive = [requirement for requirement in requirements if requirement.positive]
    if any(not requirement.positive and requirement.values is None for requirement in requirements):
        return not positive
    choices = [requirement.values for requirement in positive if requirement.values is not None]
    if not choices:
        return True
    excluded = frozenset[str]().union(*(r.values or () for r in requirements if not r.positive))
    return bool(frozenset.intersection(*choices) - excluded)
