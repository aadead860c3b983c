"""The command `completion`."""

import click

from webhook import PROGRAM


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write a script that adds completion to a shell.

    `kubectl mpijob` needs no script: kubectl 1.26 and newer complete it.

    \b
    Examples:
      source <(mpijob-webhook completion bash)                                  in ~/.bashrc
      source <(mpijob-webhook completion zsh)                                   in ~/.zshrc, below compinit
      mpijob-webhook completion fish > ~/.config/fish/completions/mpijob-webhook.fish

    \b
    Exit code:
      0  the script was written
      2  the shell is not supported
    """
    from click.shell_completion import get_completion_class

    variable = f"_{PROGRAM}_COMPLETE".replace("-", "_").upper()
    if (script := get_completion_class(shell)) is not None:
        click.echo(script(ctx.find_root().command, {}, PROGRAM, variable).source())
