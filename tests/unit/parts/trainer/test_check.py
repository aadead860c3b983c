"""`mpijob-webhook check --trainer`: verdicts on TrainJobs and runtimes in files."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.support.checking import Check
from tests.support.jobs import GOOD
from tests.support.object_api import MPIJOB_SCHEMA, fake_api, kubeconfig
from tests.support.trainer import NODE, pods, replicated_job, runtime, train_job
from webhook.cli import world_sources
from webhook.parts.trainer import kinds

NOT_JUDGED = "not judged: rules that need "


@pytest.fixture
def check(program: Check) -> Check:
    """Runs the command on a file with these objects."""

    def run(*objects: Any, more: tuple[str, ...] = ("--trainer",)) -> Result:
        return program("check", "all.json", *more, all_json={"apiVersion": "v1", "kind": "List", "items": objects})

    return run


def verdicts(result: Result) -> dict[str, bool]:
    lines = [line for line in result.stdout.splitlines() if line.startswith("all.json: ")]
    return {line.split(": ")[1]: "admitted" in line for line in lines}


def bad_runtime(kind: str = kinds.CLUSTER_RUNTIME) -> Any:
    manifest = runtime(kind)
    pods(manifest, NODE)["containers"][0]["image"] = "Bad Image"
    return manifest


@pytest.mark.parametrize("kind", [kinds.CLUSTER_RUNTIME, kinds.RUNTIME])
def test_job_is_judged_with_the_runtime_in_the_file(check: Check, kind: str) -> None:
    job = train_job(numNodes=3)
    job["spec"]["runtimeRef"]["kind"] = kind
    title = "team/deepspeed" if kind == kinds.RUNTIME else "deepspeed"

    good, bad = check(job, runtime(kind)), check(job, bad_runtime(kind))

    assert (good.exit_code, verdicts(good)) == (0, {"team/job": True, title: True})
    assert (bad.exit_code, verdicts(bad)) == (1, {"team/job": False, title: False})
    assert f'spec.runtimeRef: "Bad Image" contains a blank or a character outside ASCII ({kind} deepspeed' in bad.stdout


def test_runtime_without_a_replicated_job_named_node_is_admitted(check: Check) -> None:
    other = runtime()
    replicated_job(other, NODE)["name"] = "worker"

    result = check(train_job(numNodes=3), other, GOOD)

    assert (result.exit_code, verdicts(result)) == (0, {"team/job": True, "deepspeed": True, "team-a/train": True})


def test_job_without_its_runtime_is_not_judged(check: Check) -> None:
    result = check(train_job(numNodes=300))

    assert result.exit_code == 0
    assert f"{NOT_JUDGED}clustertrainingruntimes (none given: see --kubeconfig and --cluster)" in result.stderr


def test_runtime_in_a_different_namespace_is_not_used(check: Check) -> None:
    job = train_job(numNodes=300)
    job["spec"]["runtimeRef"]["kind"] = kinds.RUNTIME
    elsewhere = runtime(kinds.RUNTIME)
    elsewhere["metadata"]["namespace"] = "other"

    verdict, *_ = json.loads(check(job, elsewhere, more=("--trainer", "-o", "json")).stdout)
    assert verdict["notJudged"] == ["trainingruntimes"]


def test_job_is_judged_with_the_runtime_in_a_snapshot_of_the_cluster(check: Check, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(bad_runtime()))

    result = check(train_job(), more=("--trainer", "--cluster", "cluster.json"))

    assert verdicts(result) == {"team/job": False}


def test_job_is_judged_with_the_runtime_read_from_the_cluster(check: Check, tmp_path: Path) -> None:
    namespaced = train_job()
    namespaced["metadata"]["name"], namespaced["spec"]["runtimeRef"]["kind"] = "own", kinds.RUNTIME
    forbidden = train_job(runtime="hidden", numNodes=300)
    forbidden["metadata"]["name"] = "hidden"
    runtimes = "/apis/trainer.kubeflow.org/v1alpha1/{}trainingruntimes/{}"
    with fake_api() as api:
        api.objects[world_sources.OPENAPI] = MPIJOB_SCHEMA
        api.objects[runtimes.format("cluster", "deepspeed")] = bad_runtime()
        api.objects[runtimes.format("namespaces/team/", "deepspeed")] = runtime(kinds.RUNTIME)
        api.refusals["GET", runtimes.format("cluster", "hidden")] = (403, "forbidden")
        config = str(kubeconfig(tmp_path / "config", api.url))
        result = check(train_job(), namespaced, forbidden, more=("--trainer", "--kubeconfig", config))

    assert verdicts(result) == {"team/job": False, "team/own": True, "team/hidden": True}
    assert "clustertrainingruntimes" in result.stderr


def test_runtime_without_mpi_is_skipped(check: Check) -> None:
    other = runtime()
    other["spec"]["mlPolicy"] = {"torch": {}}

    result = check(other, train_job(numNodes=300))

    assert verdicts(result) == {"team/job": True}
    assert "all.json: skipped ClusterTrainingRuntime deepspeed\n" in result.stderr


def test_without_the_option_a_train_job_is_skipped_with_a_hint(check: Check) -> None:
    result = check(train_job(numNodes=300), GOOD, more=())

    assert list(verdicts(result)) == ["team-a/train"]
    assert "all.json: skipped TrainJob job, which --trainer checks\n" in result.stderr
