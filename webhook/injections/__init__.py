"""The injections: one module or package each, loaded automatically.

`mpijob-webhook explain` and the reference show the docstring of an injection's module; its first line is the summary.
An injection reads the job as it was submitted, adds missing fields through a `PatchBuilder`, and yields a short note
for each addition. A value of the user always stays, and injecting twice adds nothing. No injection rejects a job,
replaces a value, or injects anything that could do harm while an object of the cluster is unknown.
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
    short note for each addition (a Note if the summary of all injections should have a detail), a Caution for a
    requested addition that is not possible, and a Hint about a field that it does not change.
    """

    id: str
    settings: type[InjectionSettings]
    inject: Callable[[MPIJob, Any, Context, PatchBuilder], Iterator[str]]
    since: str
    unskippable: bool = False
    """No job can skip the injection: the annotation `training.openshift.io/skip` has no effect, and new jobs that claim
    to be created by a controller or by Kueue get it too, because any user may write such a claim.
    """
    forms: tuple[Form, ...] = ()
    """The values that the injection can write, for updates: see `webhook.kit.forms`."""
    importance: Importance = Importance.HARMS
    """The importance of the injection's Cautions."""
    unmet: Callable[[MPIJob, Any, Context], str] | None = None
    """For policies that require the injection: the fix for a job without the value of the first form, empty for any
    other job. If this is None, the required values are those that the injection would add to the job.
    """
    quiet: bool = False
    """Neither a warning nor the annotation `training.openshift.io/injected` lists the injection."""
    plugin: str = ""
    """The plug-in that has the injection; empty for an injection of this package."""

    @property
    def documentation(self) -> tuple[str, str]:
        """(summary, explanation) from the docstring of the injection's module."""
        return documentation(self.inject.__module__)


class Note(str):
    """A note about an addition, with a detail for the summary of all injections."""

    __slots__ = ("brief",)
    brief: str

    def __new__(cls, text: str, *, brief: str) -> Self:
        """`text`: the note as a separate line; `brief`: the detail, in one or two words."""
        note = super().__new__(cls, text)
        note.brief = brief
        return note


class Hint(str):
    """Information about a field that the injection does not change: part of the summary, not a warning."""

    __slots__ = ()


class Caution(str):
    """A note that a requested value could not be injected: always a separate warning."""

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
