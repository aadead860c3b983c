"""The command `policy replay`: the verdicts on a cluster's jobs under other policies."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from pathlib import Path
from typing import NoReturn

import click

from webhook.cli.options import about_new_policies, show
from webhook.cli.terminal import fail
from webhook.client.access import Access
from webhook.server.clock import today


@click.command()
@about_new_policies
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="The output format: for people, programs or an issue.",
)
def replay(
    *,
    files: tuple[str, ...],
    without: tuple[str, ...],
    cluster: Path | None,
    access: Access,
    policy_namespace: str,
    output: str,
) -> NoReturn:
    """Judge the jobs that exist under other policies.

    Every MPIJob of the cluster is judged as if it were submitted now, under the policies in force and under those that
    would be: ConfigMaps replace those with the same name, as `kubectl apply` does; a bare document is added under the
    name of its file; those named with --without are removed. The cluster is not changed, and existing jobs keep running
    whatever the policy says.

    Injections are compared too: into the job as its user wrote it, as far as the job records what was injected.

    \b
    Examples:
      mpijob-webhook policy replay --policy new.yaml
      mpijob-webhook policy replay --policy policies/ --kubeconfig ~/.kube/config -o json
      mpijob-webhook policy replay --without mpijob-policy-audit-only
      kubectl get namespaces,mpijobs,priorityclasses -A -o yaml > cluster.yaml
      mpijob-webhook policy replay --policy new.yaml --cluster cluster.yaml
      mpijob-webhook policy replay --policy new.yaml -o markdown

    \b
    Exit code:
      0  no job would newly be denied
      1  at least one would
      2  unusable input: a file, a policy in it or the cluster
    """
    from webhook.cli.policy import inputs, replay_report

    if not files and not without:
        fail("no policy to replay: name policies with --policy or --without")
    given = inputs.policies(files)
    known = inputs.cluster(cluster, access, policy_namespace, jobs=True)
    layers = inputs.after(given, known, without)
    with click.progressbar(known.jobs, label="judging", file=sys.stderr, hidden=not sys.stderr.isatty()) as jobs:
        report = replay_report.replay(known, jobs, layers, today=today())
    show(output, replay_report.markdown(report) if output == "markdown" else report.as_text(), report.as_json())
    sys.exit(0 if report.safe else 1)
