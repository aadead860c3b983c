"""What `policy new` asks on a terminal: the name of a policy, and what it says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from webhook.cli.terminal import complain


@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered; `into` is the folder to write to."""

    name: str
    options: dict[str, Any]
    settings: tuple[str, ...]
    into: str


def ask(write: Callable[..., str], **given: Any) -> Answers:
    """Ask until there is a policy that `write` can write; what an option has `given` is not asked."""
    options = dict(given)
    name = _until_good("Name of the policy, as tier-dev", lambda text: write(text, **options))
    if options["selector"] is None:
        selector = _until_good(
            "Namespaces, as a label selector (tier=dev; empty for all)",
            lambda text: write(name, **{**options, "selector": text}),
            default="",
        )
        options["selector"] = selector or None
    if options["mode"] is None:
        options["mode"] = click.prompt(
            "The most that a rule does", type=click.Choice(["enforce", "warn", "audit"]), default="enforce", err=True
        )
    settings: list[str] = list(options.pop("settings"))
    while line := _until_good(
        "A setting, as rules.worker-count.max=8 (empty when there are no more)",
        lambda text: write(name, **options, settings=[*settings, *filter(None, [text])]),
        default="",
    ):
        settings.append(line)
    into = click.prompt("Folder for the policy and its test", default=".", err=True)
    return Answers(name, options, tuple(settings), into)


def _until_good(question: str, check: Callable[[str], object], default: str | None = None) -> str:
    while True:
        text: str = click.prompt(question, default=default, show_default=False, err=True).strip()
        try:
            check(text)
        except ValueError as error:  # what cannot be in a policy, said for people
            complain(*str(error).splitlines())
        else:
            return text
