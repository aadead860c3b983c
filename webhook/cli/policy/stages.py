"""The command `policy stages`: what is enforced by and by, from when, and in which namespaces."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import click

from webhook.cli.options import ON, OUTPUT, about_new_policies, show
from webhook.client.access import Access


@click.command()
@about_new_policies
@ON
@OUTPUT
def stages(
    *,
    files: tuple[str, ...],
    without: tuple[str, ...],
    cluster: Path | None,
    access: Access,
    policy_namespace: str,
    now: datetime,
    output: str,
) -> NoReturn:
    """List what policies enforce by and by.

    Each `enforceFrom` and `enforceShare` has a line: what it is about, since when or from when on, and in how many of
    the namespaces that the policy is for; -o json names them. A larger share has all namespaces of a smaller one.

    \b
    Examples:
      mpijob-webhook policy stages
      mpijob-webhook policy stages --on 2027-02-01
      mpijob-webhook policy stages --policy new.yaml --cluster cluster.yaml -o json

    \b
    Exit code:
      0  listed
      2  unusable input: a file, a policy in it or the cluster
    """
    from webhook.cli.policy import inputs, stages_report

    given = inputs.policies(files)
    known = inputs.cluster(cluster, access, policy_namespace, every_namespace=True)
    found = stages_report.report(inputs.after(given, known, without), known.namespaces, now=now)
    lines = [each.as_text() for each in found] or ["nothing is enforced by and by"]
    show(output, lines, [each.as_json() for each in found])
    sys.exit(0)
