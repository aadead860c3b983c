"""The command `convert sagemaker`: its input, output, report and exit codes."""

import json
from typing import Any

import pytest
from click.testing import Result

from tests.support.checking import Check, run
from tests.support.training_jobs import mpi, request
from webhook.api import yaml

REQUEST = request("resnet", "ml.p4d.24xlarge", 2, mpi(8), TrainingJobStatus="Completed")
CLAIMS = ("--claim", "train=imagenet/train", "--claim", "model=models", "--code-in-image")


@pytest.fixture
def convert(program: Check) -> Check:
    """Runs `convert sagemaker`. The file job.json and the standard input both contain `of`."""

    def run(*arguments: str, of: Any = REQUEST, files: tuple[str, ...] = ("job.json",)) -> Result:
        text = of if isinstance(of, str) else json.dumps(of)
        return program("convert", "sagemaker", *files, *arguments, stdin=text, job_json=text)

    return run


def test_job_with_placeholders_is_rejected(convert: Check) -> None:
    result = convert()
    assert result.exit_code == 1
    assert ": rejected\n  1. " in result.stderr
    assert (
        "volumes[0].persistentVolumeClaim.claimName: is still to be filled in [schema]\n"
        "     Put here: the claim with the data of channel train (s3://example-datasets/train).\n" in result.stderr
    )
    filled = convert(*CLAIMS)
    assert filled.exit_code == 0, filled.stderr
    assert "job.json: default/resnet: admitted\n" in filled.stderr


def test_report_has_the_verdict_and_the_changes_by_outcome(convert: Check) -> None:
    result = convert(*CLAIMS)
    assert [line for line in result.stderr.splitlines() if not line.startswith("    ")] == [
        "job.json: resnet: is MPIJob resnet of kubeflow.org/v2beta1 now",
        "  mapped:",
        "  changed in meaning:",
        "  lost:",
        "  to be done:",
        *(line for line in result.stderr.splitlines() if line.endswith(": admitted") or "warning" in line),
    ]
    assert "    ResourceConfig.InstanceCount: is 2 workers, and a small launcher" in result.stderr
    assert "    TrainingJobStatus: is about the job that ran\n" in result.stderr


def test_options_are_applied(convert: Check) -> None:
    more = ("--image", "registry.example.com/a:1", "--network", "none", "-n", "team-a")
    (job,) = yaml.load_all(convert(*CLAIMS, *more).stdout)
    assert job["metadata"]["namespace"] == "team-a"
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    assert worker["replicas"] == 2
    pod = worker["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.example.com/a:1"
    assert pod["containers"][0]["resources"]["limits"] == {"cpu": "89", "memory": "1097072Mi", "nvidia.com/gpu": 8}
    mount = {"name": "channel-train", "mountPath": "/opt/ml/input/data/train", "subPath": "train", "readOnly": True}
    assert mount in pod["containers"][0]["volumeMounts"]


def test_data_are_fetched_from_s3_by_init_containers(convert: Check) -> None:
    result = convert(
        "--s3-image", "registry.example.com/aws-cli:2.27.0", "--s3-secret", "s3", "--claim", "model=models"
    )
    assert result.exit_code == 0, result.stderr
    (job,) = yaml.load_all(result.stdout)
    pod = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    copy = "aws s3 cp --recursive --no-progress s3://example-datasets/train /opt/ml/input/data/train"
    unpack = 'aws s3 cp --no-progress "$0" - | tar -xz -C /opt/ml/code'
    assert [container["command"] for container in pod["initContainers"]] == [
        copy.split(),
        ["/bin/sh", "-c", unpack, "s3://example-datasets/code/sourcedir.tar.gz"],
    ]
    assert pod["initContainers"][0]["envFrom"] == [{"secretRef": {"name": "s3"}}]
    assert {"name": "channel-train", "emptyDir": {"sizeLimit": "30Gi"}} in pod["volumes"]


def test_several_jobs_from_a_file_and_standard_input_are_converted(convert: Check) -> None:
    other = request("bert", "local_gpu", 2, mpi())
    result = convert(*CLAIMS, "--instance", "local_gpu=16,64,2", of=[REQUEST, other], files=("job.json", "-"))
    names = [job["metadata"]["name"] for job in yaml.load_all(result.stdout)]
    assert names == ["resnet", "bert", "resnet", "bert"]
    assert "job.json[1]: bert: is MPIJob bert" in result.stderr
    assert "standard input[0]: resnet: is MPIJob resnet" in result.stderr
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("of", "code", "error"),
    [
        ("{", 2, "error: job.json: "),
        ("", 2, "error: job.json: is empty"),
        ("[]", 2, "error: no training job in job.json"),
        ("text", 1, "error: job.json: request: is not a mapping"),
        ({"kind": "MPIJob"}, 1, "error: job.json: TrainingJobName: is not set"),
        (
            request("a", "\x1b[2J", 2),
            1,
            'ResourceConfig.InstanceType: "\N{REPLACEMENT CHARACTER}[2J" is not a known instance type',
        ),
    ],
)
def test_invalid_input_is_rejected(convert: Check, of: Any, code: int, error: str) -> None:
    result = convert(of=of)
    assert result.exit_code == code
    assert result.stdout == ""
    assert error in result.stderr


def test_claim_for_an_unknown_channel_is_rejected(convert: Check) -> None:
    result = convert("--claim", "test=imagenet")
    assert result.exit_code == 1
    assert 'InputDataConfig: has no channel "test" for --claim (the channels are: train, code, model' in result.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--claim", "train"), '"train" is not NAME=CLAIM'),
        (("--claim", "train=\udcff"), "'--claim': is not text in UTF-8"),
        (("-n", "Team a"), """'--namespace': "Team a" contains " "; allowed are """),
        (("--instance", "a=1,2"), '"1,2" is not CPUS,GIB,GPUS'),
        (("--instance", "a=0,2,3"), '"0,2,3" has no CPU or no memory'),
        (("--network", "tcp"), "Invalid value for '--network'"),
    ],
)
def test_invalid_options_give_exit_code_2(convert: Check, arguments: tuple[str, ...], error: str) -> None:
    result = convert(*arguments)
    assert result.exit_code == 2
    assert error in result.stderr.replace("\n", " ")


def test_convert_without_a_format_converts_mpijobs(convert: Check) -> None:
    result = convert(of="kind: ConfigMap\n")
    assert result.exit_code == 1
    for arguments in ([], ["mpijob"], ["--ssh-path", "/a"]):
        result = run("convert", *arguments, "job.json")
        assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "error: no MPIJob in job.json")
