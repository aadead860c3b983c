"""The commands `mpijob-webhook policy ...`: they parse, call, print. What a command needs is imported when it runs."""

import click


@click.group()
def policy() -> None:
    """Write, check and compare policies, and see what is in force.

    \b
    Exit code:
      0  see each command
    \b
    Examples:
      mpijob-webhook policy init > policy.yaml
    """
