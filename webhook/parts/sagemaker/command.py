"""The command `convert sagemaker`."""
# ruff: noqa: PLC0415 - imports inside commands keep --help and completion fast

from typing import TYPE_CHECKING, Any, NoReturn

import click

from webhook.cli.options import OUTPUT, files_too, object_name, utf8_text

if TYPE_CHECKING:
    from webhook.cli.conversions import Conversion
    from webhook.parts.sagemaker.machines import Instance, Options


def _pair(value: str, example: str) -> tuple[str, str]:
    name, equals, rest = value.partition("=")
    if not (name and equals and rest):
        raise click.BadParameter(f'"{value[:100]}" is not {example}')
    return name, rest


def _claim(value: str) -> tuple[str, str]:
    return _pair(utf8_text(value), "NAME=CLAIM, such as train=imagenet or train=datasets/imagenet")


def _instance(value: str) -> "tuple[str, Instance]":
    from webhook.parts.sagemaker import machines

    name, size = _pair(value, "TYPE=CPUS,GIB,GPUS[,EFA]")
    try:
        return name, machines.parse(size)
    except ValueError as error:
        raise click.BadParameter(f'"{size[:100]}" {error}') from None


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=files_too)
@click.option("--image", type=utf8_text, metavar="IMAGE", help="The image. Default: the request's.")
@click.option(
    "--claim",
    "claims",
    type=_claim,
    metavar="NAME=CLAIM[/DIR]",
    multiple=True,
    help="The claim for NAME, which is a channel, code, model or checkpoints. Repeatable. Default: a claim to fill in.",
)
@click.option(
    "--s3-image",
    type=utf8_text,
    metavar="IMAGE",
    help="Fetch data without a --claim from S3, with `aws s3 cp` in this image.",
)
@click.option(
    "--s3-secret",
    type=utf8_text,
    metavar="NAME",
    help="The Secret with the AWS credentials (such as AWS_ACCESS_KEY_ID) for --s3-image.",
)
@click.option("--code-in-image", is_flag=True, help="The program is in /opt/ml/code of the image.")
@click.option(
    "--instance",
    "instances",
    type=_instance,
    metavar="TYPE=CPUS,GIB,GPUS[,EFA]",
    multiple=True,
    help="The resources of an instance type that the converter does not know or that has changed; repeatable.",
)
@click.option(
    "--processes-per-host",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes on each machine, if the request does not set them. Default: SageMaker's default.",
)
@click.option(
    "--network",
    type=click.Choice(("efa", "rdma", "none")),
    default="efa",
    help="efa: EFA if the instance type has it; rdma: the cluster's RDMA devices; none: neither.",
)
@click.option("-n", "--namespace", type=object_name, metavar="NAME", help="The namespace of the jobs. Default: none.")
@OUTPUT
def sagemaker(
    *,
    files: tuple[str, ...],
    claims: tuple[tuple[str, str], ...],
    instances: "tuple[tuple[str, Instance], ...]",
    output: str,
    **settings: Any,
) -> NoReturn:
    """Convert training jobs of Amazon SageMaker.

    A FILE has requests for CreateTrainingJob, as the SDK's estimators create them, or answers of DescribeTrainingJob.
    It may be YAML, a directory, or - for standard input.

    Each machine becomes a worker with its GPUs, CPUs, memory and EFA adapters, with as many ranks as SageMaker would
    have started. mpirun gets the options of the distribution `mpi`, and starts torchrun for `torch_distributed`. Jobs
    that depend on smdistributed, parameter servers or machines of several types cannot be converted.

    `mpijob-webhook check` rejects the job until you replace the values that begin with FILL-IN. --claim and --s3-image
    fill in most of these values.

    \b
    Examples:
      mpijob-webhook convert sagemaker request.json > job.yaml
      mpijob-webhook convert sagemaker request.json --claim train=imagenet --claim model=models --code-in-image
      mpijob-webhook convert sagemaker request.json --s3-image registry.example.com/aws-cli:2.27 --s3-secret s3
      aws sagemaker describe-training-job --training-job-name NAME | mpijob-webhook convert sagemaker -

    \b
    Exit code:
      0  every training job was converted to an MPIJob that would be admitted
      1  at least one job cannot be converted, or would be rejected without further changes
      2  unusable input: a file is broken, or it is empty
    """
    from webhook.cli import conversions
    from webhook.cli import files as manifests
    from webhook.parts.sagemaker.machines import Options

    options = Options(**settings, claims=dict(claims), instances=dict(instances))
    outcomes, errors = [], []
    for file in files:
        try:
            for source in manifests.files(file):
                for shown, document in manifests.documents(source):
                    outcomes.append(_converted(shown, document, options))
        except manifests.ManifestError as error:
            errors.append(error)
    conversions.end(outcomes, errors, output, f"no training job in {', '.join(files)}")


def _converted(source: str, document: Any, options: "Options") -> "Conversion":
    from webhook.api.mpijob import API_VERSION
    from webhook.cli.conversions import Conversion, checked
    from webhook.cli.terminal import heading, printable
    from webhook.converters.report import ConversionError
    from webhook.parts.sagemaker import job

    name = document.get("TrainingJobName") if isinstance(document, dict) else None
    title = printable(f"{source}: {name}" if isinstance(name, str) else source)
    try:
        converted = job.convert(document, options)
    except ConversionError as error:
        return Conversion(source, f"{title}: {error}")
    head = f"{heading(title)}: is MPIJob {converted.document['metadata']['name']} of {API_VERSION} now"
    return checked(converted, head, source)
