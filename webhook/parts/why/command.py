"""The command `why`."""
# ruff: noqa: PLC0415 - imports inside commands keep --help and completion fast

import sys
from typing import NoReturn

import click

from webhook.cli.options import REFUSED, about_jobs, read_jobs, show
from webhook.client.access import Access


@click.command()
@about_jobs
def why(*, job: str | None, access: Access, namespace: str | None, policy_namespace: str, output: str) -> NoReturn:
    """Say why a job does not run.

    The first line has the state of the job and the reason. All causes follow, each with its source and the fix: the
    job's own status, Kueue's Workload and its place in the queue, rejected pods, pods without a node, containers that
    do not start, the log of a failed launcher, the deadline, and the verdict of admission. Causes that block the job
    now are first.

    Without NAME it prints a line for each job of the namespace that does not run.

    It reads what you may read, and no Secret. The last lines name objects that could not be read.

    \b
    Examples:
      mpijob-webhook why team-a/train
      mpijob-webhook why train -n team-a -o json
      mpijob-webhook why -n team-a
      kubectl mpijob why team-a/train

    \b
    Exit code:
      0  it runs, is being started, or has succeeded
      1  it does not run, or has failed
      2  the job does not exist, or the cluster cannot be read; the message says why
    """
    from webhook.parts.why import report

    job_reports = read_jobs(
        access, job, namespace, lambda api, space, name: report.reports(api, space, name, policy_namespace)
    )
    if job and not job.endswith("/"):
        show(output, job_reports[0].as_text(), job_reports[0].as_json())
    else:
        show(output, report.overview(job_reports), [job_report.as_json() for job_report in job_reports])
    sys.exit(0 if all(job_report.good for job_report in job_reports) else REFUSED)
