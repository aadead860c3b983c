"""The command `diff`."""

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

    Each job is compared with the job that would be stored if a user created it again now. A job that is older than the
    webhook or a policy lacks some injections.

    Without NAME, every job of the namespace is compared. For a file use `kubectl diff -f`, which also calls the
    webhook.

    The last lines name objects that you may not read. The exit codes are those of `kubectl diff`.

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
    show(output, (line for diff in diffs for line in diff.as_text()), [diff.as_json() for diff in diffs])
    if output == "text":
        for why, names in {why: names for diff in diffs for why, names in diff.unjudged.items()}.items():
            click.echo(faint(printable(f"not judged: rules that need {', '.join(names)} ({why})")), err=True)
    sys.exit(1 if any(diff.differs for diff in diffs) else 0)
