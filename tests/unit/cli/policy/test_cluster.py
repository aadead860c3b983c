"""What a cluster has in force, from a file and from a fake API server."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs import changed
from tests.support.namespaces import namespace
from tests.support.object_api import FakeApi, fake_api, kubeconfig
from tests.support.policies import HEADER, NAMESPACE, configmap
from tests.support.read_paths import CONFIGMAPS, MPIJOBS, PATHS_READ
from webhook.cli.policy import cluster
from webhook.cli.policy.cluster import ClusterPolicies
from webhook.client.calls import ClusterError
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.priority_classes import PRIORITY_CLASSES, PriorityClass
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.policy import last_good

REMEMBERED = "mpijob-webhook-last-good"

GOOD = configmap("base", HEADER + "mode: warn")
BROKEN = configmap("broken", HEADER + "priority: high\nmode: loud")
LAST_GOOD = {**configmap(REMEMBERED, "", label=""), "data": last_good.data_with({}, {"broken": HEADER + "mode: audit"})}


class TestFile:
    def read(self, tmp_path: Path, *objects: dict[str, Any], name: str = "team-a") -> ClusterPolicies:
        (tmp_path / "c.yaml").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
        return cluster.from_file(tmp_path / "c.yaml", policy_namespace=NAMESPACE, namespace=name)

    def test_policies_are_the_labelled_configmaps_of_the_namespace(self, tmp_path: Path) -> None:
        others = [
            configmap("a", HEADER, label=""),
            configmap("b", HEADER, label="yes"),
            configmap("c", HEADER, namespace="x"),
        ]
        found = self.read(tmp_path, *others, GOOD)
        assert [(layer.name, layer.document.mode) for layer in found.layers] == [("base", "warn")]
        assert found.origin == f"namespace {NAMESPACE} of {tmp_path / 'c.yaml'}"
        assert found.problems == []

    def test_a_broken_one_is_told_and_its_last_good_one_holds(self, tmp_path: Path) -> None:
        found = self.read(tmp_path, BROKEN, configmap("number", 3), LAST_GOOD)
        assert [(layer.name, layer.document.mode) for layer in found.layers] == [("broken", "audit")]
        one, two = found.problems
        assert one == (
            'policy "broken" is broken, its last good document is in force: '
            'line 3: priority: must be a whole number (it is "high"); '
            'line 4: mode: must be enforce, warn or audit (it is "loud")'
        )
        assert two.startswith(
            'policy "number" is broken, nothing of it is in force: the document: is missing: it belongs'
        )

    def test_the_namespace(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, namespace("team-a", tier="x")).namespace == Namespace("team-a", {"tier": "x"})
        assert self.read(tmp_path, namespace("other")).namespace is ABSENT
        assert self.read(tmp_path, GOOD).namespace is UNKNOWN

    def test_jobs_are_there_even_if_they_cannot_be_read(self, tmp_path: Path) -> None:
        odd = changed({"Worker.replicas": "many"})
        old = {**changed(), "apiVersion": "kubeflow.org/v1"}
        nameless = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "x"}}
        found = self.read(tmp_path, changed(), odd, old, nameless)
        jobs = [json.loads(job) for job in found.jobs]
        assert jobs[:2] == [changed(), odd]
        assert jobs[2]["metadata"] == {"name": "x", "namespace": "default"}
        assert len(jobs) == 3

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (None, "no such file or directory"),
            ("a: [", "line 2, column 1"),
            (json.dumps({**namespace("x"), "metadata": 3}), "a Namespace: metadata: must be a mapping"),
        ],
    )
    def test_a_file_that_cannot_be_used(self, tmp_path: Path, text: str | None, message: str) -> None:
        if text is not None:
            (tmp_path / "c.yaml").write_text(text)
        with pytest.raises(ClusterError) as caught:
            cluster.from_file(tmp_path / "c.yaml", policy_namespace=NAMESPACE)
        assert str(caught.value).startswith(f"{tmp_path / 'c.yaml'}: ")
        assert message in str(caught.value)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        for path in (CONFIGMAPS, MPIJOBS, *PATHS_READ):
            running.objects[path] = {"kind": "List", "metadata": {"resourceVersion": "7"}, "items": []}
        yield running


class TestApi:
    def read(self, api: FakeApi, tmp_path: Path, **options: Any) -> ClusterPolicies:
        config = kubeconfig(tmp_path / "config", api.url)
        return asyncio.run(cluster.from_api(config, policy_namespace=NAMESPACE, **options))

    def test_one_namespace_is_read_by_itself(self, api: FakeApi, tmp_path: Path) -> None:
        api.objects[CONFIGMAPS]["items"] = [GOOD, BROKEN]
        api.objects["/api/v1/namespaces/team-a"] = namespace("team-a", tier="x")
        found = self.read(api, tmp_path, namespace="team-a")
        assert found.namespace == Namespace("team-a", {"tier": "x"})
        assert [layer.name for layer in found.layers] == ["base"]
        assert found.problems[0].startswith('policy "broken" is broken, nothing of it is in force: ')
        assert found.origin == f"namespace {NAMESPACE} of the cluster at {api.url}"
        assert api.calls == [
            ("GET", CONFIGMAPS),
            ("GET", f"{CONFIGMAPS}/{REMEMBERED}"),
            ("GET", "/api/v1/namespaces/team-a"),
        ]

    def test_last_good_documents_are_found(self, api: FakeApi, tmp_path: Path) -> None:
        api.objects[CONFIGMAPS]["items"] = [BROKEN]
        api.objects[f"{CONFIGMAPS}/{REMEMBERED}"] = LAST_GOOD
        assert [layer.document.mode for layer in self.read(api, tmp_path).layers] == ["audit"]

    def test_a_namespace_that_does_not_exist(self, api: FakeApi, tmp_path: Path) -> None:
        assert self.read(api, tmp_path, namespace="nope/../x").namespace is ABSENT
        assert api.calls[-1] == ("GET", "/api/v1/namespaces/nope/../x")

    def test_jobs_and_what_rules_look_at(self, api: FakeApi, tmp_path: Path) -> None:
        api.objects[MPIJOBS]["items"] = [changed()]
        bare = {key: value for key, value in namespace("team-a", tier="x").items() if key == "metadata"}
        api.objects["/api/v1/namespaces"]["items"] = [bare]
        api.objects["/apis/scheduling.k8s.io/v1/priorityclasses"]["items"] = [
            {"metadata": {"name": "high"}, "value": 1000}
        ]
        found = self.read(api, tmp_path, jobs=True)
        assert [json.loads(job) for job in found.jobs] == [changed()]
        assert found.view.get(NAMESPACES, "team-a") == Namespace("team-a", {"tier": "x"})
        assert found.view.get(PRIORITY_CLASSES, "high") == PriorityClass("high", 1000)
        assert found.view.get(PRIORITY_CLASSES, "low") is ABSENT

    def test_what_may_not_be_read_or_is_not_installed_is_not_known(self, api: FakeApi, tmp_path: Path) -> None:
        api.refusals["GET", "/api/v1/namespaces"] = 403, "namespaces is forbidden"
        del api.objects["/apis/scheduling.k8s.io/v1/priorityclasses"]
        found = self.read(api, tmp_path, jobs=True)
        assert found.view.get(NAMESPACES, "team-a") is UNKNOWN
        assert found.view.get(PRIORITY_CLASSES, "high") is UNKNOWN
        assert found.problems == ["nothing is known of namespaces: forbidden: namespaces is forbidden"]

    @pytest.mark.parametrize(
        ("path", "refusal", "message"),
        [
            (CONFIGMAPS, (403, "configmaps is forbidden"), "refuses: configmaps is forbidden (403)"),
            (MPIJOBS, (404, "no"), "knows no MPIJobs: their CRD is not installed"),
            (MPIJOBS, (500, "broken"), "refuses: broken (500)"),
            ("/api/v1/namespaces/team-a", (403, "no"), "refuses: no (403)"),
        ],
    )
    def test_what_cannot_be_done_without(
        self, api: FakeApi, tmp_path: Path, path: str, refusal: tuple[int, str], message: str
    ) -> None:
        api.refusals["GET", path] = refusal
        with pytest.raises(ClusterError) as caught:
            self.read(api, tmp_path, namespace="" if path == MPIJOBS else "team-a", jobs=True)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_something_else_answers(self, api: FakeApi, tmp_path: Path) -> None:
        api.objects[CONFIGMAPS] = {"hello": "world"}
        with pytest.raises(ClusterError, match=r"what answers at .* is no API server"):
            self.read(api, tmp_path)
