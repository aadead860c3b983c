"""The command `policy new`: a policy as the ConfigMap that `kubectl apply -f -` takes."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from typing import Any, NoReturn

import click

from webhook.cli.options import POLICY_NAMESPACE
from webhook.cli.terminal import fail


@click.command()
@click.argument("name")
@click.option("--from", "source", metavar="FILE", help="A policy to start from. Default: one that sets nothing.")
@click.option("-l", "--selector", help="The namespaces that it is for, as kubectl has selectors. Default: all.")
@click.option("--mode", type=click.Choice(["enforce", "warn", "audit"]), help="The most that a rule does.")
@click.option("--priority", type=int, help="The higher wins.")
@click.option("--inject-only", metavar="IDS", help="These injections alone, with commas; '' for none.")
@POLICY_NAMESPACE
def new(*, name: str, source: str | None, selector: str | None, policy_namespace: str, **values: Any) -> NoReturn:
    """Write a policy as a complete ConfigMap.

    It has the label by which the service finds it and is for the service's namespace, so `kubectl apply -f -` puts it
    in force. An option replaces what the file of --from has; all else stays as it is there, but for its comments.

    A ConfigMap with the NAME of one that is there takes its place.

    \b
    Examples:
      mpijob-webhook policy new warn --mode warn --selector '!mpijob-enforced' | kubectl apply -f -
      mpijob-webhook policy new premium -l 'tier in (gold,silver)' --priority 10 > premium.yaml
      mpijob-webhook policy new first --from base.yaml --mode audit --inject-only labels,mpi-env
      mpijob-webhook policy new first --mode warn | mpijob-webhook policy replay --policy -

    \b
    Exit code:
      0  written
      2  unusable input: the name, an option or the file
    """
    from webhook.cli.policy import configmap
    from webhook.policy.document import PolicyError

    try:
        text = configmap.text(name, policy_namespace, source=source, selector=selector, **values)
    except ValueError as error:
        fail(error)
    except PolicyError as error:
        fail(*str(error).splitlines())
    click.echo(text, nl=False)
    sys.exit(0)
