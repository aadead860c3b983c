"""The commands `explain` and `rules`."""

import sys
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from webhook import PROGRAM
from webhook.cli.options import OUTPUT, show
from webhook.cli.terminal import fail, faint


def _names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from webhook.cli import explanations

    entries = explanations.entries()
    return [CompletionItem(entry.id, help=entry.summary) for entry in entries if entry.id.startswith(incomplete)]


@click.command()
@click.argument("name", metavar="RULE|INJECTION", shell_complete=_names)
def explain(name: str) -> NoReturn:
    """Explain a rule or an injection, and its settings.

    Every rejection and warning ends with the name of its rule in brackets. `mpijob-webhook rules` lists the names.

    \b
    Examples:
      mpijob-webhook explain worker-count
      mpijob-webhook explain istio

    \b
    Exit code:
      0  the rule or injection was explained
      2  the rule or injection does not exist
    """
    from webhook.cli import explanations

    entries = explanations.find(name)
    if not entries:
        near = explanations.similar(name)
        hint = f"did you mean {' or '.join(near)}?" if near else f"`{PROGRAM} rules` lists them"
        fail(f'there is no rule or injection "{name}", {hint}')
    click.echo("\n\n".join("\n".join(entry.as_text()) for entry in entries))
    sys.exit(0)


@click.command()
@OUTPUT
def rules(output: str) -> None:
    """List every rule and injection with its default.

    \b
    Examples:
      mpijob-webhook rules
      mpijob-webhook rules -o json
    """
    from webhook.cli import explanations

    entries = explanations.entries()
    more = faint(f"`{PROGRAM} explain NAME` says more.")
    show(output, (*explanations.overview(entries), more), explanations.as_json(entries))
