"""The command `convert trainjob`."""
# ruff: noqa: PLC0415 - imports inside commands keep --help and completion fast

from typing import TYPE_CHECKING, NoReturn

import click

from webhook.cli.options import OUTPUT, files_too

if TYPE_CHECKING:
    from webhook.cli.conversions import Conversion
    from webhook.cli.files import Manifest


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=files_too)
@OUTPUT
def trainjob(*, files: tuple[str, ...], output: str) -> NoReturn:
    """Convert MPIJobs to TrainJobs of Kubeflow Trainer 2.3.

    Each MPIJob of kubeflow.org/v2beta1 becomes a TrainingRuntime, which has the pods, and a TrainJob that names this
    runtime. The pods have the same containers, variables and resources, but JobSet gives them other names and labels.
    Trainer supports only Open MPI. Nothing is injected into TrainJobs: convert a job from the cluster to keep its
    injections. Other objects are written unchanged. A FILE may be YAML or JSON with several documents and lists, a
    directory (its .yaml, .yml and .json files), or - for standard input.

    Standard error has a report on each job: what moved, what changed, what is lost and what is left to do. The
    report includes the verdict of `mpijob-webhook check --trainer` without a cluster. With -o json, standard output has
    the reports too.

    \b
    Examples:
      mpijob-webhook convert trainjob job.yaml > trainjob.yaml
      kubectl get mpijob NAME -o yaml | mpijob-webhook convert trainjob - > trainjob.yaml

    \b
    Exit code:
      0  every MPIJob was converted to a TrainJob that would be admitted
      1  at least one job cannot be converted, or would be rejected without further changes
      2  unusable input: a file is broken, or it has no MPIJob
    """
    from webhook.cli import conversions
    from webhook.cli import files as manifests

    loaded, errors = manifests.load(files)
    conversions.end([*map(_converted, loaded)], errors, output, f"no MPIJob in {', '.join(files)}")


def _converted(manifest: "Manifest") -> "Conversion":
    from webhook.cli import files, job_world
    from webhook.cli.conversions import Conversion
    from webhook.cli.terminal import heading, printable
    from webhook.converters.report import ConversionError
    from webhook.parts.trainer import check, conversion

    source, title = manifest.source, "/".join(filter(None, (manifest.namespace, manifest.title)))
    if manifest.kind != "MPIJob":
        head = printable(f"{source}: {manifest.kind} {manifest.title}: is not an MPIJob, left as it is")
        return Conversion(source, head, manifest.written or manifest.document, is_job=False)
    where = printable(f"{source}: {title}")
    try:
        converted, runtime = conversion.convert(manifest.document)
    except ConversionError as error:
        return Conversion(source, f"{where}: {error}")
    job, world = files.Manifest(source, converted.document), job_world.of_nothing()
    verdict = check.check(job, world, runtimes=[files.Manifest(source, runtime)], namespace=world.namespace)
    head = f"{heading(where)}: is a {job.kind} of {job.api_version} now"
    return Conversion(source, head, job.document, [*converted.report.notes], verdict, needs=runtime)
