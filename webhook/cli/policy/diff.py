"""The command `policy diff`."""

import sys
from typing import NoReturn

import click

from webhook.cli.options import OUTPUT, show
from webhook.server.clock import today


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@OUTPUT
def diff(old: str, new: str, output: str) -> NoReturn:
    """Show what changes from OLD to NEW, value by value.

    OLD and NEW are files or directories. If each has one policy, these two policies are compared. Otherwise policies
    with the same name are compared. The name of a policy is the name of its ConfigMap, or of its file.

    \b
    Examples:
      mpijob-webhook policy diff policy.yaml new.yaml
      kubectl get configmap base -n mpijob-webhook -o yaml | mpijob-webhook policy diff - base.yaml

    \b
    Exit code:
      0  nothing changes
      1  something changes
      2  unusable input: a file or a policy in it
    """
    from webhook.cli.policy import inputs
    from webhook.cli.policy.differences import differences

    day = today()
    changes = differences(inputs.policies([old]).policies, inputs.policies([new]).policies)
    lines = [line for change in changes for line in change.as_text(day)] or ["nothing changes"]
    show(output, lines, [change.as_json() for change in changes])
    sys.exit(1 if changes else 0)
