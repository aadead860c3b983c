"""The command `completion`: the script with which a shell completes commands, options and names."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import click

from webhook import PROGRAM


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write the script by which a shell completes this command.

    For `kubectl mpijob` kubectl completes it itself, from version 1.26 on.

    \b
    Examples:
      source <(mpijob-webhook completion bash)                                  in ~/.bashrc
      source <(mpijob-webhook completion zsh)                                   in ~/.zshrc, below compinit
      mpijob-webhook completion fish > ~/.config/fish/completions/mpijob-webhook.fish

    \b
    Exit code:
      0  written
      2  no such shell
    """
    from click.shell_completion import get_completion_class

    variable = f"_{PROGRAM}_COMPLETE".replace("-", "_").upper()
    if (found := get_completion_class(shell)) is not None:
        click.echo(found(ctx.find_root().command, {}, PROGRAM, variable).source())
