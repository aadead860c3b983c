"""The output of the commands: colours, and text without control characters. click drops colours without a terminal."""

from collections.abc import Callable
from typing import Final, NoReturn

import click

# The exit code if a file, a policy or the cluster cannot be used.
UNUSABLE: Final = 2
DRY_RUN: Final = "tries the pods of the jobs by a dry run, which creates nothing"


def printable(text: str) -> str:
    """`text` on one line, without control characters, with which a file could write anywhere on the terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def heading(text: str) -> str:
    return click.style(text, bold=True)


def good(text: str) -> str:
    return click.style(text, fg="green", bold=True)


def bad(text: str) -> str:
    return click.style(text, fg="red", bold=True)


def caution(text: str) -> str:
    return click.style(text, fg="yellow")


def added(text: str) -> str:
    return click.style(text, fg="green")


def faint(text: str) -> str:
    return click.style(text, dim=True)


def counted(number: int, noun: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def announcing(line: str) -> Callable[[], None]:
    """Return a function that prints the line to stderr once."""
    lines = [line]

    def announce() -> None:
        while lines:
            click.echo(faint(lines.pop()), err=True)

    return announce


def complain(*problems: object) -> None:
    for problem in problems:
        click.echo(f"{bad('error')}: {printable(str(problem))}", err=True)


def fail(*problems: object) -> NoReturn:
    """Print the problems, and exit with UNUSABLE."""
    complain(*problems)
    raise SystemExit(UNUSABLE)
