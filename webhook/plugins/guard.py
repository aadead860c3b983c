"""Isolates the service from plug-ins: if a plug-in fails in a review, only its result is missing.

A plug-in gets a copy of the job, so it cannot change the job.
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
"""If a plug-in raises one of these exceptions, it is caught. Others, such as KeyboardInterrupt, end the process."""

OnFailure = Callable[[BaseException], None]


def rule(entry: Rule, plugin: str, on_failure: OnFailure) -> Rule:
    """If the rule fails, the job is judged without it, and the audit log shows the failure."""

    @wraps(entry.check)
    def check(_: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
        try:
            job = mpijob.apply_operator_defaults(mpijob.decode(ctx.document))
            violations = _all(entry.check(job, settings, _own(ctx)), Violation)
        except RAISED as error:
            on_failure(error)
            message = f"the plug-in {plugin} failed ({where(error)}): the job was judged without this rule"
            violations = [Violation("", message, fix="Tell your administrator.", audit_only=True)]
        yield from violations

    def admits(settings: Any) -> Admitted:
        try:
            return structs.replace(entry.admits(settings))
        except RAISED as error:
            on_failure(error)
            return ANYTHING

    return structs.replace(entry, check=check, admits=admits, plugin=plugin, settings=_guarded(entry.settings))


def injection(entry: Injection, plugin: str, on_failure: OnFailure) -> Injection:
    """If the injection fails, its operations are removed and the user is warned."""

    @wraps(entry.inject)
    def inject(_: MPIJob, settings: InjectionSettings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
        before, done = msgspec.json.encode(patch.document), len(patch.operations)
        try:
            job = mpijob.decode(ctx.document)
            notes = _all(entry.inject(job, settings, _own(ctx), patch), str)
            # A value that JSON cannot express must fail here, not when the reply is written.
            msgspec.json.encode(patch.operations[done:])
        except PatchConflict as error:
            patch.take_back(done, untyped.decode(before))
            notes = [Caution(f"nothing was injected: {error}")]
        except RAISED as error:
            patch.take_back(done, untyped.decode(before))
            on_failure(error)
            notes = [Caution("failed, so nothing was injected; inform your administrator")]
        yield from notes

    forms = tuple(structs.replace(form, holds=_holds(form, on_failure)) for form in entry.forms)
    return structs.replace(entry, inject=inject, forms=forms, plugin=plugin, settings=_guarded(entry.settings))


def _holds(form: Form, on_failure: OnFailure) -> Holds:
    def holds(key: str, value: Any) -> bool:
        try:
            return bool(form.holds(key, deepcopy(value)))
        except RAISED as error:
            on_failure(error)
            return False

    return holds


def where(error: BaseException) -> str:
    """The type and the line of an exception. The text is left out because it may quote a job."""
    frames = extract_tb(error.__traceback__)
    at = f" in {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{at}"


def _own(ctx: Context) -> Context:
    """A copy of `ctx` that shares no mutable part with other rules."""
    return structs.replace(ctx, old=deepcopy(ctx.old), memo=Memo())


def _all(results: Iterable[Any], kind: type[T]) -> list[T]:
    values = list(results)
    if wrong := [value for value in values if not isinstance(value, kind)]:
        raise TypeError(f"a {type(wrong[0]).__name__} instead of a {kind.__name__}")
    return values


def _guarded(model: type[Any]) -> type[Any]:
    """Any exception of the model's validators becomes a fault of the policy document."""

    def no_other_error(cls: type[Settings], data: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return handler(data)
        except (ValidationError, ValueError, AssertionError):
            raise
        except RAISED as error:
            raise ValueError(f"its plug-in failed: {where(error)}") from None

    guarded: type[Any] = create_model(
        model.__name__,
        __base__=model,
        __module__=model.__module__,
        __doc__=model.__doc__,
        __validators__={"no_other_error": model_validator(mode="wrap")(classmethod(no_other_error))},  # type: ignore[arg-type, dict-item]
    )
    return guarded
