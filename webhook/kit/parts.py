"""Which optional parts there are, and what each may add to the core.

The core reads this alone, and has a part's modules imported when it needs them: "package.module:name" is the name in
that module. A part imports what it likes of the core.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final

NAMES: Final = ("playground",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a part adds."""

    commands: Mapping[str, str] = field(default_factory=dict)
    """Commands of `mpijob-webhook`, and where each is."""


@cache
def parts() -> tuple[Part, ...]:
    """What all of them add."""
    return tuple(import_module(f"webhook.parts.{name}").PART for name in NAMES)
