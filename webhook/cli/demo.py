"""The command `demo` shows on examples what the webhook does."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from typing import NoReturn

import click

from webhook.cli.terminal import fail


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
def demo(files: tuple[str, ...]) -> NoReturn:
    """Demonstrate the webhook with examples.

    The real service runs on 127.0.0.1 with a temporary certificate. It gets each job like from the API server: mutate,
    apply the patch, validate. The output of kubectl and the injected fields are shown. No cluster is needed.

    Without FILE, the examples of this project are used: Open MPI, Intel MPI, MPICH, Horovod, and some bad jobs.

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
