"""The same command as a plug-in of kubectl: `kubectl mpijob`, and its completion.

https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/
"""

import re
import sys
from collections.abc import Sequence
from typing import Final

import click

from webhook import PROGRAM
from webhook.cli.main import COMMANDS
from webhook.cli.main import main as command

NAME: Final = "kubectl mpijob"
# https://github.com/spf13/cobra/blob/v1.10.1/completions.go, ShellCompDirective
DEFAULT, NO_FILES, FOLDERS = 0, 4, 16
OPTIONS: Final = frozenset({"-n", "--namespace", "--context", "--kubeconfig", "--as", "--as-group", "--as-uid"})
"""kubectl's own options, which its users also write before a command."""
_COMMANDS: Final = re.compile(rf"\b{PROGRAM} (?=(?:{'|'.join(COMMANDS)})\b)")


class Formatter(click.HelpFormatter):
    """Writes the help for users who type `kubectl mpijob`."""

    def getvalue(self) -> str:
        """The help, with its examples under the name of the plug-in."""
        return _COMMANDS.sub(f"{NAME} ", super().getvalue())


def main() -> None:
    """`kubectl-mpijob`."""
    click.Context.formatter_class = Formatter
    command.main(ordered(sys.argv[1:]), prog_name=NAME)


def ordered(words: Sequence[str]) -> list[str]:
    """The words, with kubectl's options moved from before the command to after it."""
    end = 0
    while end < len(words) and words[end].partition("=")[0] in OPTIONS:
        end += 1 if "=" in words[end] else 2
    options, rest = words[:end], words[end:]
    at = 0
    met: click.Command = command
    while isinstance(met, click.Group) and at < len(rest) and (found := met.commands.get(rest[at])):
        at, met = at + 1, found
    # Without a command the error comes first.
    at = at or len(rest)
    return [*rest[:at], *options, *rest[at:]]


def complete() -> None:
    """`kubectl_complete-mpijob`: a candidate with its meaning on each line, then the directive for the shell."""
    from click.shell_completion import ShellComplete  # noqa: PLC0415 - whoever runs a command need not wait for it

    *words, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(command, {}, NAME, "").get_completions(ordered(words), incomplete)
    kinds = {item.type for item in found}
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{DEFAULT if 'file' in kinds else FOLDERS if 'dir' in kinds else NO_FILES}")
