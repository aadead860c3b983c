"""Groups of commands. A command is imported when click looks it up."""

from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import cast

import click


class _Commands(Mapping[str, click.Command]):
    def __init__(self, where: Mapping[str, str]) -> None:
        self._where = where

    def __getitem__(self, name: str) -> click.Command:
        command: click.Command = resolve_name(self._where[name])
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)


def commands(where: Mapping[str, str]) -> dict[str, click.Command]:
    """The commands of a group. `where` maps the name of each command to "package.module:name"."""
    return cast("dict[str, click.Command]", _Commands(where))
