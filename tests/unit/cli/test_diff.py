"""The command `diff` shows injections that existing jobs do not have."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from click.testing import Result

from tests.support.checking import run
from tests.support.jobs import GOOD
from tests.support.object_api import FakeApi, fake_api, kubeconfig

JOBS = "/apis/kubeflow.org/v2beta1/namespaces/team-a/mpijobs"
SET = {"uid": "1", "resourceVersion": "7", "managedFields": [{"manager": "kubectl"}]}


class Cluster:
    def __init__(self, api: FakeApi, config: Path) -> None:
        self.api = api
        self.config = config

    def has(self, *jobs: dict[str, Any]) -> None:
        stored = [{**job, "metadata": {**job["metadata"], **SET}, "status": {"conditions": []}} for job in jobs]
        self.api.objects[JOBS] = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": stored}
        for job in stored:
            self.api.objects[f"{JOBS}/{job['metadata']['name']}"] = job

    def diff(self, *arguments: str) -> Result:
        return run("diff", *arguments, "--kubeconfig", str(self.config))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with fake_api() as api:
        made = Cluster(api, kubeconfig(tmp_path / "config", api.url))
        made.has(GOOD)
        yield made


def admitted(cluster: Cluster) -> dict[str, Any]:
    (difference,) = json.loads(cluster.diff("team-a/train", "-o", "json").stdout)
    job: dict[str, Any] = deepcopy(GOOD)
    for injection in difference["injected"]:
        jsonpatch.apply_patch(job, injection["patch"], in_place=True)
    return job


def test_missing_injections_of_an_older_job_are_shown(cluster: Cluster) -> None:
    result = cluster.diff("team-a/train")
    assert result.exit_code == 1
    head, new, *lines = result.stdout.splitlines()
    assert (head, new) == ("--- live/team-a/train", "+++ admitted/team-a/train")
    assert "+    sidecar.istio.io/inject: 'false'" in lines
    assert not [line for line in lines if line.startswith("-")], "no field is removed"
    assert "uid" not in result.stdout
    assert "training.openshift.io/injected" not in result.stdout
    assert "managedFields" not in result.stdout


def test_annotations_of_the_webhook_and_of_kubectl_are_not_a_difference(cluster: Cluster) -> None:
    noted = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "training.openshift.io/injected": "istio"}
    job = admitted(cluster)
    job["metadata"]["annotations"] |= noted
    cluster.has(job)
    result = cluster.diff("train", "-n", "team-a")
    assert (result.exit_code, result.stdout) == (0, "")


def test_all_jobs_of_a_namespace_are_compared(cluster: Cluster) -> None:
    other = admitted(cluster)
    other["metadata"]["name"] = "other"
    cluster.has(GOOD, other)
    result = cluster.diff("-n", "team-a", "-o", "json")
    assert result.exit_code == 1
    same, different = json.loads(result.stdout)
    assert [*same] == ["namespace", "name", "differs", "injected", "notJudged"]
    assert (same["name"], same["differs"], same["injected"]) == ("other", False, [])
    assert (different["name"], different["differs"]) == ("train", True)
    assert "istio" in [injection["id"] for injection in different["injected"]]


def test_contradicting_namespaces_are_an_error(cluster: Cluster) -> None:
    result = cluster.diff("team-a/train", "-n", "team-b")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: team-a/train is not in namespace team-b: name one of the two\n"
