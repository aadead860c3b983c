"""The command `demo`: what the webhook does, shown on examples."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

import sys
from typing import NoReturn

import click

from webhook.cli.terminal import fail


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]")
def demo(files: tuple[str, ...]) -> NoReturn:
    """Demonstrate the webhook with examples.

    The real service starts on 127.0.0.1 with a temporary certificate, and gets each job as the API server would send
    it: mutate, apply the patch, validate. You see what kubectl would show, and what was injected. No cluster is needed.

    Without FILE it shows the examples of this project: Open MPI, Intel MPI, MPICH and Horovod, and some bad ones.

    \b
    Examples:
      mpijob-webhook demo
      mpijob-webhook demo job.yaml

    \b
    Exit code:
      0  shown, and every example did what its first line says
      1  an example did something else
      2  a file cannot be used, or the service failed
    """
    from webhook.cli import walkthrough
    from webhook.cli.files import ManifestError
    from webhook.server.service import StartError

    try:
        sys.exit(0 if walkthrough.show(files) else 1)
    except (ManifestError, StartError, walkthrough.DemoError) as error:
        fail(error)
