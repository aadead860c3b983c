"""The fields of a SageMaker training job that the conversion uses.

Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html. DescribeTrainingJob has
the same field names.
"""

from typing import Annotated, Any, Final

import msgspec

from webhook.api.shape import decode_error
from webhook.api.untyped import without_nulls
from webhook.converters.report import ConversionError

Count = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Seconds = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Gigabytes = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Texts = list[str] | None
_REQUIRED: Final = ("TrainingJobName", "AlgorithmSpecification", "ResourceConfig")


class Struct(msgspec.Struct, rename="pascal", frozen=True):
    """The base class. Its fields have the names of the API's fields in snake case."""


class Algorithm(Struct, frozen=True):
    """The program."""

    training_image: str | None = None
    algorithm_name: str | None = None
    training_input_mode: str | None = None
    container_entrypoint: Texts = None
    container_arguments: Texts = None


class InstanceGroup(Struct, frozen=True):
    """Machines of one type."""

    instance_type: str = ""
    instance_count: Count = 1


class Resources(Struct, frozen=True):
    """The machines."""

    instance_type: str | None = None
    instance_count: Count | None = None
    volume_size: Gigabytes | None = msgspec.field(default=None, name="VolumeSizeInGB")
    instance_groups: list[InstanceGroup] | None = None
    selected_instance_type: str | None = None
    selected_instance_count: Count | None = None


class S3Source(Struct, frozen=True):
    """Objects in a bucket."""

    s3_uri: str = ""
    s3_data_type: str = "S3Prefix"
    s3_data_distribution_type: str = "FullyReplicated"


class FileSystem(Struct, frozen=True):
    """A folder of EFS or FSx for Lustre."""

    file_system_id: str = ""
    file_system_type: str = ""
    directory_path: str = ""
    file_system_access_mode: str = "ro"


class DataSource(Struct, frozen=True):
    """A bucket or a file system."""

    s3: S3Source | None = msgspec.field(default=None, name="S3DataSource")
    file_system: FileSystem | None = msgspec.field(default=None, name="FileSystemDataSource")


class Channel(Struct, frozen=True):
    """A folder below /opt/ml/input/data."""

    channel_name: str
    data_source: DataSource = DataSource()
    compression_type: str | None = None
    input_mode: str | None = None


class Output(Struct, frozen=True):
    """The destination of the model."""

    s3_output_path: str = ""


class Checkpoints(Struct, frozen=True):
    """The destination of checkpoints during the run."""

    s3_uri: str = ""
    local_path: str = "/opt/ml/checkpoints"


class Stopping(Struct, frozen=True):
    """Time limits."""

    max_runtime_in_seconds: Seconds | None = None
    max_wait_time_in_seconds: Seconds | None = None


class Retries(Struct, frozen=True):
    """Retries after faults of SageMaker."""

    maximum_retry_attempts: Count


class Tag(Struct, frozen=True):
    """A label with almost any text."""

    key: str = ""
    value: str = ""


class TrainingJob(Struct, frozen=True):
    """The whole request."""

    training_job_name: str
    algorithm_specification: Algorithm
    resource_config: Resources
    hyper_parameters: dict[str, str] | None = None
    environment: dict[str, str] | None = None
    input_data_config: list[Channel] | None = None
    output_data_config: Output | None = None
    checkpoint_config: Checkpoints | None = None
    stopping_condition: Stopping | None = None
    retry_strategy: Retries | None = None
    enable_managed_spot_training: bool = False
    enable_network_isolation: bool = False
    tags: list[Tag] | None = None


def read(document: Any) -> TrainingJob:
    """Returns the training job; ConversionError with the field that is wrong or missing."""
    if not isinstance(document, dict):
        raise ConversionError("request", "is not a mapping")
    document = without_nulls(document)
    if missing := [key for key in _REQUIRED if key not in document]:
        raise ConversionError(
            missing[0], "is not set, but CreateTrainingJob and DescribeTrainingJob have it for every training job"
        )
    try:
        return msgspec.convert(document, TrainingJob)
    except msgspec.ValidationError as error:
        wrong = decode_error(error)
        field, of_a_map, _ = wrong.path.partition("[...]")
        if of_a_map:
            name = next((key for key, value in document[field].items() if not isinstance(value, str)), "")
            field = f"{field}[{name[:100]}]"
        raise ConversionError(field, wrong.message) from None
