"""The command `policy effective`."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from webhook.cli.options import OUTPUT, about_new_policies, namespace_option, show
from webhook.client.access import Access
from webhook.server.clock import today


@click.command()
@namespace_option("The namespace whose values are shown.", required=True)
@about_new_policies
@OUTPUT
def effective(
    *,
    namespace: str,
    files: tuple[str, ...],
    without: tuple[str, ...],
    cluster: Path | None,
    access: Access,
    policy_namespace: str,
    output: str,
) -> NoReturn:
    """Show the values that apply in a namespace.

    Each value is shown with the policy that sets the value, or as a built-in default. The policies are read from the
    cluster. --policy adds policies from files, as `kubectl apply` would. A policy without a ConfigMap is added under
    the name of its file. With only --policy, no cluster is read.

    Policies with a selector are ignored if the labels of the namespace are unknown. A policy from `serve --policy` is
    not included.

    \b
    Examples:
      mpijob-webhook policy effective --namespace team-a
      mpijob-webhook policy effective --namespace team-a --policy new.yaml --kubeconfig ~/.kube/config
      mpijob-webhook policy effective --namespace team-a --policy policies/ --cluster cluster.yaml -o json
      git show v1.4:policy.yaml | mpijob-webhook policy effective --namespace team-a --policy -

    \b
    Exit code:
      0  the values were shown
      2  unusable input: a file, a policy in it or the cluster
    """
    from webhook.cli.job_world import JobWorld
    from webhook.cli.policy import inputs
    from webhook.cli.policy.effective_values import for_namespace
    from webhook.cluster.resources.namespaces import NAMESPACES
    from webhook.policy.in_force import PolicySet

    changes = inputs.policies(files)
    offline = files and cluster is None and access == Access()
    world = JobWorld() if offline else inputs.cluster(cluster, access, policy_namespace, namespace=namespace)
    policies = PolicySet(inputs.after(changes, world, without))
    stored = world.cluster.get(NAMESPACES, namespace)
    outcome = for_namespace(namespace, stored, policies, today=today(), origin=world.origin)
    show(output, outcome.as_text(), outcome.as_json())
    sys.exit(0)
