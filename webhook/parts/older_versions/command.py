"""The command `convert mpijob`. `convert` without a kind is the same command."""
# ruff: noqa: PLC0415 - imports inside commands keep --help and completion fast

from typing import TYPE_CHECKING, NoReturn

import click

from webhook.cli.options import OUTPUT, files_too, utf8_text

if TYPE_CHECKING:
    from webhook.cli.conversions import Conversion
    from webhook.cli.files import Manifest
    from webhook.parts.older_versions.replica_specs import Options


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=files_too)
@click.option(
    "--gpus-per-node",
    type=click.IntRange(min=1),
    metavar="N",
    help="The operator's flag --gpus-per-node or --processing-units-per-node, for v1alpha1 jobs that do not set it.",
)
@click.option(
    "--ssh-path",
    type=utf8_text,
    metavar="PATH",
    help="spec.sshAuthMountPath. Default: not set, which means /root/.ssh.",
)
@click.option("--keep-launcher-small", is_flag=True, help="Remove GPUs from a launcher instead of running ranks on it.")
@OUTPUT
def mpijob(
    *, files: tuple[str, ...], gpus_per_node: int | None, ssh_path: str | None, keep_launcher_small: bool, output: str
) -> NoReturn:
    """Convert MPIJobs of older versions.

    Jobs of kubeflow.org/v1 (of mpi-operator and of training-operator), v1alpha2 and v1alpha1 are written to standard
    output as kubeflow.org/v2beta1. Other objects are written unchanged. A FILE may be YAML or JSON with several
    documents and lists, a directory (its .yaml, .yml and .json files), or - for standard input.

    Standard error has a report on each job: what moved, what changed, what is lost and what is left to do. Images
    need ssh now. Each job is then checked, as by `mpijob-webhook check` without a cluster. With -o json, standard
    output has the reports too.

    \b
    Examples:
      mpijob-webhook convert old.yaml > new.yaml
      mpijob-webhook convert jobs/ --gpus-per-node 8 > new.yaml
      kubectl get mpijobs -A -o yaml | mpijob-webhook convert - > new.yaml

    \b
    Exit code:
      0  every job is a v2beta1 job now, and the converted jobs would be admitted
      1  at least one job cannot be converted, or would be rejected without further changes
      2  unusable input: a file is broken, or it has no MPIJob
    """
    from webhook.cli import conversions
    from webhook.cli import files as manifests
    from webhook.parts.older_versions.replica_specs import Options

    loaded, errors = manifests.load(files)
    options = Options(gpus_per_node=gpus_per_node, ssh_path=ssh_path, keep_launcher_small=keep_launcher_small)
    outcomes = [_converted(manifest, options) for manifest in loaded]
    conversions.end(outcomes, errors, output, f"no MPIJob in {', '.join(files)}")


def _converted(manifest: "Manifest", options: "Options") -> "Conversion":
    from webhook.api.mpijob import API_VERSION
    from webhook.cli import job_check
    from webhook.cli.conversions import Conversion, checked
    from webhook.cli.terminal import heading, printable
    from webhook.converters.report import ConversionError
    from webhook.parts.older_versions import older_jobs

    original = manifest.written or manifest.document
    if not job_check.is_job(manifest):
        head = printable(f"{manifest.source}: {manifest.kind} {manifest.title}: is not an MPIJob, left as it is")
        return Conversion(manifest.source, head, original, is_job=False)
    title = printable(f"{manifest.source}: {'/'.join(filter(None, (manifest.namespace, manifest.title)))}")
    if manifest.kind != "MPIJob":
        return Conversion(
            manifest.source, f'{title}: kind: "{printable(manifest.kind)}" is not supported. Write MPIJob.'
        )
    if manifest.api_version == API_VERSION:
        return Conversion(manifest.source, f"{title}: is already of {API_VERSION}, left as it is", original)
    try:
        converted = older_jobs.convert(manifest.document, options)
    except ConversionError as error:
        return Conversion(manifest.source, f"{title}: {error}")
    return checked(converted, f"{heading(title)}: {manifest.api_version} is {API_VERSION} now", manifest.source)
