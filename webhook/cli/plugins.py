"""The command `plugins`."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, NoReturn

import click

from webhook import PROGRAM
from webhook.cli.options import OUTPUT, REFUSED, show
from webhook.cli.terminal import caution, heading, printable

if TYPE_CHECKING:
    from webhook.plugins.loading import Plugin


@click.command()
@OUTPUT
def plugins(output: str) -> NoReturn:
    """List plug-ins: packages with rules and injections.

    Only plug-ins that are named are used. Name them with --plugins before the command, or in the variable
    MPIJOB_WEBHOOK_PLUGINS. The commands `rules` and `explain` include the named plug-ins.

    \b
    Examples:
      mpijob-webhook plugins
      mpijob-webhook --plugins example-mpijob-plugin plugins -o json
      mpijob-webhook --plugins all rules

    \b
    Exit code:
      0  the plug-ins were listed
      1  a named plug-in is broken
    """
    from webhook.plugins import loading

    installed = loading.installed()
    show(output, tuple(_as_text(installed)), {"plugins": [asdict(plugin) for plugin in installed]})
    sys.exit(REFUSED if any(plugin.faults for plugin in installed) else 0)


def _as_text(installed: "tuple[Plugin, ...]") -> Iterator[str]:
    if not installed:
        yield f"No package with entry points of {PROGRAM} is installed."
    for plugin in installed:
        yield heading(printable(f"{plugin.name} {plugin.version}".strip())) + f": {plugin.state}"
        for kind, ids in (("rules", plugin.rules), ("injections", plugin.injections)):
            if ids:
                yield printable(f"  {kind}: {', '.join(ids)}")
        yield from (f"  {caution('broken')}: {printable(fault)}" for fault in plugin.faults)
