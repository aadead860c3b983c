"""Policy ConfigMaps become layers; where one is broken, its last good document stays in force."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from webhook import PROGRAM
from webhook.api.names import closest_name
from webhook.policy import document
from webhook.policy.document import PolicyDocument, PolicyError, PolicyFault
from webhook.policy.layers import Layer

REMEMBERED = f"{PROGRAM}-last-good"


LABEL = "training.openshift.io/mpijob-policy"
KEY = "policy.yaml"
# A policy with every setting has a few kilobytes; parsing must not hold up admission.
MAX_LENGTH = 256 * 1024

MISSING = f"is missing: it belongs under the key {KEY} of data"

State = Literal["current", "last-good", "unusable"]


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A policy ConfigMap."""

    name: str
    uid: str
    version: str
    text: str | None
    """What is under `policy.yaml`; None when that is missing."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of the ConfigMaps."""

    layers: tuple[Layer, ...] = ()
    states: Mapping[str, State] = field(default_factory=dict)
    """For each ConfigMap: its current document is in force, its last good one, or none of it."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Why it is not the current one."""
    last_good: Mapping[str, str] = field(default_factory=dict)
    """The texts to remember, for all ConfigMaps that still exist."""


def load(sources: Iterable[PolicySource], remembered: Mapping[str, str], model: type[PolicyDocument]) -> Loaded:
    """Load every ConfigMap, with the texts in `remembered` (by name) where one is broken. Never raises."""
    layers: list[Layer] = []
    states: dict[str, State] = {}
    errors: dict[str, str] = {}
    last_good: dict[str, str] = {}
    for source in sorted(sources, key=lambda each: each.name):
        for state, text in (("current", source.text), ("last-good", remembered.get(source.name))):
            try:
                layers.append(Layer(source.name, read(text, model)))
            except PolicyError as error:
                errors.setdefault(source.name, str(error))
                continue
            states[source.name] = "current" if state == "current" else "last-good"
            last_good[source.name] = text or ""
            break
        else:
            states[source.name] = "unusable"
    return Loaded(tuple(layers), states, errors, last_good)


def read_from(data: Mapping[str, object], model: type[PolicyDocument]) -> PolicyDocument:
    """The document in a ConfigMap's data; PolicyError for a broken one, or one under another key."""
    text = data.get(KEY)
    if KEY not in data and (near := closest_name(KEY, data)):
        raise PolicyError(PolicyFault("", f"{MISSING}; did you write {near} for it?"))
    if text is not None and not isinstance(text, str):
        raise PolicyError(PolicyFault("", f"must be text: write `{KEY}: |`, and the document below it, indented"))
    return read(text, model)


def read(text: str | None, model: type[PolicyDocument]) -> PolicyDocument:
    """The document in a ConfigMap's text; PolicyError for a broken one."""
    if text is None:
        raise PolicyError(PolicyFault("", MISSING))
    if len(text) > MAX_LENGTH:
        raise PolicyError(PolicyFault("", f"has {len(text):,} characters, at most {MAX_LENGTH:,} are read"))
    return document.load(text, model)
