"""The plug-in `kubectl mpijob`: https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/."""

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
"""Options of kubectl. Users write them before or after the name of a command."""
_COMMANDS: Final = re.compile(rf"\b{PROGRAM} (?=(?:{'|'.join(COMMANDS)})\b)")


class Formatter(click.HelpFormatter):
    """Replaces `mpijob-webhook` by `kubectl mpijob` in the help."""

    def getvalue(self) -> str:
        return _COMMANDS.sub(f"{NAME} ", super().getvalue())


def main() -> None:
    click.Context.formatter_class = Formatter
    command.main(ordered(sys.argv[1:]), prog_name=NAME)


def ordered(words: Sequence[str]) -> list[str]:
    end = 0
    while end < len(words) and words[end].partition("=")[0] in OPTIONS:
        end += 1 if "=" in words[end] else 2
    options, rest = words[:end], words[end:]
    at = 0
    current: click.Command = command
    while isinstance(current, click.Group) and at < len(rest) and (subcommand := current.commands.get(rest[at])):
        at, current = at + 1, subcommand
    # After an unknown command, the options come last, so that click reports the command.
    at = at or len(rest)
    return [*rest[:at], *options, *rest[at:]]


def complete() -> None:
    """Prints candidates for completion, then the directive for the shell."""
    from click.shell_completion import ShellComplete

    *words, incomplete = sys.argv[1:] or [""]
    items = ShellComplete(command, {}, NAME, "").get_completions(ordered(words), incomplete)
    kinds = {item.type for item in items}
    for item in items:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{DEFAULT if 'file' in kinds else FOLDERS if 'dir' in kinds else NO_FILES}")
