"""The command `policy new`."""

import sys
from typing import Any, NoReturn

import click

from webhook.cli.options import POLICY_NAMESPACE
from webhook.cli.terminal import fail


@click.command()
@click.argument("name")
@click.option("--from", "source", metavar="FILE", help="A policy to start from. Default: a policy without settings.")
@click.option("-l", "--selector", help="The namespaces of the policy, in kubectl's selector syntax. Default: all.")
@click.option("--mode", type=click.Choice(["enforce", "warn", "audit"]), help="The strictest action of a rule.")
@click.option("--priority", type=int, help="The policy with the highest priority wins.")
@click.option("--inject-only", metavar="IDS", help="Allow only these injections, separated by commas; '' allows none.")
@click.option("--set", "settings", metavar="PATH=VALUE", multiple=True, help="A setting; repeatable.")
@POLICY_NAMESPACE
def new(
    *,
    name: str,
    policy_namespace: str,
    settings: tuple[str, ...],
    **values: Any,
) -> NoReturn:
    """Write a policy as a complete ConfigMap.

    The ConfigMap has the label and the namespace by which the service finds policies. `kubectl apply -f -` creates the
    ConfigMap in the cluster, or replaces the ConfigMap with the same NAME.

    With --from, the options replace values of the policy in FILE. Comments are lost.

    \b
    Examples:
      mpijob-webhook policy new warn --mode warn --selector '!mpijob-enforced' | kubectl apply -f -
      mpijob-webhook policy new premium -l 'tier in (gold,silver)' --priority 10 > premium.yaml
      mpijob-webhook policy new dev -l tier=dev --set rules.worker-count.max=8 > dev.yaml
      mpijob-webhook policy new first --from base.yaml --mode audit --inject-only labels,mpi-env
      mpijob-webhook policy new first --mode warn | mpijob-webhook policy replay --policy -

    \b
    Exit code:
      0  the policy was written
      2  unusable input: the name, an option or the file
    """
    from webhook.cli.policy import configmap
    from webhook.policy.document import PolicyError

    try:
        text = configmap.text(name, policy_namespace, settings=settings, **values)
        click.echo(text, nl=False)
    except PolicyError as error:
        fail(*str(error).splitlines())
    except ValueError as error:
        fail(error)
    sys.exit(0)
