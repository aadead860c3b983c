"""The commands `mpijob-webhook convert ...`: their group, and the one for MPIJobs of older versions."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

from typing import NoReturn

import click

from webhook.cli.convert_sagemaker import sagemaker
from webhook.cli.convert_trainjob import trainjob
from webhook.cli.options import OUTPUT, files_too, utf8_text


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=files_too)
@click.option(
    "--gpus-per-node",
    type=click.IntRange(min=1),
    metavar="N",
    help="The operator's flag --gpus-per-node or --processing-units-per-node, for v1alpha1 jobs that do not say it.",
)
@click.option(
    "--ssh-path",
    type=utf8_text,
    metavar="PATH",
    help="spec.sshAuthMountPath. Default: not set, which means /root/.ssh.",
)
@click.option(
    "--keep-launcher-small", is_flag=True, help="Take GPUs out of a launcher, in place of running ranks on it."
)
@OUTPUT
def mpijob(
    *, files: tuple[str, ...], gpus_per_node: int | None, ssh_path: str | None, keep_launcher_small: bool, output: str
) -> NoReturn:
    """Convert MPIJobs of older versions.

    Jobs of kubeflow.org/v1 (of mpi-operator and of training-operator), v1alpha2 and v1alpha1 are written to standard
    output as kubeflow.org/v2beta1. A FILE may hold several documents and lists, be JSON, be a directory (its .yaml,
    .yml and .json files), or be - for standard input. All else in it, jobs of v2beta1 too, is written as it is.

    Standard error tells of each job what moved, what means something else now, what is lost, and what is left to do:
    workers are reached by ssh now, which the image has to bring. Each job is then checked, as `mpijob-webhook check`
    does it without a cluster. With -o json standard output has all of it.

    \b
    Examples:
      mpijob-webhook convert old.yaml > new.yaml
      mpijob-webhook convert jobs/ --gpus-per-node 8 > new.yaml
      kubectl get mpijobs -A -o yaml | mpijob-webhook convert - > new.yaml

    \b
    Exit code:
      0  every job is of v2beta1 now, and those that were converted would be admitted
      1  at least one cannot be converted, or would be refused before something is changed
      2  unusable input: a file is broken, or there is no MPIJob in it
    """
    from webhook.cli import conversions
    from webhook.cli import files as manifests
    from webhook.converters.report import Options

    found, errors = manifests.load(files)
    wanted = Options(gpus_per_node=gpus_per_node, ssh_path=ssh_path, keep_launcher_small=keep_launcher_small)
    outcomes = [conversions.convert(manifest, wanted) for manifest in found]
    conversions.end(outcomes, errors, output, f"no MPIJob in {', '.join(files)}")


class OfFiles(click.Group):
    """A group whose first subcommand may go without its name: `convert FILE...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, with the name of the subcommand before them."""
        known = {*self.commands, *self.get_help_option_names(ctx)}
        return super().parse_args(ctx, [str(mpijob.name), *args] if args and args[0] not in known else args)


@click.group(cls=OfFiles, commands=(mpijob, sagemaker, trainjob))
def convert() -> None:
    """Write jobs from elsewhere as MPIJobs, or MPIJobs as TrainJobs.

    MPIJobs are of kubeflow.org/v2beta1 then. Without the name of a command, `mpijob-webhook convert FILE...` is
    `mpijob-webhook convert mpijob FILE...`.

    Standard output has the new jobs, standard error a report on each: what moved, what means something else now, what
    is lost, what is left to do, and what `mpijob-webhook check` says of it without a cluster.

    \b
    Examples:
      mpijob-webhook convert old.yaml > new.yaml
      mpijob-webhook convert sagemaker request.json > job.yaml
      mpijob-webhook convert trainjob job.yaml > trainjob.yaml

    \b
    Exit code:
      0  every job is converted and would be admitted
      1  at least one cannot be converted, or would be refused before something is changed
      2  unusable input
    """
