"""Writes JSON values as YAML with Helm conditions."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Key:
    """A conditional key of a mapping."""

    name: str
    condition: str


@dataclass(frozen=True)
class Item:
    """A conditional item of a list."""

    value: Any
    condition: str


@dataclass(frozen=True)
class Expression:
    text: str


def template(value: Any) -> str:
    return "\n".join(_lines(value, "")) + "\n"


def guarded(text: str, condition: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _lines(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _under(_entry(_name(key), inner, indent), key)
    else:
        for inner in value:
            item = inner.value if isinstance(inner, Item) else inner
            yield from _under(_item(item, indent), inner)


def _under(lines: Iterator[str], holder: Any) -> Iterator[str]:
    if not isinstance(holder, Key | Item):
        yield from lines
        return
    yield f"{{{{- if {holder.condition} }}}}"
    yield from lines
    yield "{{- end }}"


def _entry(name: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        yield f"{indent}{name}:"
        yield from _lines(value, indent + "  ")
    elif isinstance(value, str) and "\n" in value:
        yield f"{indent}{name}: |{'' if value.endswith(chr(10)) else '-'}"
        yield from (f"{indent}  {line}" if line else "" for line in escaped(value).removesuffix("\n").split("\n"))
    else:
        yield f"{indent}{name}: {_scalar(value)}"


def _item(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        first, *rest = _lines(value, indent + "  ")
        if first.startswith("{{"):
            raise ValueError("the first entry of an item must not have a condition")
        yield f"{indent}- {first.removeprefix(indent + '  ')}"
        yield from rest
    else:
        yield f"{indent}- {_scalar(value)}"


def _name(key: str | Key) -> str:
    name = key.name if isinstance(key, Key) else key
    return name if name.isidentifier() else _scalar(name)


def _scalar(value: Any) -> str:
    if isinstance(value, Expression):
        return value.text
    return escaped(json.dumps(value, ensure_ascii=False))


def escaped(text: str) -> str:
    return text.replace("{{", '{{ "{{" }}')
