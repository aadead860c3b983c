"""The same command as a plug-in of kubectl: `kubectl mpijob`, and what kubectl asks for to complete it.

https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/
"""

import re
import sys
from typing import Final

import click

from webhook import PROGRAM
from webhook.cli.main import MODULES
from webhook.cli.main import main as command

NAME: Final = "kubectl mpijob"
# https://github.com/spf13/cobra/blob/v1.10.1/completions.go, ShellCompDirective
DEFAULT, NO_FILES, FOLDERS = 0, 4, 16
_COMMANDS: Final = re.compile(rf"\b{PROGRAM} (?=(?:{'|'.join(MODULES)})\b)")


class Formatter(click.HelpFormatter):
    """Writes help as it is for whoever types `kubectl mpijob`."""

    def getvalue(self) -> str:
        """The help, with its examples under the name of the plug-in."""
        return _COMMANDS.sub(f"{NAME} ", super().getvalue())


def main() -> None:
    """`kubectl-mpijob`."""
    click.Context.formatter_class = Formatter
    command.main(prog_name=NAME)


def complete() -> None:
    """`kubectl_complete-mpijob`: a candidate a line with what it means, then what else the shell may offer."""
    from click.shell_completion import ShellComplete  # noqa: PLC0415 - whoever runs a command need not wait for it

    *words, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(command, {}, NAME, "").get_completions(words, incomplete)
    kinds = {item.type for item in found}
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{DEFAULT if 'file' in kinds else FOLDERS if 'dir' in kinds else NO_FILES}")
