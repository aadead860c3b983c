"""Every field of a training job of SageMaker, and a job that sets them all.

The fields are read out of the model of the API in botocore 1.44.5 (`sagemaker/2017-07-24/service-2.json`): those of
CreateTrainingJobRequest, then those that DescribeTrainingJobResponse has besides.
"""

import re
from typing import Any, Final

from tests.support.training_jobs import mpi

_REQUEST: Final = """
TrainingJobName string
HyperParameters[name] string
AlgorithmSpecification.TrainingImage string
AlgorithmSpecification.AlgorithmName string
AlgorithmSpecification.TrainingInputMode string
AlgorithmSpecification.MetricDefinitions[0].Name string
AlgorithmSpecification.MetricDefinitions[0].Regex string
AlgorithmSpecification.EnableSageMakerMetricsTimeSeries boolean
AlgorithmSpecification.ContainerEntrypoint[0] string
AlgorithmSpecification.ContainerArguments[0] string
AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAccessMode string
AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAuthConfig.TrainingRepositoryCredentialsProviderArn string
RoleArn string
InputDataConfig[0].ChannelName string
InputDataConfig[0].DataSource.S3DataSource.S3DataType string
InputDataConfig[0].DataSource.S3DataSource.S3Uri string
InputDataConfig[0].DataSource.S3DataSource.S3DataDistributionType string
InputDataConfig[0].DataSource.S3DataSource.AttributeNames[0] string
InputDataConfig[0].DataSource.S3DataSource.InstanceGroupNames[0] string
InputDataConfig[0].DataSource.S3DataSource.ModelAccessConfig.AcceptEula boolean
InputDataConfig[0].DataSource.S3DataSource.HubAccessConfig.HubContentArn string
InputDataConfig[0].DataSource.FileSystemDataSource.FileSystemId string
InputDataConfig[0].DataSource.FileSystemDataSource.FileSystemAccessMode string
InputDataConfig[0].DataSource.FileSystemDataSource.FileSystemType string
InputDataConfig[0].DataSource.FileSystemDataSource.DirectoryPath string
InputDataConfig[0].DataSource.DatasetSource.DatasetArn string
InputDataConfig[0].ContentType string
InputDataConfig[0].CompressionType string
InputDataConfig[0].RecordWrapperType string
InputDataConfig[0].InputMode string
InputDataConfig[0].ShuffleConfig.Seed long
OutputDataConfig.KmsKeyId string
OutputDataConfig.S3OutputPath string
OutputDataConfig.CompressionType string
ResourceConfig.InstanceType string
ResourceConfig.InstanceCount integer
ResourceConfig.VolumeSizeInGB integer
ResourceConfig.VolumeKmsKeyId string
ResourceConfig.KeepAlivePeriodInSeconds integer
ResourceConfig.InstanceGroups[0].InstanceType string
ResourceConfig.InstanceGroups[0].InstanceCount integer
ResourceConfig.InstanceGroups[0].InstanceGroupName string
ResourceConfig.TrainingPlanArn string
ResourceConfig.InstancePlacementConfig.EnableMultipleJobs boolean
ResourceConfig.InstancePlacementConfig.PlacementSpecifications[0].UltraServerId string
ResourceConfig.InstancePlacementConfig.PlacementSpecifications[0].InstanceCount integer
ResourceConfig.InstancePreferences[0].InstanceType string
ResourceConfig.InstancePreferences[0].InstanceCount integer
ResourceConfig.InstancePreferences[0].TrainingPlanArns[0] string
ResourceConfig.SelectedInstanceType string
ResourceConfig.SelectedInstanceCount integer
VpcConfig.SecurityGroupIds[0] string
VpcConfig.Subnets[0] string
StoppingCondition.MaxRuntimeInSeconds integer
StoppingCondition.MaxWaitTimeInSeconds integer
StoppingCondition.MaxPendingTimeInSeconds integer
Tags[0].Key string
Tags[0].Value string
EnableNetworkIsolation boolean
EnableInterContainerTrafficEncryption boolean
EnableManagedSpotTraining boolean
CheckpointConfig.S3Uri string
CheckpointConfig.LocalPath string
DebugHookConfig.LocalPath string
DebugHookConfig.S3OutputPath string
DebugHookConfig.HookParameters[name] string
DebugHookConfig.CollectionConfigurations[0].CollectionName string
DebugHookConfig.CollectionConfigurations[0].CollectionParameters[name] string
DebugRuleConfigurations[0].RuleConfigurationName string
DebugRuleConfigurations[0].LocalPath string
DebugRuleConfigurations[0].S3OutputPath string
DebugRuleConfigurations[0].RuleEvaluatorImage string
DebugRuleConfigurations[0].InstanceType string
DebugRuleConfigurations[0].VolumeSizeInGB integer
DebugRuleConfigurations[0].RuleParameters[name] string
TensorBoardOutputConfig.LocalPath string
TensorBoardOutputConfig.S3OutputPath string
ExperimentConfig.ExperimentName string
ExperimentConfig.TrialName string
ExperimentConfig.TrialComponentDisplayName string
ExperimentConfig.RunName string
ProfilerConfig.S3OutputPath string
ProfilerConfig.ProfilingIntervalInMilliseconds long
ProfilerConfig.ProfilingParameters[name] string
ProfilerConfig.DisableProfiler boolean
ProfilerRuleConfigurations[0].RuleConfigurationName string
ProfilerRuleConfigurations[0].LocalPath string
ProfilerRuleConfigurations[0].S3OutputPath string
ProfilerRuleConfigurations[0].RuleEvaluatorImage string
ProfilerRuleConfigurations[0].InstanceType string
ProfilerRuleConfigurations[0].VolumeSizeInGB integer
ProfilerRuleConfigurations[0].RuleParameters[name] string
Environment[name] string
RetryStrategy.MaximumRetryAttempts integer
RemoteDebugConfig.EnableRemoteDebug boolean
InfraCheckConfig.EnableInfraCheck boolean
SessionChainingConfig.EnableSessionTagChaining boolean
ServerlessJobConfig.BaseModelArn string
ServerlessJobConfig.AcceptEula boolean
ServerlessJobConfig.JobType string
ServerlessJobConfig.CustomizationTechnique string
ServerlessJobConfig.Peft string
ServerlessJobConfig.EvaluationType string
ServerlessJobConfig.EvaluatorArn string
ServerlessJobConfig.SequenceLength string
MlflowConfig.MlflowResourceArn string
MlflowConfig.MlflowExperimentName string
MlflowConfig.MlflowRunName string
ModelPackageConfig.ModelPackageGroupArn string
ModelPackageConfig.SourceModelPackageArn string
"""
_RESPONSE: Final = """
TrainingJobArn string
TuningJobArn string
LabelingJobArn string
AutoMLJobArn string
ModelArtifacts.S3ModelArtifacts string
TrainingJobStatus string
SecondaryStatus string
FailureReason string
WarmPoolStatus.Status string
WarmPoolStatus.ResourceRetainedBillableTimeInSeconds integer
WarmPoolStatus.ReusedByJob string
CreationTime timestamp
TrainingStartTime timestamp
TrainingEndTime timestamp
LastModifiedTime timestamp
SecondaryStatusTransitions[0].Status string
SecondaryStatusTransitions[0].StartTime timestamp
SecondaryStatusTransitions[0].EndTime timestamp
SecondaryStatusTransitions[0].StatusMessage string
FinalMetricDataList[0].MetricName string
FinalMetricDataList[0].Value float
FinalMetricDataList[0].Timestamp timestamp
TrainingTimeInSeconds integer
BillableTimeInSeconds integer
BillableTokenCount long
DebugRuleEvaluationStatuses[0].RuleConfigurationName string
DebugRuleEvaluationStatuses[0].RuleEvaluationJobArn string
DebugRuleEvaluationStatuses[0].RuleEvaluationStatus string
DebugRuleEvaluationStatuses[0].StatusDetails string
DebugRuleEvaluationStatuses[0].LastModifiedTime timestamp
ProfilerRuleEvaluationStatuses[0].RuleConfigurationName string
ProfilerRuleEvaluationStatuses[0].RuleEvaluationJobArn string
ProfilerRuleEvaluationStatuses[0].RuleEvaluationStatus string
ProfilerRuleEvaluationStatuses[0].StatusDetails string
ProfilerRuleEvaluationStatuses[0].LastModifiedTime timestamp
ProfilingStatus string
MlflowDetails.MlflowExperimentId string
MlflowDetails.MlflowRunId string
ProgressInfo.TotalStepCountPerEpoch long
ProgressInfo.CurrentStep long
ProgressInfo.CurrentEpoch long
ProgressInfo.MaxEpoch long
OutputModelPackageArn string
"""
FIELDS: Final = tuple(tuple(line.split()) for line in f"{_REQUEST}{_RESPONSE}".split("\n") if line)
_VALUES: Final[dict[str, Any]] = {
    "string": "text",
    "integer": 2,
    "long": 2,
    "float": 0.5,
    "boolean": True,
    "timestamp": "2025-11-03T10:15:00+01:00",
}
_SPECIAL: Final[dict[str, Any]] = {
    "ResourceConfig.InstanceType": "ml.p4d.24xlarge",
    "ResourceConfig.InstanceGroups[0].InstanceType": "ml.p4d.24xlarge",
    "InputDataConfig[0].DataSource.S3DataSource.S3Uri": "s3://example-datasets/train",
}
_STEP: Final = re.compile(r"[^.\[\]]+")


def full() -> dict[str, Any]:
    """A job with all of them. No real one has: some exclude each other."""
    job: dict[str, Any] = {}
    for path, kind in FIELDS:
        _set(job, path, _SPECIAL.get(path, _VALUES[kind]))
    job["HyperParameters"] |= mpi(8, "-x A=1")
    return job


def _set(job: dict[str, Any], path: str, value: Any) -> None:
    *steps, last = _STEP.findall(path)
    target: Any = job
    for step, following in zip(steps, [*steps, last][1:], strict=True):
        if step == "0":
            if not target:
                target.append([] if following == "0" else {})
            target = target[0]
        else:
            target = target.setdefault(step, [] if following == "0" else {})
    if last == "0":
        target.append(value)
    else:
        target[last] = value
