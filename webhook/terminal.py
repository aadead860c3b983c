"""What the commands print: text from users' files made harmless, and the colours (click drops them off a terminal)."""

import click


def printable(text: str) -> str:
    """`text` on one line, without the control characters by which a file could write to the whole terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def heading(text: str) -> str:
    """A title."""
    return click.style(text, bold=True)


def good(text: str) -> str:
    """What went well."""
    return click.style(text, fg="green", bold=True)


def bad(text: str) -> str:
    """What went wrong."""
    return click.style(text, fg="red", bold=True)


def caution(text: str) -> str:
    """What deserves a look."""
    return click.style(text, fg="yellow")


def added(text: str) -> str:
    """What was put in."""
    return click.style(text, fg="green")


def faint(text: str) -> str:
    """What is there for orientation only."""
    return click.style(text, dim=True)
