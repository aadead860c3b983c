"""SageMaker training jobs of estimators, algorithms and hand-written requests, with their process and GPU counts."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook.api import placeholders
from webhook.parts.sagemaker.machines import Instance, Options

_ECR: Final = "763104351884.dkr.ecr.us-west-2.amazonaws.com"
_ROLE: Final = "arn:aws:iam::111122223333:role/service-role/AmazonSageMaker-ExecutionRole"
_BUCKET: Final = "s3://example-datasets"
NO_OPTIONS: Final = Options()


@dataclass(frozen=True)
class Case:
    """A training job, and the numbers of processes and GPUs with which SageMaker would start it."""

    request: Mapping[str, Any]
    processes: int
    accelerators: int
    options: Options = NO_OPTIONS


def hyperparameters(**values: Any) -> dict[str, str]:
    """Hyperparameters as the SDK writes them: each value is JSON."""
    return {name: json.dumps(value) for name, value in values.items()}


def channel(name: str, uri: str = "", **more: Any) -> dict[str, Any]:
    """A channel with objects below a prefix in S3."""
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": uri or f"{_BUCKET}/{name}",
        "S3DataDistributionType": "FullyReplicated",
    }
    return {"ChannelName": name, "DataSource": {"S3DataSource": source | more}}


def request(
    name: str, instance: str | None, count: int | None, parameters: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    """A request with the required fields and additional fields."""
    resources = {"InstanceType": instance, "InstanceCount": count, "VolumeSizeInGB": 30}
    return {
        "TrainingJobName": name,
        "RoleArn": _ROLE,
        "AlgorithmSpecification": {
            "TrainingImage": f"{_ECR}/pytorch-training:2.5.1-gpu-py311",
            "TrainingInputMode": "File",
        },
        "OutputDataConfig": {"S3OutputPath": f"{_BUCKET}/output"},
        "ResourceConfig": {key: value for key, value in resources.items() if value is not None},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
        "InputDataConfig": [channel("train")],
        **({"HyperParameters": dict(parameters)} if parameters else {}),
        **more,
    }


_HEAD: Final = re.compile(r"(\S+): (\d+) (\S+), (\d+) processes, (\d+) GPUs")


def case(head: str, parameters: Mapping[str, str] | None = None, *, options: Options = NO_OPTIONS, **more: Any) -> Case:
    """A case from a text such as `resnet: 2 ml.g5.12xlarge, 8 processes, 8 GPUs`."""
    match = _HEAD.fullmatch(head)
    assert match
    name, count, instance, processes, accelerators = match.groups()
    return Case(request(name, instance, int(count), parameters, **more), int(processes), int(accelerators), options)


def script(program: str = "train.py", **values: Any) -> dict[str, str]:
    """The hyperparameters of an estimator that runs a script."""
    archive = f"{_BUCKET}/code/sourcedir.tar.gz"
    own = {"sagemaker_program": program, "sagemaker_submit_directory": archive, "sagemaker_region": "us-west-2"}
    own |= {"sagemaker_container_log_level": 20, "sagemaker_job_name": "some-job"}
    return hyperparameters(**own, **values)


def mpi(processes: int | None = None, options: str = "", **values: Any) -> dict[str, str]:
    """The hyperparameters of an estimator with `distribution={"mpi": ...}`."""
    each = {"sagemaker_mpi_num_of_processes_per_host": processes} if processes else {}
    more = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_custom_mpi_options": options}
    return script(**more, **each, **values)


def image(name: str, **more: Any) -> dict[str, Any]:
    return {"AlgorithmSpecification": {"TrainingImage": name, "TrainingInputMode": "File", **more}}


def folder(name: str, kind: str, path: str) -> dict[str, Any]:
    """A channel on a file system."""
    source = {"FileSystemId": "fs-0a1b2c3d4e5f67890", "FileSystemType": kind, "DirectoryPath": path}
    return {"ChannelName": name, "DataSource": {"FileSystemDataSource": source | {"FileSystemAccessMode": "ro"}}}


_OWN: Final = "111122223333.dkr.ecr.us-west-2.amazonaws.com/team/train:1.4"
_DESCRIBED: Final = {
    "TrainingJobArn": "arn:aws:sagemaker:us-west-2:111122223333:training-job/resnet",
    "ModelArtifacts": {"S3ModelArtifacts": f"{_BUCKET}/output/resnet/model.tar.gz"},
    "TrainingJobStatus": "Completed",
    "SecondaryStatus": "Completed",
    "CreationTime": "2025-11-03T10:15:00.123000+01:00",
    "TrainingTimeInSeconds": 5214,
    "BillableTimeInSeconds": 5214,
    "FinalMetricDataList": [{"MetricName": "loss", "Value": 0.25, "Timestamp": 1762161300.0}],
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
}
CASES: Final = {
    "PyTorch with MPI on EFA": case(
        "pytorch-bert-2025-11-03-10-15-00-123: 2 ml.p4d.24xlarge, 16 processes, 16 GPUs",
        mpi(8, "-verbose -x NCCL_DEBUG=INFO", epochs=10, **{"learning-rate": 3e-5}, optimizer="adamw", amp=True),
        InputDataConfig=[channel("train"), channel("validation")],
    ),
    "TensorFlow with Horovod": case(
        "tf-horovod: 4 ml.p3.16xlarge, 32 processes, 32 GPUs", mpi(8, model_dir="/opt/ml/model")
    ),
    "default number of ranks": case("Horovod-Defaults: 2 ml.g4dn.12xlarge, 8 processes, 8 GPUs", mpi(epochs=3)),
    "MPI without GPUs": case("cfd-solver: 2 ml.c5.9xlarge, 8 processes, 0 GPUs", mpi(4, "--NCCL_DEBUG WARN")),
    "torch_distributed": case(
        "llama-sft: 4 ml.p5.48xlarge, 32 processes, 32 GPUs",
        script("sft.py", sagemaker_torch_distributed_enabled=True, lr=1e-4),
    ),
    "pytorchddp": case(
        "hf-ddp: 2 ml.p4de.24xlarge, 16 processes, 16 GPUs",
        script("run_glue.py", sagemaker_pytorch_ddp_enabled=True, sagemaker_instance_type="ml.p4de.24xlarge"),
    ),
    "Trainium": case(
        "neuron-llama: 2 ml.trn1.32xlarge, 64 processes, 32 GPUs", script(sagemaker_torch_distributed_enabled=True)
    ),
    "a built-in algorithm": case(
        "xgboost-2025-11-03: 2 ml.m5.4xlarge, 2 processes, 0 GPUs",
        {"objective": "reg:squarederror", "num_round": "50", "max_depth": "5"},
        **image("246618743249.dkr.ecr.us-west-2.amazonaws.com/sagemaker-xgboost:1.7-1"),
        InputDataConfig=[channel("train") | {"ContentType": "text/csv"}],
    ),
    "an algorithm of the marketplace": case(
        "marketplace: 3 ml.c5.2xlarge, 3 processes, 0 GPUs",
        AlgorithmSpecification={
            "AlgorithmName": "arn:aws:sagemaker:us-west-2:865070037744:algorithm/tabular-1",
            "TrainingInputMode": "FastFile",
        },
    ),
    "a script on each machine": case(
        "sklearn-each: 2 ml.m5.xlarge, 2 processes, 0 GPUs", script("prepare.py", folds=5)
    ),
    "spot, with checkpoints": case(
        "spot-resnet: 2 ml.g5.12xlarge, 8 processes, 8 GPUs",
        mpi(4),
        EnableManagedSpotTraining=True,
        StoppingCondition={"MaxRuntimeInSeconds": 36000, "MaxWaitTimeInSeconds": 72000},
        CheckpointConfig={"S3Uri": f"{_BUCKET}/checkpoints", "LocalPath": "/opt/ml/checkpoints"},
        RetryStrategy={"MaximumRetryAttempts": 3},
    ),
    "VPC, isolated and encrypted": case(
        "patient-notes: 2 ml.g5.48xlarge, 16 processes, 16 GPUs",
        mpi(8),
        VpcConfig={"SecurityGroupIds": ["sg-0123456789abcdef0"], "Subnets": ["subnet-0a1b2c3d", "subnet-4e5f6a7b"]},
        EnableNetworkIsolation=True,
        EnableInterContainerTrafficEncryption=True,
        Tags=[{"Key": "cost-center", "Value": "4711"}, {"Key": "team/owner", "Value": "vision"}],
    ),
    "local mode": case(
        "local-train: 2 local_gpu, 4 processes, 4 GPUs",
        mpi() | hyperparameters(sagemaker_submit_directory="file:///home/user/src"),
        options=Options(instances={"local_gpu": Instance(16, 64, 2)}),
        InputDataConfig=[channel("train", "file:///home/user/data")],
    ),
    "file systems": case(
        "lustre-vit: 8 ml.p4d.24xlarge, 64 processes, 64 GPUs",
        mpi(8),
        InputDataConfig=[folder("train", "FSxLustre", "/fsx/imagenet"), folder("validation", "EFS", "/val")],
    ),
    "mpirun as entry point": case(
        "own-mpirun: 2 ml.p3.8xlarge, 8 processes, 8 GPUs",
        {"sagemaker_mpi_enabled": "true"},
        **image(_OWN, ContainerEntrypoint=["mpirun"], ContainerArguments=["--allow-run-as-root", "-np", "8", "/train"]),
    ),
    "Python as entry point": case(
        "own-entry-point: 3 ml.g5.2xlarge, 3 processes, 3 GPUs",
        **image(_OWN, ContainerEntrypoint=["python3", "/train.py"], ContainerArguments=["--epochs", "3"]),
    ),
    "output of DescribeTrainingJob": Case({**request("resnet", "ml.p3dn.24xlarge", 2, mpi(8)), **_DESCRIBED}, 16, 16),
    "groups of one type": Case(
        request(
            "groups",
            None,
            None,
            mpi(4),
            ResourceConfig={
                "VolumeSizeInGB": 100,
                "InstanceGroups": [
                    {"InstanceType": "ml.g5.24xlarge", "InstanceCount": 1, "InstanceGroupName": "first"},
                    {"InstanceType": "ml.g5.24xlarge", "InstanceCount": 3, "InstanceGroupName": "second"},
                ],
            },
        ),
        16,
        16,
    ),
    "an image that copies data from S3": case(
        "from-s3: 2 ml.p5e.48xlarge, 16 processes, 16 GPUs",
        mpi(8),
        options=Options(s3_image="registry.example.com/aws-cli:2.27.0", s3_secret="s3", network="rdma"),
    ),
    "pipes, shards and archives": case(
        "image-classification: 2 ml.p3.2xlarge, 2 processes, 2 GPUs",
        {"num_classes": "257", "epochs": "30"},
        **image("433757028032.dkr.ecr.us-west-2.amazonaws.com/image-classification:1", TrainingInputMode="Pipe"),
        InputDataConfig=[
            channel("train", S3DataDistributionType="ShardedByS3Key")
            | {"CompressionType": "Gzip", "RecordWrapperType": "RecordIO", "ShuffleConfig": {"Seed": 1}},
            channel("validation", f"{_BUCKET}/validation.manifest", S3DataType="ManifestFile") | {"InputMode": "Pipe"},
        ],
    ),
}


def filled_in(document: Any) -> Any:
    """The converted job, in which values replace all placeholders, as if a user had filled them in."""
    if isinstance(document, dict):
        return {
            key: f"a-{key.lower()}" if _is_to_be_filled_in(item) else filled_in(item) for key, item in document.items()
        }
    if isinstance(document, list):
        return ["train.py" if _is_to_be_filled_in(item) else filled_in(item) for item in document]
    return document


def _is_to_be_filled_in(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(placeholders.MARK)
