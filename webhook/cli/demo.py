"""The command `demo`."""

import sys
from typing import NoReturn

import click

from webhook.cli.terminal import fail


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
def demo(files: tuple[str, ...]) -> NoReturn:
    """Demonstrate the webhook with examples.

    The command starts the real service on 127.0.0.1, and sends each job to it, as the API server does. It shows the
    output of kubectl and the injected fields. No cluster is needed.

    Without FILE, the jobs are examples for Open MPI, Intel MPI, MPICH and Horovod, and some bad jobs.

    \b
    Examples:
      mpijob-webhook demo
      mpijob-webhook demo job.yaml

    \b
    Exit code:
      0  every job was shown, and every example had the expected verdict
      1  an example had a different verdict
      2  a file cannot be used, or the service failed
    """
    from webhook.cli import walkthrough
    from webhook.cli.files import ManifestError
    from webhook.server.service import StartError

    try:
        sys.exit(0 if walkthrough.show(files) else 1)
    except (ManifestError, StartError, walkthrough.DemoError) as error:
        fail(error)
