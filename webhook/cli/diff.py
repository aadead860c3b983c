"""The command `diff` shows what would be injected into the jobs of a cluster."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from typing import NoReturn

import click

from webhook.cli.options import about_jobs, read_jobs, show
from webhook.cli.terminal import faint, printable
from webhook.client.access import Access


@click.command()
@about_jobs
def diff(*, job: str | None, access: Access, namespace: str | None, policy_namespace: str, output: str) -> NoReturn:
    """Show what would be injected into existing jobs.

    Each job of the cluster is compared with the job that admission would store if it were created now. A job that is
    older than the webhook or a policy lacks some injections. It gets them when it is created again.

    Without NAME, every job of the namespace is compared. For a file use `kubectl diff -f`: it sends a dry run to the
    API server, which calls the webhook, and it also shows the user's own changes.

    Only objects that you may read are used. The last lines name the objects that could not be read. The exit codes are
    the same as of `kubectl diff`.

    \b
    Examples:
      mpijob-webhook diff team-a/train
      mpijob-webhook diff -n team-a
      kubectl mpijob diff team-a/train

    \b
    Exit code:
      0  nothing would be injected
      1  something would be injected
      2  the job does not exist, or the cluster cannot be read; the message says why
    """
    from webhook.cli import job_diff

    diffs = read_jobs(
        access, job, namespace, lambda api, space, name: job_diff.diffs(api, space, name, policy_namespace)
    )
    show(output, (line for each in diffs for line in each.as_text()), [each.as_json() for each in diffs])
    if output == "text":
        for why, names in {why: names for each in diffs for why, names in each.unjudged.items()}.items():
            click.echo(faint(printable(f"not judged: rules that need {', '.join(names)} ({why})")), err=True)
    sys.exit(1 if any(each.differs for each in diffs) else 0)
