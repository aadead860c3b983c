"""Isolates plug-ins from the service: a plug-in that fails is left out of that review, and nothing else is.

It gets a copy of the job, so its writes there have no effect. If it fails, its additions to the job are removed again.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import wraps
from pathlib import PurePath
from traceback import extract_tb
from typing import Any, Final, TypeVar

import msgspec
from msgspec import structs
from pydantic import ValidationError, create_model, model_validator

from webhook.api import mpijob, untyped
from webhook.api.mpijob import MPIJob
from webhook.injections import Caution, Injection
from webhook.kit.advice_bounds import ANYTHING, Admitted
from webhook.kit.context import Context, Memo
from webhook.kit.forms import Form, Holds
from webhook.kit.patch import PatchBuilder, PatchConflict
from webhook.kit.settings import InjectionSettings, RuleSettings, Settings
from webhook.rules import Rule, Violation

T = TypeVar("T")

RAISED: Final = (Exception, SystemExit)
"""Exceptions of a plug-in that are caught. Others, such as KeyboardInterrupt, end the process."""

Told = Callable[[BaseException], None]


def rule(entry: Rule, plugin: str, told: Told) -> Rule:
    """`entry` for the pipelines: if it fails it finds nothing, and the audit log has the failure."""

    @wraps(entry.check)
    def check(_: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        try:
            job = mpijob.apply_operator_defaults(mpijob.decode(ctx.document))
            found = _all(entry.check(job, settings, _own(ctx)), Violation)
        except RAISED as error:
            told(error)
            message = f"the plug-in {plugin} failed ({where(error)}): the job was judged without this rule"
            found = [Violation("", message, fix="Tell your administrator.", audit_only=True)]
        yield from found

    def admits(settings: Any) -> Admitted:
        try:
            return structs.replace(entry.admits(settings))
        except RAISED as error:
            told(error)
            return ANYTHING

    return structs.replace(entry, check=check, admits=admits, plugin=plugin, settings=_guarded(entry.settings))


def injection(entry: Injection, plugin: str, told: Told) -> Injection:
    """`entry` for the pipelines: if it fails it adds nothing to the patch, and the user gets a warning."""

    @wraps(entry.inject)
    def inject(_: MPIJob, settings: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
        before, done = msgspec.json.encode(patch.document), len(patch.operations)
        try:
            job = mpijob.decode(ctx.document)
            notes = _all(entry.inject(job, settings, _own(ctx), patch), str)
            msgspec.json.encode(patch.operations[done:])  # now, and not while the reply is written
        except PatchConflict as error:
            patch.take_back(done, untyped.decode(before))
            notes = [Caution(f"nothing was injected: {error}")]
        except RAISED as error:
            patch.take_back(done, untyped.decode(before))
            told(error)
            notes = [Caution("failed, so nothing was injected; inform your administrator")]
        yield from notes

    forms = tuple(structs.replace(form, holds=_holds(form, told)) for form in entry.forms)
    return structs.replace(entry, inject=inject, forms=forms, plugin=plugin, settings=_guarded(entry.settings))


def _holds(form: Form, told: Told) -> Holds:
    """`form.holds`, or False if it fails."""

    def holds(key: str, value: Any) -> bool:
        try:
            return bool(form.holds(key, deepcopy(value)))
        except RAISED as error:
            told(error)
            return False

    return holds


def where(error: BaseException) -> str:
    """The type and the line of an exception, without its text, which may quote a job."""
    frames = extract_tb(error.__traceback__)
    at = f" in {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{at}"


def _own(ctx: Context) -> Context:
    """`ctx` without mutable parts that other rules share."""
    return structs.replace(ctx, old=deepcopy(ctx.old), memo=Memo())


def _all(found: Iterable[Any], kind: type[T]) -> list[T]:
    """All items; TypeError if one is of another type."""
    values = list(found)
    if wrong := [value for value in values if not isinstance(value, kind)]:
        raise TypeError(f"a {type(wrong[0]).__name__} instead of a {kind.__name__}")
    return values


def _guarded(model: type[Any]) -> type[Any]:
    """Settings whose validators may raise any exception: it becomes a fault of the document."""

    def no_other_error(cls: type[Settings], data: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return handler(data)
        except (ValidationError, ValueError, AssertionError):
            raise
        except RAISED as error:
            raise ValueError(f"its plug-in failed: {where(error)}") from None

    made: type[Any] = create_model(
        model.__name__,
        __base__=model,
        __module__=model.__module__,
        __doc__=model.__doc__,
        __validators__={"no_other_error": model_validator(mode="wrap")(classmethod(no_other_error))},  # type: ignore[arg-type, dict-item]
    )
    return made
