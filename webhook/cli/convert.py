"""The group of commands `mpijob-webhook convert ...`; each is in an optional part."""

from itertools import chain
from typing import Final

import click

from webhook.cli.lazy_commands import commands
from webhook.kit.optional_parts import parts

FIRST: Final = "mpijob"


class OfFiles(click.Group):
    """A group whose first subcommand may be left out: `convert FILE...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {*self.commands, *self.get_help_option_names(ctx)}
        return super().parse_args(ctx, [FIRST, *args] if args and args[0] not in known else args)


@click.group(cls=OfFiles, commands=commands(dict(chain.from_iterable(part.conversions.items() for part in parts()))))
def convert() -> None:
    """Convert other jobs to MPIJobs, or MPIJobs to TrainJobs.

    The MPIJobs are of kubeflow.org/v2beta1. Without the name of a command, `mpijob-webhook convert FILE...` is
    `mpijob-webhook convert mpijob FILE...`.

    Standard output has the new jobs, standard error a report on each: what moved, what has another meaning now, what is
    lost, what is left to do, and the verdict of `mpijob-webhook check` without a cluster.

    \b
    Examples:
      mpijob-webhook convert old.yaml > new.yaml
      mpijob-webhook convert sagemaker request.json > job.yaml
      mpijob-webhook convert trainjob job.yaml > trainjob.yaml

    \b
    Exit code:
      0  every job is converted and would be admitted
      1  at least one cannot be converted, or would be rejected before something is changed
      2  unusable input
    """
