"""The group of commands `policy ...`."""

from typing import Final

import click

from webhook.cli.policy.audit import audit
from webhook.cli.policy.diff import diff
from webhook.cli.policy.effective import effective
from webhook.cli.policy.init import init
from webhook.cli.policy.new import new
from webhook.cli.policy.replay import replay
from webhook.cli.policy.schema import schema
from webhook.cli.policy.test import test
from webhook.cli.policy.validate import validate

COMMANDS: Final = (audit, diff, effective, init, new, replay, schema, test, validate)


@click.group(commands=COMMANDS)
def policy() -> None:
    """Write, check, test, compare and show policies.

    A FILE contains policy documents (kind MPIJobPolicy), or ConfigMaps with such a document in data["policy.yaml"]. It
    can also be a directory (its .yaml, .yml and .json files), or - for standard input.

    \b
    Examples:
      mpijob-webhook policy init > policy.yaml
      mpijob-webhook policy validate policy.yaml
      mpijob-webhook policy test policies/
      mpijob-webhook policy new warn --mode warn | kubectl apply -f -
      mpijob-webhook policy replay --policy policy.yaml
      mpijob-webhook policy effective --namespace team-a
      mpijob-webhook policy audit

    \b
    Exit code:
      0  no problem was found
      1  a broken policy, a failed test, a difference, or a job that would be denied: see each command
      2  unusable input: a file, the cluster or an option
    """
