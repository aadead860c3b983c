"""Which optional parts there are, and what each may add to the core.

The core reads this alone, and has a part's modules imported when it needs them: "package.module:name" is the name in
that module. A part imports what it likes of the core.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final

NAMES: Final = ("older_versions", "sagemaker", "playground")
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
    hooks: tuple[PartHook, ...] = ()


@cache
def parts() -> tuple[Part, ...]:
    """What all of them add."""
    return tuple(import_module(f"webhook.parts.{name}").PART for name in NAMES)


@cache
def options() -> Mapping[str, str]:
    """The options of `serve` that switch parts on, and the help of each."""
    return {option: text for part in parts() for option, text in part.options.items()}
