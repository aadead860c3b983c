"""The command `policy validate`."""

import sys
from typing import NoReturn

import click

from webhook.cli.options import OUTPUT, show
from webhook.cli.terminal import UNUSABLE
from webhook.server.clock import today


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@OUTPUT
def validate(files: tuple[str, ...], output: str) -> NoReturn:
    """Check policies for faults.

    Each fault is shown with its field, its line and the accepted values.

    The command warns about exemptions that have ended, ConfigMaps without the label by which the service finds
    policies, custom rules that cannot be evaluated for a usual job, documents of equal priority with different values,
    and documents that contradict each other.

    \b
    Examples:
      mpijob-webhook policy validate policy.yaml
      mpijob-webhook policy validate manifests/policies/
      kustomize build policies | mpijob-webhook policy validate -

    \b
    Exit code:
      0  every document is valid; there may be warnings
      1  at least one document is broken
      2  unusable input: a file cannot be read, or it has no policy
    """
    from webhook.cli.policy import inputs, validation

    contents = inputs.policies(files, broken=True)
    outcome = validation.validate(contents.policies, today=today())
    show(output, outcome.as_text(), outcome.as_json())
    sys.exit(UNUSABLE if contents.errors or not contents.policies else 0 if outcome.good else 1)
