"""The injections: one file each (a large one, such as `rdma`, is a package), found by its presence.

The docstring of an injection's module is what `mpijob-webhook explain` and the reference show: first line the summary.
An injection sees the job as it was submitted, adds missing fields through a `PatchBuilder`, and reports each addition
in a short note. The user's own value always wins, and injecting twice adds nothing. No injection rejects a job,
replaces a value or takes a risk when something is unknown.
"""

from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import msgspec

from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.forms import Form
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder
from webhook.kit.registry import Registry, documentation
from webhook.kit.settings import InjectionSettings

S = TypeVar("S", bound=InjectionSettings)
Inject = Callable[[MPIJob, S, Context, PatchBuilder], Iterator[str]]


class Injection(msgspec.Struct, frozen=True):
    """A registered injection.

    `inject` reads the job as it was submitted (no defaults of the operator) and writes to the PatchBuilder. It yields a
    short note for each addition (a Note if the line for all injections should have a detail), a Caution for what it
    could not do, and a Hint for what it does not change.
    """

    id: str
    settings: type[InjectionSettings]
    inject: Callable[[MPIJob, Any, Context, PatchBuilder], Iterator[str]]
    since: str
    unskippable: bool = False
    """No job can skip it: the annotation `training.openshift.io/skip` has no effect on it, and it is also added to new
    jobs that claim to be made by a controller or by Kueue. Any user may write those.
    """
    forms: tuple[Form, ...] = ()
    """The values that it can write, for updates: see `webhook.kit.forms`."""
    importance: Importance = Importance.HARMS
    """The importance of its Cautions."""
    unmet: Callable[[MPIJob, Any, Context], str] | None = None
    """For policies that require it: how to fix a job that lacks the value of its first form, empty for any other.
    Without this, a job lacks whatever the injection would still add.
    """
    quiet: bool = False
    """Users do not read about it: neither a warning nor the annotation `training.openshift.io/injected` lists it."""
    plugin: str = ""
    """The plug-in that has it; empty for one of this package."""

    @property
    def documentation(self) -> tuple[str, str]:
        """(summary, explanation) from the docstring of the injection's module."""
        return documentation(self.inject.__module__)


class Note(str):
    """A note on what was injected, with a detail for the line in which all injections share."""

    __slots__ = ("brief",)
    brief: str

    def __new__(cls, text: str, *, brief: str) -> Self:
        """`text` for a line of its own, `brief` in one or two words."""
        note = super().__new__(cls, text)
        note.brief = brief
        return note


class Hint(str):
    """Information about a field that the injection leaves alone: part of the list of injections, not a warning."""

    __slots__ = ()


class Caution(str):
    """A note on what was requested and could not be injected: always a warning, in its own line."""

    __slots__ = ()


REGISTRY: Registry[Injection] = Registry(__name__)


def injection(
    injection_id: str,
    settings: type[S],
    *,
    since: str,
    unskippable: bool = False,
    importance: Importance = Importance.HARMS,
    forms: tuple[Form, ...] = (),
    unmet: Callable[[MPIJob, S, Context], str] | None = None,
    quiet: bool = False,
) -> Callable[[Inject[S]], Inject[S]]:
    """Register the decorated function as the injection `injection_id`, which exists since version `since`."""
    if not all(isinstance(form, Form) and isinstance(form.path, tuple) for form in forms):
        raise TypeError("`forms` must be a tuple of Form, each with a tuple as its path")

    def register(inject: Inject[S]) -> Inject[S]:
        entry = Injection(injection_id, settings, inject, since, unskippable, forms, importance, unmet, quiet)
        REGISTRY.declare(inject, entry)
        return inject

    return register
