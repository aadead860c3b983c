"""`mpijob-webhook snapshot` writes the objects of a fake API server to a file, which is read again."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.support import checking
from tests.support.jobs import GOOD, changed
from tests.support.namespaces import namespace
from tests.support.object_api import FakeApi, kubeconfig
from tests.support.policies import HEADER, configmap
from tests.support.read_paths import CONFIGMAPS, MPIJOBS, listed
from webhook.cli import files, job_world
from webhook.cluster.resources import watched_resources
from webhook.cluster.resources.config_maps import CONFIG_MAPS
from webhook.cluster.resources.limit_ranges import LIMIT_RANGES
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.persistent_volume_claims import PERSISTENT_VOLUME_CLAIMS
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.cluster.view import ABSENT, UNKNOWN

CLAIMS = "/api/v1/persistentvolumeclaims"
LIMITS = "/api/v1/limitranges"
CLAIM: dict[str, Any] = {
    "metadata": {
        "name": "data",
        "namespace": "team-a",
        "uid": "1",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"note": "kept"},
    },
    "spec": {"storageClassName": "fast", "volumeName": "pv-1"},
    "status": {"phase": "Bound"},
}


def run(api: FakeApi, folder: Path, *arguments: str) -> Result:
    config = kubeconfig(folder / "config", api.url)
    return checking.run("snapshot", "--kubeconfig", str(config), *arguments)


def taken(api: FakeApi, folder: Path, *arguments: str, code: int = 0) -> Snapshot:
    """Write a snapshot to a file, and return the cluster view of this file."""
    result = run(api, folder, "-o", str(folder / "c.yaml"), "--force", *arguments)
    assert result.exit_code == code, result.stderr
    manifests, errors = files.load([str(folder / "c.yaml")])
    assert not errors
    return Snapshot(manifest.document for manifest in manifests)


def test_kinds_that_were_read_are_complete_even_if_empty(api: FakeApi, tmp_path: Path) -> None:
    api.objects["/api/v1/namespaces"] = listed(namespace("team-a", tier="x"))
    view = taken(api, tmp_path)
    assert view.get(NAMESPACES, "team-a") == Namespace("team-a", {"tier": "x"})
    assert view.get(NAMESPACES, "team-b") is ABSENT
    for resource in watched_resources():
        if resource is not NAMESPACES:
            assert view.all(resource) == {}, resource.name
            assert view.groups(resource) == {}, resource.name
    assert view.within(LIMIT_RANGES, "team-a") == {}


def test_denied_or_missing_kinds_are_unknown(api: FakeApi, tmp_path: Path) -> None:
    api.refusals["GET", CLAIMS] = 403, "persistentvolumeclaims is forbidden"
    del api.objects[LIMITS]
    view = taken(api, tmp_path, code=1)
    for resource, key in ((PERSISTENT_VOLUME_CLAIMS, ("team-a", "data")), (LIMIT_RANGES, ("team-a", "x"))):
        assert view.get(resource, key) is UNKNOWN
        assert (view.all(resource), view.groups(resource)) == (UNKNOWN, UNKNOWN)
        assert view.within(resource, "team-a") is UNKNOWN
    result = run(api, tmp_path)
    warning = "no information about persistentvolumeclaims: forbidden: persistentvolumeclaims is forbidden"
    assert f"warning: {warning}\n" in result.stderr
    assert "limitranges: not installed\n" in result.stderr
    assert "namespaces: 0\n" in result.stderr
    assert "  persistentvolumeclaims: 'forbidden: " in result.stdout
    del api.refusals["GET", CLAIMS]
    assert run(api, tmp_path).exit_code == 0, "kinds that are not installed are no problem"


def test_only_fields_that_rules_read_are_written(api: FakeApi, tmp_path: Path) -> None:
    api.objects[CLAIMS] = listed(CLAIM)
    api.objects["/api/v1/configmaps"] = listed(configmap("team", "password", label="", namespace="team-a"))
    job = changed({"metadata.managedFields": [{}], "metadata.uid": "u", "status": {"startTime": "x"}})
    api.objects[MPIJOBS] = listed(job)
    text = run(api, tmp_path).stdout
    for noise in ("managedFields", "pv-1", "Bound", "password", "startTime"):
        assert noise not in text
    assert {method for method, _ in api.calls} == {"GET"}
    assert not any("secrets" in path for _, path in api.calls)
    view = taken(api, tmp_path)
    assert view.get(CONFIG_MAPS, ("team-a", "team")) not in {ABSENT, UNKNOWN}
    stored = view.jobs.get(("team-a", "train"))
    assert stored is not None
    assert stored["spec"] == GOOD["spec"]


def test_the_same_cluster_gives_the_same_file(api: FakeApi, tmp_path: Path) -> None:
    team_a, team_b = namespace("team-a"), namespace("team-b", b="1", a="2")
    api.objects["/api/v1/namespaces"] = listed(team_a, team_b)
    first = run(api, tmp_path).stdout
    api.objects["/api/v1/namespaces"] = listed(team_b, team_a)
    assert run(api, tmp_path).stdout == first


def test_other_commands_read_policies_and_jobs_from_the_file(api: FakeApi, tmp_path: Path) -> None:
    policy = configmap("base", HEADER + "mode: warn")
    policy["data"]["notes"] = "not a policy"
    remembered = configmap("mpijob-webhook-last-good", "", label="")
    remembered["data"] = {"base": HEADER}
    api.objects[CONFIGMAPS] = listed(policy)
    api.objects[f"{CONFIGMAPS}/mpijob-webhook-last-good"] = remembered
    api.objects[MPIJOBS] = listed(changed(), changed({"metadata.name": "other"}))
    assert "not a policy" not in run(api, tmp_path).stdout
    taken(api, tmp_path)
    cluster = job_world.of_file(tmp_path / "c.yaml", policy_namespace="mpijob-webhook")
    assert [(layer.name, layer.document.mode) for layer in cluster.layers] == [("base", "warn")]
    assert sorted(json.loads(job)["metadata"]["name"] for job in cluster.jobs) == ["other", "train"]


def test_unreadable_policies_are_reported(api: FakeApi, tmp_path: Path) -> None:
    api.refusals["GET", CONFIGMAPS] = 403, "no"
    result = run(api, tmp_path)
    assert result.exit_code == 1
    warning = f"the policies are unknown: the API server at {api.url} rejected the request: no (403)"
    assert f"warning: {warning}\n" in result.stderr
    assert "\n  policies: 'forbidden: the API server at " in result.stdout


@pytest.fixture
def of_two_namespaces(api: FakeApi, tmp_path: Path) -> Snapshot:
    """The snapshot of team-a and team-b, made by a user without rights in other namespaces."""
    api.objects["/api/v1/namespaces/team-a"] = namespace("team-a", tier="x")
    for resource in watched_resources():
        if resource.is_namespaced and resource.place is None:
            for version in resource.api_versions:
                api.refusals["GET", resource.path(version)] = 403, "no"
                for name in ("team-a", "team-b"):
                    api.objects[resource.path(version, name)] = listed()
    api.refusals["GET", "/api/v1/namespaces"] = 403, "no"
    api.objects["/api/v1/namespaces/team-a/persistentvolumeclaims"] = listed(CLAIM)
    return taken(api, tmp_path, "-n", "team-a", "-n", "team-b")


def test_objects_of_other_namespaces_are_unknown(of_two_namespaces: Snapshot) -> None:
    view = of_two_namespaces
    keys = [("team-a", "data"), ("team-a", "x"), ("team-b", "x"), ("team-c", "x")]
    claim, *others = (view.get(PERSISTENT_VOLUME_CLAIMS, key) for key in keys)
    assert getattr(claim, "storage_class", None) == "fast"
    assert others == [ABSENT, ABSENT, UNKNOWN]
    assert len(view.within(PERSISTENT_VOLUME_CLAIMS, "team-a")) == 1
    assert view.within(PERSISTENT_VOLUME_CLAIMS, "team-b") == {}
    assert view.within(PERSISTENT_VOLUME_CLAIMS, "team-c") is UNKNOWN
    assert (view.all(PERSISTENT_VOLUME_CLAIMS), view.groups(PERSISTENT_VOLUME_CLAIMS)) == (UNKNOWN, UNKNOWN)


def test_each_namespace_is_read_separately(of_two_namespaces: Snapshot) -> None:
    namespaces = [of_two_namespaces.get(NAMESPACES, name) for name in ("team-a", "team-b", "team-c")]
    assert namespaces == [Namespace("team-a", {"tier": "x"}), ABSENT, UNKNOWN]
    assert of_two_namespaces.all(NAMESPACES) is UNKNOWN


def test_policies_and_kueue_configuration_are_read_in_their_namespaces(of_two_namespaces: Snapshot) -> None:
    placed = [resource for resource in watched_resources() if resource.place]
    assert placed
    assert all(of_two_namespaces.all(resource) == {} for resource in placed)


@pytest.mark.usefixtures("of_two_namespaces")
def test_denied_namespace_does_not_hide_other_namespaces(api: FakeApi, tmp_path: Path) -> None:
    api.refusals["GET", "/api/v1/namespaces/team-b/persistentvolumeclaims"] = 403, "no"
    view = taken(api, tmp_path, "-n", "team-a", "-n", "team-b", code=1)
    assert view.get(PERSISTENT_VOLUME_CLAIMS, ("team-a", "x")) is ABSENT
    assert view.get(PERSISTENT_VOLUME_CLAIMS, ("team-b", "x")) is UNKNOWN


def test_only_the_unreadable_object_is_unknown(api: FakeApi, tmp_path: Path) -> None:
    broken = {"metadata": {"name": "broken", "namespace": "team-a"}, "spec": {"storageClassName": 3}}
    api.objects[CLAIMS] = listed(CLAIM, broken)
    result = run(api, tmp_path)
    assert result.exit_code == 1
    assert "warning: PersistentVolumeClaim team-a/broken cannot be read: ValidationError\n" in result.stderr
    view = taken(api, tmp_path, code=1)
    assert view.get(PERSISTENT_VOLUME_CLAIMS, ("team-a", "broken")) is UNKNOWN
    assert view.get(PERSISTENT_VOLUME_CLAIMS, ("team-a", "x")) is ABSENT
    assert view.within(PERSISTENT_VOLUME_CLAIMS, "team-a") is UNKNOWN
    assert view.within(PERSISTENT_VOLUME_CLAIMS, "team-b") == {}
    assert view.all(PERSISTENT_VOLUME_CLAIMS) is UNKNOWN


def test_unreadable_job_is_left_out(api: FakeApi, tmp_path: Path) -> None:
    api.objects[MPIJOBS] = listed(changed({"Worker.replicas": "4"}), changed({"metadata.name": "other"}))
    view = taken(api, tmp_path, code=1)
    assert view.jobs.get(("team-a", "train")) is None
    assert view.jobs.get(("team-a", "other")) is not None


def test_file_is_not_overwritten_and_only_its_owner_can_read_it(api: FakeApi, tmp_path: Path) -> None:
    target = tmp_path / "c.yaml"
    assert run(api, tmp_path, "-o", str(target)).exit_code == 0
    assert target.stat().st_mode & 0o777 == 0o600
    target.write_text("mine")
    again = run(api, tmp_path, "-o", str(target))
    assert (again.exit_code, again.stderr) == (2, f"error: {target} exists already, --force replaces it\n")
    assert target.read_text() == "mine"
    assert run(api, tmp_path, "-o", str(target), "--force").exit_code == 0
    assert target.read_text().startswith("# ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.yaml", "config"], "no temporary file is left"


def test_failed_snapshot_is_an_error(api: FakeApi, tmp_path: Path) -> None:
    elsewhere = run(api, tmp_path, "-o", str(tmp_path / "no" / "c.yaml"))
    assert elsewhere.exit_code == 2
    assert elsewhere.stderr.endswith(f"error: cannot write {tmp_path}/no/c.yaml: No such file or directory\n")
    nowhere = run(api, tmp_path, "--context", "nope")
    assert nowhere.exit_code == 2
    assert "nope" in nowhere.stderr
    api.url = "http://127.0.0.1:1"
    gone = run(api, tmp_path)
    assert gone.exit_code == 2
    assert gone.stderr.startswith("error: cannot read ")
    assert gone.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ({"known": []}, "the ClusterSnapshot: known: must be a mapping, not a list"),
        ({"known": {"namespaces": {"namespaces": "x"}}}, "the ClusterSnapshot: known[...].namespaces: must be a list"),
    ],
)
def test_broken_first_object_is_an_error(head: dict[str, Any], message: str) -> None:
    document = {"apiVersion": "policy.training.openshift.io/v1", "kind": "ClusterSnapshot", **head}
    with pytest.raises(SnapshotError) as caught:
        Snapshot([document])
    assert str(caught.value).startswith(message)


def test_kind_that_the_head_does_not_list_is_incomplete() -> None:
    """The head is the object ClusterSnapshot. It lists the kinds that the snapshot contains completely."""
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "ClusterSnapshot", "known": {"limitranges": {}}}
    view = Snapshot([head, namespace("team-a")])
    assert view.get(NAMESPACES, "team-a") == Namespace("team-a", {})
    assert view.get(NAMESPACES, "team-b") is UNKNOWN
    assert view.all(NAMESPACES) is UNKNOWN
    assert view.all(LIMIT_RANGES) == {}
