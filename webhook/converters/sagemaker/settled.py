"""What of a training job has no counterpart, and what became of the rest of it that needs no work."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.converters.report import Report
from webhook.converters.sagemaker import distribution

_GONE: Final = {
    "RoleArn": "has no counterpart: pods reach AWS by a ServiceAccount or a Secret (--service-account, --s3-secret)",
    "VpcConfig": "has no counterpart: the cluster's network counts, and the annotation"
    " training.openshift.io/network-policy",
    "EnableInterContainerTrafficEncryption": "has no counterpart: ranks talk in the clear, only their start is by ssh",
    "OutputDataConfig.KmsKeyId": "has no counterpart: the storage class of the claim encrypts, or not",
    "ResourceConfig.VolumeKmsKeyId": "has no counterpart: the storage class of the claim encrypts, or not",
    "OutputDataConfig.CompressionType": "has no counterpart: nothing is uploaded",
    "ResourceConfig.KeepAlivePeriodInSeconds": "has no counterpart: the nodes stay as long as the cluster keeps them",
    "ResourceConfig.TrainingPlanArn": "has no counterpart: reserved nodes are for the cluster's queues (Kueue)",
    "ResourceConfig.InstancePlacementConfig": "has no counterpart: the injection topology puts workers near each other",
    "ResourceConfig.InstancePreferences": "has no counterpart: the workers are alike",
    "ResourceConfig.SelectedInstanceType": "is what SageMaker chose of several",
    "ResourceConfig.SelectedInstanceCount": "is what SageMaker chose of several",
    "StoppingCondition.MaxPendingTimeInSeconds": "has no counterpart: a job waits in its queue for as long as it takes",
    "AlgorithmSpecification.TrainingImageConfig": "has no counterpart: nodes log in by a pull secret (--pull-secret)",
    "AlgorithmSpecification.MetricDefinitions": "has no counterpart: nothing reads metrics out of the log",
    "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries": "has no counterpart: nothing reads metrics from the log",
    "DebugHookConfig": "has no counterpart: it is SageMaker's debugger",
    "DebugRuleConfigurations": "has no counterpart: it is SageMaker's debugger",
    "TensorBoardOutputConfig": "has no counterpart: write TensorBoard's files to a claim",
    "ProfilerConfig": "has no counterpart: it is SageMaker's profiler",
    "ProfilerRuleConfigurations": "has no counterpart: it is SageMaker's profiler",
    "ExperimentConfig": "has no counterpart: it is SageMaker's experiments",
    "RemoteDebugConfig": "has no counterpart: kubectl exec reaches the pods, for whom RBAC allows it",
    "InfraCheckConfig": "has no counterpart: nodes are checked by their own health checks",
    "SessionChainingConfig": "has no counterpart: no session of AWS is handed on",
}
# What DescribeTrainingJob adds.
_OF_THE_RUN: Final = frozenset({
    "TrainingJobArn", "TrainingJobStatus", "SecondaryStatus", "SecondaryStatusTransitions", "FailureReason",
    "MlflowDetails", "ModelArtifacts", "CreationTime", "TrainingStartTime", "TrainingEndTime", "LastModifiedTime",
    "FinalMetricDataList", "TrainingTimeInSeconds", "BillableTimeInSeconds", "BillableTokenCount", "TuningJobArn",
    "LabelingJobArn", "AutoMLJobArn", "DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses",
    "ProfilingStatus", "WarmPoolStatus", "ProgressInfo", "OutputModelPackageArn", "ResponseMetadata",
})  # fmt: skip
# What was as it is here, by the end of its path.
_AS_HERE: Final[tuple[tuple[str, Any], ...]] = (
    ("InputMode", "File"), ("CompressionType", "None"), ("CompressionType", "NONE"), ("RecordWrapperType", "None"),
    ("S3DataType", "S3Prefix"), ("S3DataDistributionType", "FullyReplicated"), ("VolumeSizeInGB", 0),
)  # fmt: skip
_SEPARATORS: Final = (".", "[")


def settle(document: Mapping[str, Any], report: Report) -> None:
    """Tell of each field of the request that nothing has been told of yet."""
    for path, value in _leaves(document, ""):
        told = {note.field for note in report.notes}
        if any(_covers(field, path) for field in told):
            continue
        if value is False or any(path.endswith(end) and value == written for end, written in _AS_HERE):
            report.mapped(path, "is as it is here")
            continue
        known = next((field for field in _GONE if _covers(field, path)), None)
        top = path.split(".")[0].split("[")[0]
        if known:
            report.lost(known, _GONE[known])
        elif top in _OF_THE_RUN:
            report.lost(top, "is about the job that ran")
        elif path.startswith("HyperParameters["):
            report.lost(path, "is for SageMaker's toolkit, which does not run")
        else:
            report.lost(path, "has no counterpart")


def _covers(field: str, path: str) -> bool:
    """Whether what was told of `field` is about `path` too. HyperParameters as a whole are those of the user."""
    if field == "HyperParameters" and path.startswith("HyperParameters["):
        return bool(distribution.of_user({path.removeprefix("HyperParameters[").removesuffix("]"): ""}))
    return path == field or any(path.startswith(field + separator) for separator in _SEPARATORS)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Each value that is set, with its path."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            by_user = path in {"HyperParameters", "Environment"}
            yield from _leaves(item, f"{path}[{key}]" if by_user else f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    elif value is not None:
        yield path, value
