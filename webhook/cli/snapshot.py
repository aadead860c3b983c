"""The command `snapshot`: what a cluster holds, written to a file."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from webhook.cli.options import FILE, KUEUE_NAMESPACE, POLICY_NAMESPACE, about_a_cluster, namespace_option
from webhook.cli.terminal import fail
from webhook.client.access import Access


@click.command()
@about_a_cluster()
@namespace_option("Only this one; may be repeated. Default: all.", "namespaces", multiple=True)
@POLICY_NAMESPACE
@KUEUE_NAMESPACE
@click.option("-o", "--output", type=FILE, help="The file to write. Default: standard output.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def snapshot(
    *, access: Access, namespaces: tuple[str, ...], output: Path | None, force: bool, **where: Any
) -> NoReturn:
    """Write what a cluster holds to a file.

    The file is what the other commands take with --cluster: the jobs and policies there are, and of quotas, queues,
    nodes and all else only the fields that rules look at. No Secret is read, and no ConfigMap's data but that of
    policies and of Kueue's configuration. Jobs are kept as they are stored, with their environment: the file can be
    read by its owner alone.

    With --namespace, what is in other namespaces is unknown, not absent; rights to look into those suffice. Whatever
    cannot be read is reported and stays unknown, which never refuses a job.

    \b
    Examples:
      mpijob-webhook snapshot -o cluster.yaml
      mpijob-webhook snapshot -n team-a -n team-b --context prod -o teams.yaml
      mpijob-webhook check job.yaml --cluster cluster.yaml

    \b
    Exit code:
      0  written; kinds that the cluster does not have are no fault
      1  written, but some of it could not be read
      2  not written; the message says why
    """
    from webhook.cli import snapshot_file

    if output is not None and output.exists() and not force:
        fail(f"{output} is there already, --force replaces it")
    sys.exit(snapshot_file.run(output, access=access, namespaces=namespaces, **where))
