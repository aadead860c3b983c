"""The form of an injected value: path and value, by which an update recognises it in a stored job.

`kubectl apply` replaces whole lists, so it drops injected items; an update restores them (`admission.mutate.updates`).
A job does not show reliably who wrote a value, so the form decides: what no injection could write is not restored.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import msgspec

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.kit.patch import template_path

ITEM: Final = "*"
"""In a `Form`'s path: any item of a list, or any key of a map."""
Pattern = tuple[str, ...]
Holds = Callable[[str, Any], bool]


class ComesBack(Enum):
    """When a value of this form is restored."""

    WRITTEN_TODAY = "written today"
    """If the injection would write it today: for maps, from which `kubectl apply` drops nothing."""
    SAME_FILE = "same file"
    """Also if a user applies the same file again with `kubectl apply`: users write such values too."""
    OTHER_CLIENT = "other client"
    """Also if a client other than `kubectl apply` drops it: no user writes such a value."""
    WITH_OTHERS = "with others"
    """If another value of the same injection is restored."""
    ALWAYS = "always"
    """Always, also if a user wrote it: without it the job would never start, or never end."""


class Form(msgspec.Struct, frozen=True):
    """Values that an injection can write at one path."""

    path: Pattern
    """Tokens from the job's root; `ITEM` matches any item of a list or any key of a map."""
    holds: Holds
    """Whether the injection can have written this (key, value); the key of a list item is `ITEM`."""
    when: ComesBack = ComesBack.OTHER_CLIENT
    default: object = None
    """The value that the API server writes for a dropped one (the default in the CRD's schema)."""
    text: bool = False
    """The value lists networks in one text, the user's before the injected ones."""


def equal(*values: object) -> Holds:
    """Holds for exactly these values."""
    return lambda _, value: any(type(value) is type(each) and value == each for each in values)


def a_text(_: str, value: Any) -> bool:
    """Holds for any text that is not empty."""
    return isinstance(value, str) and bool(value)


def with_fields(*fields: str) -> Holds:
    """Holds for an item with exactly these fields."""
    return lambda _, item: isinstance(item, dict) and item.keys() == set(fields)


def named(*names: str) -> Holds:
    """Holds for an environment variable of one of these names, with a value of its own."""
    return lambda _, item: isinstance(item, dict) and item.keys() <= {"name", "value"} and item.get("name") in names


def in_templates(*path: str, holds: Holds, when: ComesBack = ComesBack.OTHER_CLIENT) -> tuple[Form, ...]:
    """The same form in the templates of launcher and workers."""
    return tuple(Form((*_template(role), *path), holds, when) for role in (LAUNCHER, WORKER))


def in_launcher(*path: str, holds: Holds, when: ComesBack = ComesBack.OTHER_CLIENT) -> Form:
    """A form in the launcher's template."""
    return Form((*_template(LAUNCHER), *path), holds, when)


def in_worker(*path: str, holds: Holds) -> Form:
    """A form in the workers' template."""
    return Form((*_template(WORKER), *path), holds)


def _template(role: str) -> Pattern:
    return tuple(map(str, template_path(role)))
