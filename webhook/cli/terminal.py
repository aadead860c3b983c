"""Colours and messages of the commands."""

from functools import partial
from typing import Final, NoReturn

import click

UNUSABLE: Final = 2
"""The exit code if a file, a policy or the cluster cannot be used."""

heading = partial(click.style, bold=True)
good = partial(click.style, fg="green", bold=True)
bad = partial(click.style, fg="red", bold=True)
caution = partial(click.style, fg="yellow")
added = partial(click.style, fg="green")
faint = partial(click.style, dim=True)


def printable(text: str) -> str:
    """The text without control characters and line breaks. Control characters could overwrite other output."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def counted(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def complain(*problems: object) -> None:
    for problem in problems:
        click.echo(f"{bad('error')}: {printable(str(problem))}", err=True)


def fail(*problems: object) -> NoReturn:
    complain(*problems)
    raise SystemExit(UNUSABLE)
