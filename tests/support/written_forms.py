"""Compares injected values with the `Form`s of the injections. An update recognises injected values by these forms."""

from collections.abc import Iterator
from typing import Any

from webhook import injections
from webhook.admission.pipelines import Decision
from webhook.kit.forms import ITEM, Form

Tokens = tuple[str, ...]


def faults(decision: Decision) -> list[str]:
    """Injected values that match no form, and foreign values that match a form."""
    problems = []
    for author, path, value in _written(decision):
        if not holds(path, value):
            problems.append(f"no form matches the value of {author}: {value} at {path}")
        problems += [f"a form matches {other} at {path}" for other in _with_foreign_keys(value) if holds(path, other)]
    return problems


def holds(path: Tokens, value: Any) -> bool:
    return any(form.holds(path[-1], value) for form in _forms_at(path))


def _written(decision: Decision) -> Iterator[tuple[str, Tokens, Any]]:
    """(injection, path, value) for each value that injections with forms wrote. A mapping or list is divided into
    its items until there is a form for the path."""
    for author, operation in zip(decision.authors, decision.patch, strict=False):
        if author in injections.REGISTRY and injections.REGISTRY[author].forms:
            pointer = str(operation["path"])
            tokens = tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])
            yield from _parts(author, tokens, operation["value"])


def _with_foreign_keys(value: Any) -> Iterator[Any]:
    """Variants of `value`. Each variant has an additional key in one mapping."""
    if isinstance(value, dict):
        yield {**value, "foreign": "x"}
        for key, part in value.items():
            yield from ({**value, key: changed} for changed in _with_foreign_keys(part))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], changed, *value[index + 1 :]] for changed in _with_foreign_keys(item))


def _parts(author: str, path: Tokens, value: Any) -> Iterator[tuple[str, Tokens, Any]]:
    if isinstance(value, dict | list) and not _forms_at(path):
        parts = value.items() if isinstance(value, dict) else ((ITEM, item) for item in value)
        for key, part in parts:
            yield from _parts(author, (*path, key), part)
    else:
        yield author, path, value


def _forms_at(path: Tokens) -> list[Form]:
    return [
        form
        for injection in injections.REGISTRY.values()
        for form in injection.forms
        if len(form.path) == len(path)
        and all(mine in {ITEM, token} for mine, token in zip(form.path, path, strict=False))
    ]
