"""The injections: one file each (`rdma`, a large one, a package), found by its presence. Each adds what was left open.

The docstring of an injection's module is what `mpijob-webhook explain` and the reference show: first line the summary.
An injection sees the job as it was submitted, adds through a `PatchBuilder`, and reports each addition in a short note.
The user's own value always wins, and injecting twice adds nothing. No injection denies a job, replaces a value or takes
a risk on what is unknown.
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

    `inject` reads the job as it was submitted (no defaults of the operator), writes to the PatchBuilder, and yields
    a short note for what it did (a Note, where the one line for all injections should have a detail too); a Caution
    for what it could not do; a Hint for what it does not change.
    """

    id: str
    settings: type[InjectionSettings]
    inject: Callable[[MPIJob, Any, Context, PatchBuilder], Iterator[str]]
    since: str
    unskippable: bool = False
    """No job goes without it: the annotation `training.openshift.io/skip` has no effect on it, and it also goes into
    new jobs that claim to be made by a controller or by Kueue. Any user may write those.
    """
    forms: tuple[Form, ...] = ()
    """What it can write, for updates: see `webhook.kit.forms`."""
    importance: Importance = Importance.HARMS
    """Of its Cautions."""
    unmet: Callable[[MPIJob, Any, Context], str] | None = None
    """For policies that require it: how to fix a job that lacks the value of its first form, empty for any other.
    Without this a job lacks what the injection would still add."""
    quiet: bool = False
    """Users need not know of it: neither a warning nor the annotation `training.openshift.io/injected` lists it."""
    plugin: str = ""
    """The plug-in that it comes from; empty for one of this package."""

    @property
    def documentation(self) -> tuple[str, str]:
        """(summary, explanation) from the docstring of the injection's module."""
        return documentation(self.inject.__module__)


class Note(str):
    """A note on what was injected, with the detail that stands behind the id where all injections share a line."""

    __slots__ = ("brief",)
    brief: str

    def __new__(cls, text: str, *, brief: str) -> Self:
        """`text` for a line of its own, `brief` in one or two words."""
        note = super().__new__(cls, text)
        note.brief = brief
        return note


class Hint(str):
    """What a user should know of a field that the injection leaves alone: with the list of injections, no warning."""

    __slots__ = ()


class Caution(str):
    """A note on what was asked for and could not be injected: the user is always warned of it, in a line of its own."""

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
    """Register the decorated function as the injection `injection_id`, there since version `since`."""
    if not all(isinstance(form, Form) and isinstance(form.path, tuple) for form in forms):
        raise TypeError("`forms` must be a tuple of Form, each with a tuple as its path")

    def register(inject: Inject[S]) -> Inject[S]:
        entry = Injection(injection_id, settings, inject, since, unskippable, forms, importance, unmet, quiet)
        REGISTRY.declare(inject, entry)
        return inject

    return register
