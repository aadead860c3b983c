"""The injections: one module or package each, loaded automatically.

`mpijob-webhook explain` and the reference show the docstring of the module; its first line is the summary. An injection
adds missing fields to a job. A value of the user always stays, and a second run of the injection adds nothing. An
injection never rejects a job. If a value could do harm in some clusters, it is not injected while the relevant objects
of the cluster are unknown.
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
    """A registered injection."""

    id: str
    settings: type[InjectionSettings]
    inject: Callable[[MPIJob, Any, Context, PatchBuilder], Iterator[str]]
    """Writes to the PatchBuilder, and yields texts about the job.

    The job is as the user submitted it, without the operator's defaults. A `str` or a `Note` describes an addition. A
    `Caution` describes a requested addition that is not possible. A `Hint` describes an unchanged field.
    """
    since: str
    unskippable: bool = False
    """No job can skip the injection.

    The annotation `training.openshift.io/skip` has no effect. New jobs that claim to be created by a controller or by
    Kueue get the injection too, because any user may write this claim.
    """
    forms: tuple[Form, ...] = ()
    """The values that the injection can write. Updates need them, see `webhook.kit.forms`."""
    importance: Importance = Importance.HARMS
    """The importance of the injection's Cautions."""
    unmet: Callable[[MPIJob, Any, Context], str] | None = None
    """Returns the fix for a job without the value that a policy requires; "" for other jobs.

    If this is None, the required values are those that the injection would add to the job.
    """
    quiet: bool = False
    """If true, warnings and the annotation `training.openshift.io/injected` do not list the injection."""
    plugin: str = ""
    """The plug-in that has the injection; empty for an injection of this package."""

    @property
    def documentation(self) -> tuple[str, str]:
        """(summary, explanation)."""
        return documentation(self.inject.__module__)


class Note(str):
    """A note about an addition, with one or two words (`brief`) for the summary of all injections."""

    __slots__ = ("brief",)
    brief: str

    def __new__(cls, text: str, *, brief: str) -> Self:
        note = super().__new__(cls, text)
        note.brief = brief
        return note


class Hint(str):
    """A note about an unchanged field. It is part of the summary."""

    __slots__ = ()


class Caution(str):
    """A note about a value that could not be injected. It is always a separate warning."""

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
    """Register the decorated function as an injection. The parameters are fields of `Injection`."""
    if not all(isinstance(form, Form) and isinstance(form.path, tuple) for form in forms):
        raise TypeError("`forms` must be a tuple of Form, each with a tuple as its path")

    def register(inject: Inject[S]) -> Inject[S]:
        entry = Injection(injection_id, settings, inject, since, unskippable, forms, importance, unmet, quiet)
        REGISTRY.declare(inject, entry)
        return inject

    return register
