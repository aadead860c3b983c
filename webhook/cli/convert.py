"""The command group `convert`. Optional parts of the program define its commands."""

from itertools import chain
from typing import Final

import click

from webhook.cli.lazy_commands import commands
from webhook.kit.optional_parts import parts

FIRST: Final = "mpijob"


class OfFiles(click.Group):
    """A group with a default command: `convert FILE...` is `convert mpijob FILE...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = {*self.commands, *self.get_help_option_names(ctx)}
        return super().parse_args(ctx, [FIRST, *args] if args and args[0] not in words else args)


@click.group(cls=OfFiles, commands=commands(dict(chain.from_iterable(part.conversions.items() for part in parts()))))
def convert() -> None:
    """Convert other jobs to MPIJobs, or MPIJobs to TrainJobs.

    `mpijob-webhook convert FILE...` is short for `mpijob-webhook convert mpijob FILE...`. The MPIJobs are of
    kubeflow.org/v2beta1.

    The new jobs are written to standard output. A report on each job is written to standard error: fields that moved,
    changed their meaning or are lost, the remaining work, and the verdict of `mpijob-webhook check`.

    \b
    Examples:
      mpijob-webhook convert old.yaml > new.yaml
      mpijob-webhook convert sagemaker request.json > job.yaml
      mpijob-webhook convert trainjob job.yaml > trainjob.yaml

    \b
    Exit code:
      0  every job is converted and would be admitted
      1  at least one job cannot be converted, or would be rejected without further changes
      2  unusable input
    """
