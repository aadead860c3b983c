"""Conversion of SageMaker training jobs: the number of processes and GPUs is the same, and the job is admitted."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest

from tests.support.training_job_fields import FIELDS, full
from tests.support.training_jobs import CASES, Case, channel, filled_in, hyperparameters, image, mpi, request, script
from webhook.api import duration, mpirun, placeholders
from webhook.cli import job_check, job_world
from webhook.cli.files import Manifest
from webhook.converters.report import ConversionError, Outcome
from webhook.parts.sagemaker.job import LONGEST, convert
from webhook.parts.sagemaker.machines import Instance, Options
from webhook.rules import job_timeout

MACHINES = {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2}
PODS = "spec.mpiReplicaSpecs[Worker].template.spec"


def p4d(parameters: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A training job on two machines with eight GPUs each."""
    return request("a", "ml.p4d.24xlarge", 2, parameters, **more)


def check(document: dict[str, Any]) -> job_check.Verdict:
    return job_check.check(Manifest("job.yaml", document), job_world.of_nothing())


def spec(training_job: dict[str, Any], role: str = "Worker", **options: Any) -> Any:
    return convert(training_job, Options(**options)).document["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]


def arguments(training_job: dict[str, Any], **options: Any) -> str:
    return " ".join(spec(training_job, "Launcher", **options)["containers"][0]["args"])


def variables(training_job: dict[str, Any]) -> dict[str, str]:
    """The environment of the launcher."""
    return {variable["name"]: variable["value"] for variable in spec(training_job, "Launcher")["containers"][0]["env"]}


def notes(training_job: dict[str, Any], outcome: Outcome, **options: Any) -> dict[str, str]:
    return {note.field: note.text for note in convert(training_job, Options(**options)).report.of(outcome)}


def processes(document: dict[str, Any]) -> int:
    """The total number of processes: ranks, or processes of torchrun. Asserts that every rank has a slot."""
    job = document["spec"]
    (container,) = job["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    (call,) = mpirun.find(container["command"], container["args"], "OpenMPI")
    assert call.ranks is not None
    assert call.ranks == job["slotsPerWorker"] * pods(document)
    words = container["args"]
    if "torchrun" not in words:
        return call.ranks
    assert words[words.index("--nnodes") + 1] == str(call.ranks) == str(pods(document))
    return call.ranks * int(words[words.index("--nproc_per_node") + 1])


def pods(document: dict[str, Any]) -> int:
    """The number of pods that run ranks."""
    workers: int = document["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    return workers + document["spec"].get("runLauncherAsWorker", False)


def accelerators(document: dict[str, Any]) -> int:
    replicas = document["spec"]["mpiReplicaSpecs"].values()
    return sum(
        replica["replicas"] * amount
        for replica in replicas
        for name, amount in replica["template"]["spec"]["containers"][0]["resources"]["limits"].items()
        if name in {"nvidia.com/gpu", "aws.amazon.com/neuron"}
    )


@pytest.mark.parametrize("name", CASES)
def test_conversion_keeps_the_numbers_of_processes_and_accelerators(name: str) -> None:
    case = CASES[name]
    before = deepcopy(case.request)
    document = filled_in(convert(case.request, case.options).document)
    assert (processes(document), accelerators(document)) == (case.processes, case.accelerators)
    assert case.request == before, "the input is not changed"


@pytest.mark.parametrize("name", CASES)
def test_job_is_admitted_only_after_placeholders_are_filled_in(name: str) -> None:
    case = CASES[name]
    document = convert(case.request, case.options).document
    unfilled = dict(placeholders.find(document))
    assert {cause["field"] for cause in check(document).as_json()["causes"]} == set(unfilled)
    assert unfilled
    verdict = check(filled_in(document))
    assert verdict.allowed, verdict.validation.message


def test_command_line_of_mpirun_has_the_options_and_arguments_of_the_request() -> None:
    words = arguments(dict(CASES["PyTorch with MPI on EFA"].request))
    assert words.startswith(
        "--allow-run-as-root -np 16 -bind-to none -map-by slot -mca pml ob1 -mca btl ^openib -verbose"
        " -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -x FI_PROVIDER -x NCCL_PROTO -x TRAINING_JOB_NAME"
    )
    assert words.endswith(
        " -wdir /opt/ml/code python -m mpi4py train.py --amp True --epochs 10 --learning-rate 3e-05 --optimizer adamw"
    )


def test_launcher_has_the_variables_of_sagemaker() -> None:
    env = variables(dict(CASES["PyTorch with MPI on EFA"].request))
    name = "pytorch-bert-2025-11-03-10-15-00-123"
    assert env["SM_CHANNEL_TRAIN"] == "/opt/ml/input/data/train"
    assert env["SM_CHANNELS"] == '["train","validation"]'
    assert env["SM_HOSTS"] == f'["{name}-worker-0.{name}","{name}-worker-1.{name}"]'
    assert json.loads(env["SM_HPS"]) == {"amp": True, "epochs": 10, "learning-rate": 3e-05, "optimizer": "adamw"}
    assert (env["SM_HP_OPTIMIZER"], env["SM_HP_AMP"]) == ("adamw", "true")
    assert (env["SM_NUM_GPUS"], env["SM_NUM_CPUS"]) == ("8", "96")
    assert "SM_HP_LEARNING-RATE" not in env, "a shell does not accept this name"


def test_variables_of_the_request_are_set_and_passed_to_the_ranks() -> None:
    training_job = p4d(mpi(8), Environment={"FI_PROVIDER": "tcp", "SEED": "1"})
    env = variables(training_job)
    assert (env["FI_PROVIDER"], env["SEED"]) == ("tcp", "1")
    assert "-x SEED " in arguments(training_job)


def test_possible_secret_is_reported() -> None:
    training_job = p4d(
        mpi(8, hf_token="hf_1", pad_token="[PAD]", max_tokens=5),
        Environment={"AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "eu", "TOKENIZERS_PARALLELISM": "no"},
    )
    steps = notes(training_job, Outcome.TO_DO)
    secret = {field for field, text in steps.items() if "put it into a Secret" in text}
    assert secret == {"Environment[AWS_SECRET_ACCESS_KEY]", "HyperParameters[hf_token]"}


def test_escaped_half_of_a_surrogate_pair_is_not_decoded() -> None:
    training_job = p4d({**script("\ud800.py"), "a": '"\\ud800"'})
    assert variables(training_job)["SM_HP_A"] == '"\\ud800"'
    assert json.dumps(convert(training_job).document, ensure_ascii=False).encode()


def test_rendezvous_of_torchrun_is_the_first_pod_with_ranks() -> None:
    training_job = p4d(script(sagemaker_torch_distributed_enabled=True))
    expected = "torchrun --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint"
    assert f" {expected} a-worker-0.a:7777 train.py" in arguments(training_job)


@pytest.mark.parametrize(
    ("program", "words"),
    [("train.sh", "/bin/sh -c ./train.sh --size '1 2'"), ("pkg.train", "python -m mpi4py -m pkg.train --size 1 2")],
)
def test_command_depends_on_the_kind_of_program(program: str, words: str) -> None:
    parameters = {**mpi(8, size="1 2"), **hyperparameters(sagemaker_program=program)}
    assert arguments(p4d(parameters)).endswith(f" -wdir /opt/ml/code {words}")


def test_worker_requests_the_resources_of_the_instance_type() -> None:
    training_job = p4d(mpi(8))
    amounts = {"cpu": "89", "memory": "1097072Mi", "nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}
    assert spec(training_job)["containers"][0]["resources"] == {"requests": amounts, "limits": amounts}
    for network in ("rdma", "none"):
        limits = spec(training_job, network=network)["containers"][0]["resources"]["limits"]
        assert "vpc.amazonaws.com/efa" not in limits
    annotations = convert(training_job, Options(network="rdma")).document["metadata"]["annotations"]
    assert annotations["training.openshift.io/rdma"] == "true"


@pytest.mark.parametrize(
    ("more", "policy"),
    [
        ({}, {"activeDeadlineSeconds": 86400, "backoffLimit": 0}),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 60}}, {"activeDeadlineSeconds": 60, "backoffLimit": 0}),
        ({"StoppingCondition": {}}, {"activeDeadlineSeconds": 86400, "backoffLimit": 0}),
        (
            {"EnableManagedSpotTraining": True, "StoppingCondition": {"MaxWaitTimeInSeconds": 90}},
            {"activeDeadlineSeconds": 90},
        ),
        ({"RetryStrategy": {"MaximumRetryAttempts": 2}}, {"activeDeadlineSeconds": 86400, "backoffLimit": 2}),
    ],
)
def test_time_limit_and_retries_are_converted(more: dict[str, Any], policy: dict[str, Any]) -> None:
    document = convert(p4d(mpi(8), **more)).document
    assert document["spec"]["runPolicy"] == {"cleanPodPolicy": "Running", **policy}


def test_tags_and_isolation_become_labels_and_annotations() -> None:
    case = CASES["VPC, isolated and encrypted"]
    assert convert(case.request, Options(namespace="team-a")).document["metadata"] == {
        "name": "patient-notes",
        "namespace": "team-a",
        "labels": {"cost-center": "4711"},
        "annotations": {
            "training.openshift.io/migrated-from": "sagemaker",
            "training.openshift.io/network-policy": "isolated",
        },
    }
    lost = {"VpcConfig", "EnableInterContainerTrafficEncryption", "RoleArn", "Tags[1].Key", "Tags[1].Value"}
    assert lost <= notes(dict(case.request), Outcome.LOST).keys()


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("resnet", "resnet"),
        ("ResNet-50--v2", "resnet-50-v2"),
        ("2025-run", "job-2025-run"),
        ("a" * 63, "a" * 46 + "-7d3e74"),
    ],
)
def test_name_is_a_short_dns_label(written: str, name: str) -> None:
    assert convert(request(written, "ml.p4d.24xlarge", 2, mpi(8))).document["metadata"]["name"] == name


def test_image_is_set() -> None:
    training_job = p4d(mpi(8))
    pod = spec(training_job, image="registry.example.com/a:1")
    assert pod["containers"][0]["image"] == "registry.example.com/a:1"
    field = "AlgorithmSpecification.TrainingImage"
    assert field in notes(training_job, Outcome.TO_DO)
    assert field not in notes(training_job, Outcome.TO_DO, image="registry.example.com/a:1")


def test_missing_image_and_program_are_placeholders() -> None:
    training_job = p4d({"sagemaker_mpi_enabled": "true"}, **image(""))
    open_fields = dict(placeholders.find(convert(training_job).document))
    assert open_fields[f"{PODS}.containers[0].image"] == "an image with the algorithm"
    assert "the program that each rank runs, with its arguments" in open_fields.values()


@pytest.mark.parametrize(
    ("training_job", "error"),
    [
        (p4d(script(sagemaker_distributed_dataparallel_enabled=True)), "_enabled]: smdistributed dataparallel"),
        (p4d(mpi(8, mp_parameters={"partitions": 2})), "HyperParameters[mp_parameters]: smdistributed modelparallel"),
        (p4d(script(sagemaker_parameter_server_enabled=True)), "parameter servers cannot become an MPI job"),
        (
            p4d(mpi(8), ResourceConfig={"InstanceGroups": [MACHINES, MACHINES | {"InstanceType": "ml.c5.xlarge"}]}),
            "ResourceConfig.InstanceGroups: has several instance types (ml.",
        ),
        (request("a", "ml.z9.huge", 2), 'ResourceConfig.InstanceType: "ml.z9.huge" is not a known instance type'),
        (request("a", "ml.p4d.24xlarge", None), "ResourceConfig.InstanceCount: is not set"),
        (request("a", "ml.p4d.24xlarge", 0), "ResourceConfig.InstanceCount: must be a whole number of 1 or more"),
        (p4d({"a": 1}), "HyperParameters[a]: must be a string, not a whole number"),  # type: ignore[dict-item]
        (p4d(Environment={"A": "1", "B": ["2"]}), "Environment[B]: must be a string, not a list"),
        (p4d(mpi() | {"sagemaker_mpi_num_of_processes_per_host": "many"}), '"many" is not a number'),
        (p4d(mpi() | {"sagemaker_mpi_num_of_processes_per_host": "9" * 5000}), "is not a number of processes"),
        (p4d(mpi() | {"sagemaker_mpi_custom_mpi_options": "[1]"}), "is not a text of options"),
        (request("a", "ml.trn2.48xlarge", 2, mpi()), "depends on their setting: set --processes-per-host"),
        ({"TrainingJobName": "a"}, "AlgorithmSpecification: is not set"),
        ([], "request: is not a mapping"),
        (p4d(InputDataConfig={}), "InputDataConfig: must be a list, not a mapping"),
    ],
)
def test_training_job_that_cannot_be_converted_is_rejected(training_job: Any, error: str) -> None:
    with pytest.raises(ConversionError) as raised:
        convert(training_job)
    assert error in str(raised.value)


def test_instance_type_given_by_an_option_is_used() -> None:
    training_job = p4d(mpi())
    instances = {"p4d.24xlarge": Instance(10, 100, 2)}
    assert spec(training_job, instances=instances)["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert " -np 4 " in f" {arguments(training_job, instances=instances)} "


def test_volumes_of_channels_with_similar_names_are_different() -> None:
    long = "x" * 70
    channels = ["a.b", "a_b", "A.b", "a-b", "a-b-2", f"{long}1", f"{long}2"]
    training_job = p4d(mpi(8), InputDataConfig=[channel(name) for name in channels])
    for options in ({}, {"s3_image": "aws-cli:1"}):
        pod = spec(training_job, **options)
        names = [volume["name"] for volume in pod["volumes"]]
        assert names[:5] == ["channel-a-b", "channel-a-b-2", "channel-a-b-3", "channel-a-b-4", "channel-a-b-2-2"]
        assert len(set(names)) == len(names)
        assert max(map(len, names)) <= 63 - len("fetch-")
        of_path = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
        assert [of_path[f"/opt/ml/input/data/{name}"] for name in channels] == names[: len(channels)]


@pytest.mark.parametrize("program", ["train.py", "train.sh"])
def test_dollar_signs_in_user_text_are_escaped(program: str) -> None:
    odd = "$(SM_HP_A) $$(SM_HP_A) $$ $HOME $"
    escaped = "$$(SM_HP_A) $$$$(SM_HP_A) $$$ $HOME $"
    training_job = p4d(script(program, a="'; id; '", b=odd), Environment={"C": odd})
    env = variables(training_job)
    assert env["SM_HP_A"] == "'; id; '"
    assert (env["SM_HP_B"], env["C"]) == (escaped, escaped)
    assert escaped in arguments(training_job)
    assert odd not in arguments(training_job)


def test_dollar_signs_in_data_paths_are_escaped() -> None:
    training_job = p4d(mpi(8), InputDataConfig=[channel("a", "s3://b/$(AWS_SECRET_ACCESS_KEY)")])
    (fetching, _) = spec(training_job, s3_image="aws-cli:1", s3_secret="s3")["initContainers"]
    assert "s3://b/$$(AWS_SECRET_ACCESS_KEY)" in fetching["command"]


def test_time_limit_above_the_maximum_of_the_rule_is_reported() -> None:
    week = 7 * 86_400
    assert job_timeout.Settings().max == duration.spell(week) == duration.spell(LONGEST)
    training_job = p4d(mpi(8), StoppingCondition={"MaxRuntimeInSeconds": week})
    field = "StoppingCondition.MaxRuntimeInSeconds"
    assert field not in notes(training_job, Outcome.TO_DO)
    note = notes(training_job | {"StoppingCondition": {"MaxRuntimeInSeconds": 4 * week}}, Outcome.TO_DO)[field]
    assert note.startswith("is 28d, and the rule job-timeout rejects more than 7d by default: ask for")
    spot = {"MaxRuntimeInSeconds": week, "MaxWaitTimeInSeconds": week + 1}
    training_job |= {"StoppingCondition": spot, "EnableManagedSpotTraining": True}
    assert "is 7d1s, " in notes(training_job, Outcome.TO_DO)["StoppingCondition.MaxWaitTimeInSeconds"]


def covers(field: str, path: str) -> bool:
    """Whether `path` is `field` or is inside `field`."""
    return path == field or path.startswith((f"{field}.", f"{field}["))


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """The path of each value that is neither a mapping nor a list."""
    if isinstance(value, dict):
        for key, item in value.items():
            by_user = path.endswith("Parameters") or path == "Environment"
            yield from leaves(item, f"{path}[{key}]" if by_user else f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]")
    else:
        yield path


def test_full_example_sets_every_field_of_the_api() -> None:
    assert {path for path, _ in FIELDS} <= set(leaves(full()))


@pytest.mark.parametrize("name", ["full", *CASES])
def test_every_value_is_reported(name: str) -> None:
    case = Case(full(), 0, 0) if name == "full" else CASES[name]
    fields = {note.field for note in convert(case.request, case.options).report.notes}
    about_users = "HyperParameters" in fields
    for path in leaves(case.request):
        of_user = path.startswith("HyperParameters[") and not path.startswith("HyperParameters[sagemaker_")
        assert any(covers(field, path) for field in fields - {"HyperParameters"}) or (of_user and about_users), path


def test_field_without_a_counterpart_is_reported_with_the_reason() -> None:
    lost = notes(full(), Outcome.LOST)
    assert lost["ResourceConfig.KeepAlivePeriodInSeconds"].startswith("has no counterpart: the nodes stay")
    assert lost["TrainingJobStatus"] == "is about the job that ran"
    assert lost["ServerlessJobConfig.JobType"] == "has no counterpart"


ODD: list[Any] = [None, 0, -1, True, "", "\N{SNOWMAN}", "x" * 70, 2**70, 0.5, [], {}, [None], {"": ""}, "[1", "NaN"]


@pytest.mark.parametrize("name", ["spot, with checkpoints", "pipes, shards and archives", "groups of one type"])
def test_conversion_of_any_values_raises_only_conversion_errors(name: str) -> None:
    def replaced(value: Any, odd: Any) -> Iterator[Any]:
        """Copies of the value, each with one nested value replaced."""
        yield odd
        if isinstance(value, dict):
            for key in value:
                yield from ({**value, key: item} for item in replaced(value[key], odd))
        elif isinstance(value, list):
            for number, item in enumerate(value):
                yield from ([*value[:number], other, *value[number + 1 :]] for other in replaced(item, odd))

    for odd in ODD:
        for training_job in replaced(CASES[name].request, odd):
            with suppress(ConversionError):
                convert(training_job, Options(s3_image="a:1"))
