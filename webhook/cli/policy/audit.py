"""The command `policy audit`: the jobs of a cluster that break its current policies."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from pathlib import Path
from typing import NoReturn

import click

from webhook.cli.options import OUTPUT, REFUSED, about_new_policies, namespace_option, show
from webhook.client.access import Access
from webhook.server.clock import today


@click.command()
@about_new_policies
@namespace_option("Judge the jobs of this namespace only. Default: of all.", default="")
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
    """List the jobs that exist and break the policy.

    Every MPIJob that has not ended is judged as if it were submitted now, under the policies in force: the worst come
    first, each with all faults and fixes. Nothing is changed, and existing jobs keep running whatever the policy says.
    With --policy and --without the job is judged by the policies that would then be in force.

    A job's own use of a quota is not held against it. The user who submitted it is unknown: exemptions for users
    are left out, and exemptions that a job requests by annotation are applied.

    It reads what you may read. With --namespace that is the jobs and objects of one namespace, and the policies.

    \b
    Examples:
      mpijob-webhook policy audit
      mpijob-webhook policy audit -n team-a -o json
      mpijob-webhook policy audit --policy new.yaml --cluster cluster.yaml

    \b
    Exit code:
      0  no job would be rejected
      1  at least one would
      2  unusable input: a file, a policy in it or the cluster
    """
    from webhook.cli.policy import audit_report, inputs

    given = inputs.policies(files)
    known = inputs.cluster(cluster, access, policy_namespace, namespace=namespace, jobs=True)
    layers = inputs.after(given, known, without)
    with click.progressbar(known.jobs, label="judging", file=sys.stderr, hidden=not sys.stderr.isatty()) as jobs:
        report = audit_report.audit(known, layers, jobs, namespace=namespace, today=today())
    show(output, report.as_text(), report.as_json())
    sys.exit(REFUSED if report.refused else 0)
