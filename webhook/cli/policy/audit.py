"""The command `policy audit`."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from webhook.cli.options import OUTPUT, REFUSED, about_new_policies, namespace_option, show
from webhook.client.access import Access
from webhook.server.clock import today


@click.command()
@about_new_policies
@namespace_option("Judge only the jobs of this namespace. Default: all namespaces.", default="")
@OUTPUT
def audit(
    *,
    files: tuple[str, ...],
    without: tuple[str, ...],
    cluster: Path | None,
    access: Access,
    policy_namespace: str,
    namespace: str,
    output: str,
) -> NoReturn:
    """List the existing jobs that break the policies.

    Every MPIJob that has not ended is judged as if it were submitted now, by the policies of the cluster. --policy and
    --without show the result of a change to the policies. The command changes nothing.

    A job's own use of a quota does not count against the job. The user who submitted the job is unknown: exemptions for
    users are ignored, and exemptions that the job requests by annotation are applied.

    Objects that you may not read are ignored. With --namespace the command reads one namespace and the policies.

    \b
    Examples:
      mpijob-webhook policy audit
      mpijob-webhook policy audit -n team-a -o json
      mpijob-webhook policy audit --policy new.yaml --cluster cluster.yaml

    \b
    Exit code:
      0  no job would be rejected
      1  at least one job would be rejected
      2  unusable input: a file, a policy in it or the cluster
    """
    from webhook.cli.policy import audit_report, inputs

    changes = inputs.policies(files)
    world = inputs.cluster(cluster, access, policy_namespace, namespace=namespace, jobs=True)
    layers = inputs.after(changes, world, without)
    with click.progressbar(world.jobs, label="judging", file=sys.stderr, hidden=not sys.stderr.isatty()) as jobs:
        report = audit_report.audit(world, layers, jobs, namespace=namespace, today=today())
    show(output, report.as_text(), report.as_json())
    sys.exit(REFUSED if report.refused else 0)
