"""`mpijob_webhook.check` returns the verdict about a job in Python."""

import re
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from kubernetes import client

import mpijob_webhook
from tests.support.jobs import GOOD, changed
from tests.support.policies import HEADER
from webhook import __version__
from webhook.api import yaml
from webhook.cli import job_check, job_world
from webhook.cli.files import Manifest

BAD = changed({"Worker.replicas": 1, "metadata.name": "<b>"})
ONE_WORKER = changed({"Worker.replicas": 1})
CYCLE: dict[str, Any] = {"kind": "MPIJob"}
CYCLE["spec"] = CYCLE
FEW = f"{HEADER}rules: {{worker-count: {{max: 3}}}}\n"


def test_valid_job_is_admitted() -> None:
    verdict = mpijob_webhook.check(GOOD)
    assert verdict
    assert (verdict.allowed, verdict.message, verdict.causes, verdict.warnings) == (True, "", [], [])
    assert "istio" in verdict.injected
    assert verdict.job["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    assert "sidecar.istio.io/inject" not in GOOD["metadata"].get("annotations", {}), "the argument is not changed"
    assert verdict.not_judged[0].startswith("not judged: rules that need ")
    assert verdict.not_judged[0].endswith("(no cluster was given)")
    assert repr(verdict).startswith("team-a/train: admitted\n  injected:")


def test_invalid_job_is_rejected() -> None:
    verdict = mpijob_webhook.check(ONE_WORKER)
    assert not verdict
    (cause,) = verdict.causes
    assert (cause.rule, cause.field) == ("worker-count", "spec.mpiReplicaSpecs[Worker].replicas")
    assert cause.message == "1 worker, at least 2 required. Set replicas to 2 or more. [worker-count]"
    assert verdict.message.startswith('MPIJob "train" was rejected: 1 problem\n')
    assert "\x1b" not in repr(verdict)
    assert verdict.as_json() == job_check.check(Manifest("the job", ONE_WORKER), job_world.of_nothing()).as_json()


class Text(HTMLParser):
    """The text of the HTML, which must be well-formed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in {"p", "strong", "ol", "li", "code", "br", "small", "details", "summary", "pre"}
        self.open += [] if tag == "br" else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_jupyter_representation_is_html() -> None:
    text = Text(mpijob_webhook.check(BAD)._repr_html_()).text
    assert "team-a/<b>: rejected" in text, "values of users are escaped"
    assert "spec.mpiReplicaSpecs[Worker].replicas1 worker, at least 2 required." in text
    text = Text(mpijob_webhook.check(changed({"spec.runPolicy.ttlSecondsAfterFinished": 1}))._repr_html_()).text
    assert re.search(r"Warnings\s+spec.runPolicy.ttlSecondsAfterFinished", text)
    assert re.search(r"\d+ injections: .*istio", text)


def test_job_can_be_a_mapping_path_text_bytes_or_model(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(f"kind: ConfigMap\n---\n{yaml.dump(ONE_WORKER)}")
    expected = mpijob_webhook.check(ONE_WORKER).message
    assert mpijob_webhook.check(path).message == expected
    assert mpijob_webhook.check(yaml.dump(ONE_WORKER)).message == expected
    assert mpijob_webhook.check(path.read_bytes()).message == expected

    model = client.V1Job(api_version="kubeflow.org/v1", kind="MPIJob", metadata=client.V1ObjectMeta(name="old"))
    assert "mpijob-webhook convert" in mpijob_webhook.check(model).message


def test_policy_and_cluster_are_used(tmp_path: Path) -> None:
    path = tmp_path / "few.yaml"
    path.write_text(FEW)
    for policy in (FEW, path, yaml.load_all(FEW)[0]):
        assert "4 workers, at most 3 allowed" in mpijob_webhook.check(GOOD, policy).message
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "team-a"},
        "spec": {"hard": {"pods": "2"}}, "status": {"hard": {"pods": "2"}, "used": {"pods": "0"}},
    }  # fmt: skip
    assert "few" in mpijob_webhook.check(GOOD, cluster=[quota]).message
    (tmp_path / "cluster.yaml").write_text(yaml.dump(quota))
    assert not mpijob_webhook.check(GOOD, cluster=tmp_path / "cluster.yaml")
    assert mpijob_webhook.check({**GOOD, "metadata": {"name": "a"}}, cluster=[quota], namespace="team-b")


@pytest.mark.parametrize(
    ("job", "policy", "message"),
    [
        ("]", None, "line 1, column 1"),
        ("kind: ConfigMap", None, "it has no MPIJobs; check takes exactly one"),
        (f"{yaml.dump(GOOD)}---\n{yaml.dump(GOOD)}", None, "it has 2 MPIJobs; check takes exactly one"),
        ("3", None, "is a number, not a Kubernetes object"),
        (Path("/no/such/file"), None, "no such file"),
        ("job.yaml", None, r"a file is given as pathlib.Path\(...\)"),
        ({**GOOD, "spec": {1, 2}}, None, r"cannot be sent as JSON: \{1, 2\} is of type set"),
        (changed({"spec.slotsPerWorker": float("nan")}), None, "cannot be sent as JSON: Out of range"),
        (CYCLE, None, "cannot be sent as JSON: Circular reference"),
        (GOOD, f"{HEADER}mode: x\n", "mode: must be enforce"),
        (GOOD, Path("/no/such/file"), "no such file"),
    ],
)
def test_unusable_argument_raises_a_value_error(job: object, policy: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mpijob_webhook.check(job, policy)


@pytest.mark.parametrize("cluster", ["cluster.yaml", {"kind": "Node"}])
def test_cluster_must_be_a_path_or_objects(cluster: Any) -> None:
    with pytest.raises(ValueError, match="must be the Path of a snapshot, or a list of objects"):
        mpijob_webhook.check(GOOD, cluster=cluster)


def test_objects_of_a_cluster_must_be_mappings() -> None:
    with pytest.raises(ValueError, match="cluster: 1 is not a mapping"):
        mpijob_webhook.check(GOOD, cluster=[1])  # type: ignore[list-item]


def test_job_is_converted_to_json_as_clients_do() -> None:
    """Keys and timestamps become strings."""
    job = changed({"metadata.labels": {1: "a"}, "metadata.creationTimestamp": datetime(2026, 1, 2)})
    job["spec"]["mpiReplicaSpecs"] = MappingProxyType(job["spec"]["mpiReplicaSpecs"])
    verdict = mpijob_webhook.check(job)
    assert verdict, verdict.message
    assert verdict.job["metadata"]["labels"]["1"] == "a"


def test_package_has_the_version_of_the_service() -> None:
    assert mpijob_webhook.__version__ == __version__
