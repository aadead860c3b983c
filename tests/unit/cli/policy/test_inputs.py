"""The policies and objects of a cluster are read from a file, or from a fake API server."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.namespaces import namespace
from tests.support.object_api import FakeApi, kubeconfig
from tests.support.policies import HEADER, NAMESPACE, configmap
from tests.support.read_paths import CONFIGMAPS, MPIJOBS
from webhook.cli.job_world import JobWorld
from webhook.cli.policy import inputs
from webhook.client.access import Access
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.priority_classes import PRIORITY_CLASSES, PriorityClass
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.policy import store

REMEMBERED = "mpijob-webhook-last-good"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
GOOD = configmap("base", HEADER + "mode: warn")
BROKEN = configmap("broken", HEADER + "priority: high\nmode: loud")
COPY = store.with_remembered({}, {"broken": HEADER + "mode: audit"})
LAST_GOOD = {**configmap(REMEMBERED, "", label=""), "data": COPY}


class TestFile:
    def read(self, tmp_path: Path, *objects: dict[str, Any]) -> JobWorld:
        (tmp_path / "c.yaml").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
        return inputs.cluster(tmp_path / "c.yaml", Access(), NAMESPACE)

    def test_policies_are_the_labelled_configmaps_of_the_namespace(self, tmp_path: Path) -> None:
        unlabelled, elsewhere = configmap("a", HEADER, label="yes"), configmap("c", HEADER, namespace="x")
        world = self.read(tmp_path, unlabelled, elsewhere, GOOD)
        assert [(layer.name, layer.document.mode) for layer in world.layers] == [("base", "warn")]
        assert world.origin == f"namespace {NAMESPACE} of {tmp_path / 'c.yaml'}"
        assert world.problems == []

    def test_broken_policy_is_reported_and_its_last_valid_document_is_used(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        world = self.read(tmp_path, BROKEN, configmap("number", 3), LAST_GOOD)
        assert [(layer.name, layer.document.mode) for layer in world.layers] == [("broken", "audit")]
        of_broken, of_number = capsys.readouterr().err.splitlines()
        assert of_broken == (
            'warning: policy "broken" is broken, its last good document is in force: '
            'line 3: priority: must be a whole number (it is "high"); '
            'line 4: mode: must be enforce, warn or audit (it is "loud")'
        )
        assert of_number.startswith('warning: policy "number" is broken, it has no effect: the document: is missing: ')

    def test_job_without_a_namespace_is_in_the_default_namespace(self, tmp_path: Path) -> None:
        nameless = changed({"metadata.namespace": REMOVE, "metadata.name": "x"})
        jobs = [json.loads(job) for job in self.read(tmp_path, changed(), nameless).jobs]
        assert [job["metadata"]["namespace"] for job in jobs] == ["team-a", "default"]

    def test_file_with_an_unreadable_job_is_an_error(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            self.read(tmp_path, changed({"Worker.replicas": "many"}))
        assert capsys.readouterr().err.startswith(f'error: {tmp_path / "c.yaml"}: MPIJob "train": ')


class TestApi:
    def read(self, api: FakeApi, tmp_path: Path, **options: Any) -> JobWorld:
        return inputs.cluster(None, kubeconfig(tmp_path / "config", api.url), NAMESPACE, **options)

    def test_only_the_requested_namespace_is_read(self, api: FakeApi, tmp_path: Path) -> None:
        api.objects[CONFIGMAPS]["items"] = [GOOD, BROKEN]
        api.objects["/api/v1/namespaces/team-a"] = namespace("team-a", tier="x")
        world = self.read(api, tmp_path, namespace="team-a")
        assert world.cluster.get(NAMESPACES, "team-a") == Namespace("team-a", {"tier": "x"})
        assert [layer.name for layer in world.layers] == ["base"]
        assert world.problems[0].startswith('policy "broken" is broken, it has no effect: ')
        assert world.origin == f"namespace {NAMESPACE} of the cluster at {api.url}"
        paths = [path for verb, path in api.calls if verb == "GET"]
        assert paths == ["/api/v1/namespaces/team-a", CONFIGMAPS, f"{CONFIGMAPS}/{REMEMBERED}"]

    def test_last_valid_documents_are_read(self, api: FakeApi, tmp_path: Path) -> None:
        api.objects[CONFIGMAPS]["items"] = [BROKEN]
        api.objects[f"{CONFIGMAPS}/{REMEMBERED}"] = LAST_GOOD
        world = self.read(api, tmp_path, namespace="team-a")
        assert [layer.document.mode for layer in world.layers] == ["audit"]
        assert world.cluster.get(NAMESPACES, "team-a") is ABSENT

    def test_jobs_and_objects_for_rules_are_read(self, api: FakeApi, tmp_path: Path) -> None:
        api.objects[MPIJOBS]["items"] = [changed({"metadata.ownerReferences": [{"kind": "TrainJob"}]})]
        api.objects["/api/v1/namespaces"]["items"] = [namespace("team-a", tier="x")]
        api.objects[PRIORITIES]["items"] = [{"metadata": {"name": "high"}, "value": 1000}]
        world = self.read(api, tmp_path, jobs=True)
        (job,) = map(json.loads, world.jobs)
        assert job["spec"] == changed()["spec"]
        assert job["metadata"]["ownerReferences"] == [{"kind": "TrainJob"}]
        assert world.cluster.get(NAMESPACES, "team-a") == Namespace("team-a", {"tier": "x"})
        assert world.cluster.get(PRIORITY_CLASSES, "high") == PriorityClass("high", 1000)
        assert world.cluster.get(PRIORITY_CLASSES, "low") is ABSENT

    def test_forbidden_or_missing_kind_is_unknown(self, api: FakeApi, tmp_path: Path) -> None:
        api.refusals["GET", "/api/v1/namespaces"] = 403, "namespaces is forbidden"
        del api.objects[PRIORITIES]
        world = self.read(api, tmp_path, jobs=True)
        assert world.cluster.get(NAMESPACES, "team-a") is UNKNOWN
        assert world.cluster.get(PRIORITY_CLASSES, "high") is UNKNOWN
        assert world.unread == ["no information about namespaces: forbidden: namespaces is forbidden"]

    @pytest.mark.parametrize(
        ("path", "status", "message"),
        [
            (CONFIGMAPS, 403, "policies cannot be read: forbidden: the API server at "),
            (MPIJOBS, 404, "mpijobs cannot be read: not installed"),
            (MPIJOBS, 403, "mpijobs cannot be read: forbidden: no"),
            ("/api/v1/namespaces/team-a", 403, "namespaces in team-a cannot be read: forbidden: no"),
        ],
    )
    def test_denied_read_of_policies_or_jobs_or_the_namespace_is_an_error(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, api: FakeApi, path: str, status: int, message: str
    ) -> None:
        api.refusals["GET", path] = status, "no"
        with pytest.raises(SystemExit):
            self.read(api, tmp_path, namespace="" if path == MPIJOBS else "team-a", jobs=path == MPIJOBS)
        error = capsys.readouterr().err
        assert error.startswith(f"error: {message}")
        assert error.count("\n") == 1
