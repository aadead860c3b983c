"""The command `convert trainjob`: MPIJobs as TrainJobs of Kubeflow Trainer."""
# ruff: noqa: PLC0415 - imports inside of commands keep --help and completion quick

from typing import NoReturn

import click

from webhook.cli.options import OUTPUT, files_too


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=files_too)
@OUTPUT
def trainjob(*, files: tuple[str, ...], output: str) -> NoReturn:
    """Convert MPIJobs to TrainJobs of Kubeflow Trainer 2.3.

    Each MPIJob of kubeflow.org/v2beta1 becomes a TrainingRuntime, which has its pods, and a TrainJob that names this
    runtime. The pods have the same containers, variables and resources; their names and labels are those of JobSet.
    Trainer has Open MPI alone. A FILE may hold several documents and lists, be JSON, be a directory (its .yaml, .yml
    and .json files), or be - for standard input. All else in it is written as it is.

    Nothing is injected into TrainJobs. Convert a job as the cluster has it to keep what was injected.

    Standard error has a report on each job: what moved, what means something else now, what is lost, what is left to
    do, and the verdict of `mpijob-webhook check --trainer` without a cluster. With -o json standard output has all.

    \b
    Examples:
      mpijob-webhook convert trainjob job.yaml > trainjob.yaml
      kubectl get mpijob NAME -o yaml | mpijob-webhook convert trainjob - > trainjob.yaml

    \b
    Exit code:
      0  every MPIJob is a TrainJob now that would be admitted
      1  at least one cannot be converted, or would be rejected before something is changed
      2  unusable input: a file is broken, or there is no MPIJob in it
    """
    from webhook.cli import conversions
    from webhook.cli import files as manifests

    found, errors = manifests.load(files)
    conversions.end([*map(conversions.to_train_job, found)], errors, output, f"no MPIJob in {', '.join(files)}")
