"""Which optional parts there are, and what each may add to the core.

The core reads this alone, and has a part's modules imported when it needs them: "package.module:name" is the name in
that module. A part imports what it likes of the core.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final

NAMES: Final = ("job_metrics", "network_policies", "standing_audit", "older_versions", "sagemaker", "playground", "why")
"""In the order in which `serve --help` shows their options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHook:
    """Reviews that a part answers."""

    name: str
    """In metrics and in the log."""
    path: str
    option: str = ""
    """The option of `serve` without which the path does not exist; empty for one that always does."""
    off: str = ""
    """Why it does not."""
    answer: str = ""
    """Makes the reply of the request and the telemetry."""


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Some rights in all namespaces."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComponentRights:
    """A component of manifests/components that adds an option of `serve`, and the rights that the option needs."""

    component: str
    """Its ClusterRole is called after it."""
    option: str
    without: str
    """What happens without the rights."""
    rules: tuple[RoleRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a part adds."""

    commands: Mapping[str, str] = field(default_factory=dict)
    """Commands of `mpijob-webhook`, and where each is."""
    conversions: Mapping[str, str] = field(default_factory=dict)
    """Commands of `mpijob-webhook convert`, and where each is."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of `serve` that switch it on, and the help of each."""
    excludes: Mapping[str, str] = field(default_factory=dict)
    """Settings of `serve` that those options exclude, and why."""
    rights: tuple[ComponentRights, ...] = ()
    hooks: tuple[PartHook, ...] = ()
    start: str = ""
    """Starts what runs next to reviews, where the options ask for it; a function that it returns is called whenever
    policies have changed."""


@cache
def parts() -> tuple[Part, ...]:
    """What all of them add."""
    return tuple(import_module(f"webhook.parts.{name}").PART for name in NAMES)


@cache
def options() -> Mapping[str, str]:
    """The options of `serve` that switch parts on, and the help of each."""
    return {option: text for part in parts() for option, text in part.options.items()}
