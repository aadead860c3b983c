"""The command `init` writes jobs that are admitted. The examples of frameworks are outputs of `init`."""

from functools import partial
from typing import Any

import pytest
from click.testing import Result

from tests.support import openshift
from tests.support.checking import Check
from tools import first_jobs
from webhook.api import mpirun, yaml
from webhook.cli import init as command
from webhook.cli import job_check, job_world
from webhook.cli.files import Manifest
from webhook.cli.first_job import FRAMEWORKS

IMAGE = "registry.example.com/ml/train:1.4"


@pytest.fixture
def init(program: Check) -> Check:
    return partial(program, "init")


def job(result: Result) -> dict[str, Any]:
    document: dict[str, Any]
    (document,) = yaml.load_all(result.stdout)
    return document


def containers(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    specs = document["spec"]["mpiReplicaSpecs"]
    launcher, worker = (specs[role]["template"]["spec"]["containers"][0] for role in ("Launcher", "Worker"))
    return launcher, worker


def test_examples_of_frameworks_equal_the_output_of_init() -> None:
    """`make examples` regenerates the files."""
    written = {path: path.read_text(encoding="utf-8") for path in first_jobs.FOLDER.iterdir()}
    assert written == first_jobs.jobs()


def test_framework_option_accepts_every_framework() -> None:
    assert tuple(FRAMEWORKS) == command.FRAMEWORKS


@pytest.mark.parametrize(("rdma", "mpiuser"), [(False, False), (True, True)])
@pytest.mark.parametrize(("workers", "gpus"), [(2, 0), (2, 1), (4, 8)])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_job_is_admitted_with_a_rank_for_each_gpu(
    framework: str, workers: int, gpus: int, rdma: bool, mpiuser: bool
) -> None:
    options = {"workers": workers, "gpus": gpus, "rdma": rdma, "queue": "research", "namespace": "team-a"}
    image = {"image": IMAGE, "mpiuser": True} if mpiuser else {}
    (document,) = yaml.load_all(
        first_jobs.text(framework=framework, program=("python", "train.py"), **options, **image)
    )
    verdict = job_check.check(Manifest("job.yaml", document), job_world.of_nothing())
    assert verdict.allowed, verdict.validation.message
    assert not verdict.validation.warned
    launcher, worker = containers(document)
    if mpiuser:
        assert document["spec"]["sshAuthMountPath"] == "/home/mpiuser/.ssh"
        assert launcher["securityContext"] == worker["securityContext"] == {"runAsUser": 1000}
    words = [*launcher.get("command", ()), *launcher["args"]]
    (call,) = mpirun.find(words[:1], words[1:], document["spec"].get("mpiImplementation", "OpenMPI"))
    assert call.ranks == document["spec"]["slotsPerWorker"] * workers
    processes_per_rank = int(words[words.index("--nproc_per_node") + 1]) if "torchrun" in words else 1
    assert call.ranks * processes_per_rank == workers * max(gpus, 1)


def test_options_are_written_into_the_job(init: Check) -> None:
    result = init(
        "--framework", "pytorch", "--workers", "3", "--gpus", "4", "--image", IMAGE, "--rdma", "--queue", "research",
        "--name", "sft", "-n", "team-a", "--", "train.py", "--epochs", "3",
    )  # fmt: skip
    assert result.exit_code == 0
    assert result.stderr.startswith("sft: team-a/sft: admitted\n  warning: kueue-queue: not in queue research: ")
    document = job(result)
    assert document["metadata"] == {
        "name": "sft",
        "namespace": "team-a",
        "annotations": {
            "training.openshift.io/timeout": "24h",
            "training.openshift.io/queue": "research",
            "training.openshift.io/rdma": "true",
        },
    }
    launcher, worker = containers(document)
    assert " ".join(launcher["args"]).endswith(
        "torchrun --nnodes 3 --nproc_per_node 4 --rdzv_backend c10d --rdzv_endpoint sft-worker-0.sft:29500"
        " train.py --epochs 3"
    )
    assert worker["resources"]["limits"] == {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"}
    assert result.stdout.startswith("# PyTorch on 3 workers with 4 GPUs each, written by mpijob-webhook init.\n")


@pytest.mark.parametrize(
    ("framework", "typed", "words"),
    [
        ("pytorch", "/usr/bin/python3.11 train.py", "train.py"),
        ("pytorch", "python -m train --epochs 3", "-m train --epochs 3"),
        ("pytorch", "python -u train.py", "--no_python python -u train.py"),
        ("pytorch", "./train.sh", "--no_python ./train.sh"),
        ("horovod", "train.py --lr 1", "python train.py --lr 1"),
        ("deepspeed", "-m train", "python -m train"),
        ("openmpi", "./pi", "./pi"),
        ("openmpi", "CUDA_VISIBLE_DEVICES=0 python train.py", "env CUDA_VISIBLE_DEVICES=0 python train.py"),
        ("horovod", "A=1 B=2 train.py", "env A=1 B=2 python train.py"),
        ("pytorch", "A=1 train.py", "--no_python env A=1 python train.py"),
    ],
)
def test_typed_program_becomes_the_arguments_for_the_framework(
    init: Check, framework: str, typed: str, words: str
) -> None:
    result = init("--framework", framework, "--image", IMAGE, "--", *typed.split())
    args = " ".join(containers(job(result))[0]["args"])
    if framework == "pytorch":
        assert args.partition(":29500 ")[2] == words
    else:
        assert args.endswith(f" {words}")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("train.py --lr 1", ["python", "train.py", "--lr", "1"]),
        ("A=1 python 'my train.py'", ["env", "A=1", "python", "my train.py"]),
        ("cd /app && python train.py", ["/bin/sh", "-c", "cd /app && python train.py"]),
    ],
)
def test_program_in_one_argument_is_split_into_words(init: Check, typed: str, words: list[str]) -> None:
    result = init("--framework", "horovod", "--image", IMAGE, "--", typed)
    assert containers(job(result))[0]["args"][-len(words) :] == words


@pytest.mark.parametrize(
    "starter",
    [
        "mpirun",
        "srun",
        "A=1 srun",
        "/opt/bin/torchrun",
        "python3 -u -m torch.distributed.launch",
    ],
)
def test_a_program_that_starts_ranks_itself_is_rejected(init: Check, starter: str) -> None:
    result = init("--framework", "pytorch", "--image", IMAGE, "--", *starter.split(), "train.py")
    assert (result.exit_code, result.stdout) == (2, "")
    name = starter.rsplit(maxsplit=1)[-1].rpartition("/")[2]
    assert f"PROGRAM: name the program that each rank runs, without {name}: the job starts the ranks" in result.stderr


def test_a_misspelt_framework_gets_a_suggestion(init: Check) -> None:
    assert '"pytroch" is not supported. Write pytorch.' in init("--framework", "pytroch").stderr


def test_arguments_that_look_like_other_yaml_types_are_quoted(init: Check) -> None:
    result = init("--framework", "horovod", "--image", "a:1", "--", "python", "-c", "print(1)\nprint(2)", "yes", "# 7")
    assert containers(job(result))[0]["args"][-4:] == ["-c", "print(1)\nprint(2)", "yes", "# 7"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing option '--framework'"),
        (("--framework", "pytorch"), "error: --image: no published image with PyTorch, Open MPI, sshd"),
        (("--framework", "openmpi", "--image", IMAGE), "error: PROGRAM: your image lacks the example"),
        (
            ("--framework", "openmpi", "--image", IMAGE, "--", "A=1"),
            "error: PROGRAM: name the program that each rank runs",
        ),
        (("--framework", "chainer"), "Invalid value for '--framework'"),
        (("--framework", "openmpi", "--queue", "Research"), """'--queue': "Research" contains "R"; allowed are """),
        (("--framework", "openmpi", "-n", "x" * 64), "has 64 characters, at most 63 are allowed"),
        (("--framework", "horovod", "--", "\udcff"), "[-- PROGRAM...]': is not text in UTF-8"),
        (("--framework", "horovod", "--name", "\udcff"), "'--name': is not text in UTF-8"),
        (("--framework", "openmpi", "--cluster", "a", "--context", "b"), "error: --cluster cannot be combined with"),
    ],
)
def test_invalid_option_is_rejected(init: Check, arguments: tuple[str, ...], message: str) -> None:
    result = init(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_rejected_job_is_written_and_reported(init: Check) -> None:
    result = init("--framework", "horovod", "--workers", "1", "--name", "First")
    assert result.exit_code == 1
    assert job(result)["metadata"]["name"] == "First"
    assert "First: default/First: rejected\n" in result.stderr
    assert "1 worker, at least 2 required" in result.stderr


def test_job_is_checked_by_the_given_policy(init: Check) -> None:
    policy = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\nrules: {worker-count: {max: 2}}\n"
    result = init("--framework", "openmpi", "--workers", "3", "--policy", "policy.yaml", policy_yaml=policy)
    assert result.exit_code == 1
    assert "3 workers, at most 2 allowed" in result.stderr


def as_list(*objects: Any) -> str:
    return yaml.dump({"apiVersion": "v1", "kind": "List", "items": objects})


PROJECT = as_list(openshift.project("team-a"))
ON_OPENSHIFT = [PROJECT, as_list(*openshift.DEFAULT_SCCS)]


@pytest.mark.parametrize("cluster", ON_OPENSHIFT, ids=["namespace", "SCCs"])
@pytest.mark.parametrize("framework", ["openmpi", "pytorch"])
def test_job_on_openshift_equals_the_job_with_the_option_mpiuser(init: Check, framework: str, cluster: str) -> None:
    flags = ["--framework", framework, "--image", IMAGE, "-n", "team-a", "--", "train"]
    result = init("--cluster", "cluster.yaml", *flags, cluster_yaml=cluster)
    assert (result.exit_code, "admitted\n" in result.stderr) == (0, True), result.stderr
    assert result.stdout == init("--mpiuser", *flags).stdout


def test_image_for_root_is_rejected_on_openshift(init: Check) -> None:
    result = init("--framework", "horovod", "-n", "team-a", "--cluster", "cluster.yaml", cluster_yaml=PROJECT)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: --image: horovod/horovod:0.28.1 is made for root, which OpenShift rejects: name your image with "
        "the user mpiuser (1000), see docs/openshift.md\n"
    )


NODE = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: node-a}
  status: {allocatable: {cpu: "64", memory: 512Gi, amd.com/gpu: "8"}}
"""


def test_job_requests_the_gpus_of_the_cluster(init: Check) -> None:
    result = init("--framework", "horovod", "--gpus", "2", "--cluster", "cluster.yaml", cluster_yaml=NODE)
    assert containers(job(result))[1]["resources"]["limits"]["amd.com/gpu"] == "2"
    assert result.exit_code == 0, result.stderr
