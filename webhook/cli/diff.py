"""The command `diff`: what admission would put into jobs that the cluster has."""
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
    """Show what would be put into jobs now.

    A job of the cluster stands beside itself as it would be if it were created now: with what the policies of today
    inject, from the cluster of today. A job from before the webhook, or before a policy, differs in what it lacks; it
    gets that when it is created again.

    Without NAME it is every job of the namespace. For a file `kubectl diff -f` shows it, with the change itself: it
    asks the API server, which asks the webhook.

    It reads what you may read. What could not be read is named at the end. It ends as `kubectl diff` does.

    \b
    Examples:
      mpijob-webhook diff team-a/train
      mpijob-webhook diff -n team-a
      kubectl mpijob diff team-a/train

    \b
    Exit code:
      0  nothing would be put in
      1  something would
      2  there is no such job, or the cluster cannot be asked; the message says why
    """
    from webhook.cli import job_diff

    found = read_jobs(
        access, job, namespace, lambda api, space, name: job_diff.diffs(api, space, name, policy_namespace)
    )
    show(output, (line for each in found for line in each.as_text()), [each.as_json() for each in found])
    if output == "text":
        for why, names in {why: names for each in found for why, names in each.unjudged.items()}.items():
            click.echo(faint(printable(f"not judged: what depends on {', '.join(names)} ({why})")), err=True)
    sys.exit(1 if any(each.differs for each in found) else 0)
