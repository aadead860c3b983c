"""The forms of injected values: paths and possible values. An update uses them to recognise injected values.

`kubectl apply` replaces whole lists and drops injected items; an update restores them (`admission.mutate.updates`). A
job does not show reliably who wrote a value. Therefore a value is restored only if an injection could have written it.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import msgspec

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.kit.patch import template_path

ITEM: Final = "*"
Pattern = tuple[str, ...]
Holds = Callable[[str, Any], bool]


class ComesBack(Enum):
    """When an update restores a dropped value of this form.

    An update restores any dropped value that the injection would write today. The members add further cases.
    """

    WRITTEN_TODAY = "written today"
    """No further case. This is for values in mappings: `kubectl apply` does not drop them."""
    SAME_FILE = "same file"
    """If a user applies the same file again with `kubectl apply`. This is for values that users write too."""
    OTHER_CLIENT = "other client"
    """Like SAME_FILE, and also if a client other than `kubectl apply` drops the value. This is for values that users do
    not write."""
    WITH_OTHERS = "with others"
    """If another value from the same injection is restored."""
    ALWAYS = "always"
    """Always, even if a user wrote the value: the job would otherwise never start or never end."""


class Form(msgspec.Struct, frozen=True):
    """The values that an injection can write at a path."""

    path: Pattern
    """Keys from the job's root. `ITEM` matches any item of a list or any key of a mapping."""
    holds: Holds
    """Whether the injection can have written this (key, value). The key of a list's item is `ITEM`."""
    when: ComesBack = ComesBack.OTHER_CLIENT
    default: object = None
    """The default in the CRD's schema, which the API server sets if the value is dropped."""
    text: bool = False
    """Whether the value is a list of networks as text: the user's networks, then the injected networks."""


def equal(*values: object) -> Holds:
    return lambda _, value: any(type(value) is type(allowed) and value == allowed for allowed in values)


def a_text(_: str, value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def with_fields(*fields: str) -> Holds:
    """Accepts mappings with exactly these fields."""
    return lambda _, item: isinstance(item, dict) and item.keys() == set(fields)


def named(*names: str) -> Holds:
    """Accepts environment variables with one of these names and without `valueFrom`."""
    return lambda _, item: isinstance(item, dict) and item.keys() <= {"name", "value"} and item.get("name") in names


def in_templates(*path: str, holds: Holds, when: ComesBack = ComesBack.OTHER_CLIENT) -> tuple[Form, ...]:
    return tuple(Form((*_template(role), *path), holds, when) for role in (LAUNCHER, WORKER))


def in_launcher(*path: str, holds: Holds, when: ComesBack = ComesBack.OTHER_CLIENT) -> Form:
    return Form((*_template(LAUNCHER), *path), holds, when)


def in_worker(*path: str, holds: Holds) -> Form:
    return Form((*_template(WORKER), *path), holds)


def _template(role: str) -> Pattern:
    return tuple(map(str, template_path(role)))
