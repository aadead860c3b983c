"""The command `policy init`."""

import click


@click.command()
def init() -> None:
    """Write a policy document with every setting at its default.

    \b
    Examples:
      mpijob-webhook policy init > policy.yaml
    """
    from webhook.cli.policy.document_schema import starting_document

    click.echo(starting_document(), nl=False)
