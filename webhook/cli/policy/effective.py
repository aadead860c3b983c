"""The command `policy effective` shows the values that apply in one namespace."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from pathlib import Path
from typing import NoReturn

import click

from webhook.cli.options import about_new_policies, namespace_option, show
from webhook.cli.terminal import fail
from webhook.client.access import Access
from webhook.server.clock import today


@click.command()
@namespace_option("The namespace whose values are shown.", required=True)
@about_new_policies
@click.option("--at", "revision", metavar="REVISION", help="Read the files of --policy from this git revision.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "yaml", "json"]),
    default="text",
    help="yaml is one policy document.",
)
def effective(
    *,
    namespace: str,
    files: tuple[str, ...],
    without: tuple[str, ...],
    cluster: Path | None,
    access: Access,
    policy_namespace: str,
    revision: str | None,
    output: str,
) -> NoReturn:
    """Show the values that apply in a namespace.

    Each value is shown with the policy that sets it, or as a built-in default. The policies are read from the cluster.
    --policy adds policies from files: a ConfigMap replaces one of the same name, like `kubectl apply`, and a bare
    document is added under the name of its file.

    With only --policy, no cluster is read. Policies with a selector are ignored if the labels of the namespace are
    unknown. A policy from `serve --policy` is not included.

    With --at, the files of --policy are read from a revision of their git repository: a branch, a tag or a hash.
    Nothing is checked out.

    \b
    Examples:
      mpijob-webhook policy effective --namespace team-a
      mpijob-webhook policy effective --namespace team-a --policy new.yaml --kubeconfig ~/.kube/config
      mpijob-webhook policy effective --namespace team-a --policy policies/ --cluster cluster.yaml -o json
      mpijob-webhook policy effective --namespace team-a --policy policies/ --at v1.4

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

    if revision is not None and not files:
        fail("--at is for the files of --policy: add --policy")
    origin = ""
    if revision is None:
        changes = inputs.policies(files)
    else:
        changes, at = inputs.policies_at(files, revision)
        origin = f"{', '.join(files)} at {at}"
    offline = files and cluster is None and access == Access()
    world = JobWorld() if offline else inputs.cluster(cluster, access, policy_namespace, namespace=namespace)
    policies = PolicySet(inputs.after(changes, world, without))
    where = " and ".join(each for each in (world.origin, origin) if each)
    stored = world.cluster.get(NAMESPACES, namespace)
    outcome = for_namespace(namespace, stored, policies, today=today(), origin=where)
    if output == "yaml":
        click.echo(outcome.as_yaml(), nl=False)
    else:
        show(output, outcome.as_text(), outcome.as_json())
    sys.exit(0)
