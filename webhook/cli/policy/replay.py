"""The command `policy replay`."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from webhook.cli.options import OUTPUT, about_new_policies, show
from webhook.cli.terminal import fail
from webhook.client.access import Access
from webhook.server.clock import today


@click.command()
@about_new_policies
@OUTPUT
def replay(
    *,
    files: tuple[str, ...],
    without: tuple[str, ...],
    cluster: Path | None,
    access: Access,
    policy_namespace: str,
    output: str,
) -> NoReturn:
    """Judge existing jobs under changed policies.

    Every MPIJob of the cluster is judged twice as if it were submitted now: under the current policies, and under the
    new policies. The new policies are the current ones after `kubectl apply` of the --policy files and deletion of the
    --without policies. A policy without a ConfigMap is added under the name of its file. The command changes nothing.

    Injections are compared too, except values that were injected into the job before.

    \b
    Examples:
      mpijob-webhook policy replay --policy new.yaml
      mpijob-webhook policy replay --policy policies/ --kubeconfig ~/.kube/config -o json
      mpijob-webhook policy replay --without mpijob-policy-audit-only
      kubectl get namespaces,mpijobs,priorityclasses -A -o yaml > cluster.yaml
      mpijob-webhook policy replay --policy new.yaml --cluster cluster.yaml

    \b
    Exit code:
      0  no job would newly be denied
      1  at least one job would newly be denied
      2  unusable input: a file, a policy in it or the cluster
    """
    from webhook.cli.policy import inputs, replay_report

    if not files and not without:
        fail("no policy to replay: name policies with --policy or --without")
    changes = inputs.policies(files)
    world = inputs.cluster(cluster, access, policy_namespace, jobs=True)
    layers = inputs.after(changes, world, without)
    with click.progressbar(world.jobs, label="judging", file=sys.stderr, hidden=not sys.stderr.isatty()) as jobs:
        report = replay_report.replay(world, jobs, layers, today=today())
    show(output, report.as_text(), report.as_json())
    sys.exit(0 if report.safe else 1)
