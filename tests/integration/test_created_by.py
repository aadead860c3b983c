"""No request of a tenant to a real API server can forge the annotation that names a job's creator."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.exempting import grant
from tests.support.installation.service import example
from webhook.api.annotations import CREATED_BY

pytestmark = pytest.mark.timeout(300)
PI = assets().upstream_examples["pi"]
JOBS = {"apiGroups": ["kubeflow.org"], "resources": ["mpijobs", "mpijobs/status"], "verbs": ["*"]}


@pytest.fixture(scope="module", autouse=True)
def webhook(cluster: Cluster) -> Iterator[None]:
    with service.running(cluster):
        yield


@pytest.fixture
def stored(cluster: Cluster, namespace: str) -> dict[str, Any]:
    """A suspended job created by alice. alice and eve have every permission on jobs."""
    for user in ("alice", "eve"):
        grant(cluster, namespace, user, JOBS)
    job = example(PI, name="train", namespace=namespace)
    job["spec"]["runPolicy"] = {**job["spec"].get("runPolicy", {}), "suspend": True}
    submit = lambda: attempt(cluster, "alice", "apply", stdin=job) if allowed(cluster, namespace) else None  # noqa: E731
    assert "created" in cluster.wait_for("the rights", submit)
    found: dict[str, Any] = cluster.get("mpijob", "train", "-n", namespace)
    assert found["metadata"]["annotations"][CREATED_BY] == "alice"
    return found


def allowed(cluster: Cluster, namespace: str) -> bool:
    command = ("auth", "can-i", "patch", "mpijobs", "-n", namespace)
    return all(cluster.kubectl(*command, f"--as={user}", check=False).returncode == 0 for user in ("alice", "eve"))


def attempt(cluster: Cluster, user: str, *command: str, stdin: Any = None) -> str:
    files = ("-f", "-") if stdin is not None else ()
    done = cluster.kubectl(*command, *files, f"--as={user}", stdin=stdin, check=False)
    return done.stdout + done.stderr


def creator(cluster: Cluster, namespace: str) -> Any:
    return cluster.get("mpijob", "train", "-n", namespace)["metadata"]["annotations"].get(CREATED_BY)


def exported(job: dict[str, Any], name: str = "train") -> dict[str, Any]:
    """The output of `kubectl get -o yaml`, without fields that only the API server writes."""
    metadata = {key: value for key, value in job["metadata"].items() if key in {"annotations", "labels", "namespace"}}
    return {**{key: job[key] for key in ("apiVersion", "kind", "spec")}, "metadata": {**metadata, "name": name}}


def test_only_the_creator_can_apply_an_exported_job_again(
    cluster: Cluster, namespace: str, stored: dict[str, Any]
) -> None:
    for flags in ([], ["--server-side", "--force-conflicts"]):
        for user in ("alice", "eve"):
            assert "mpijob.kubeflow.org/train " in attempt(cluster, user, "apply", *flags, stdin=exported(stored))
            assert creator(cluster, namespace) == "alice"
    assert "created" in attempt(cluster, "alice", "create", "--dry-run=server", stdin=exported(stored, "copy"))
    refused = attempt(cluster, "eve", "create", "--dry-run=server", stdin=exported(stored, "copy"))
    assert 'is "alice", but "eve" creates the job. Remove it: admission writes it.' in refused


def test_update_that_changes_the_creator_is_rejected(cluster: Cluster, namespace: str, stored: dict[str, Any]) -> None:
    here = ("mpijob", "train", "-n", namespace)
    mine = {"metadata": {"annotations": {CREATED_BY: "eve"}}}
    gone = {"metadata": {"annotations": {CREATED_BY: None}}}
    owned = {**exported(stored), "metadata": {**exported(stored)["metadata"], "annotations": {CREATED_BY: "eve"}}}
    attempts = {
        "annotate": attempt(cluster, "eve", "annotate", *here, "--overwrite", f"{CREATED_BY}=eve"),
        "patch": attempt(cluster, "eve", "patch", *here, "--type=merge", "-p", json.dumps(mine)),
        "server-side": attempt(cluster, "eve", "apply", "--server-side", "--force-conflicts", stdin=owned),
        "replace": attempt(cluster, "eve", "replace", stdin=owned),
    }
    admitted = [name for name, text in attempts.items() if '"alice" was changed to "eve". Restore it.' not in text]
    assert admitted == [], attempts
    attempt(cluster, "eve", "annotate", *here, f"{CREATED_BY}-")
    attempt(cluster, "eve", "patch", *here, "--type=merge", "-p", json.dumps(gone))
    without = {**exported(stored), "metadata": {**exported(stored)["metadata"], "annotations": {}}}
    attempt(cluster, "eve", "replace", stdin=without)
    for change in (mine, gone):
        attempt(cluster, "eve", "patch", *here, "--subresource=status", "--type=merge", "-p", json.dumps(change))
    assert creator(cluster, namespace) == "alice"


def test_an_impersonated_user_is_the_creator(cluster: Cluster, namespace: str, stored: dict[str, Any]) -> None:
    job = {**exported(stored), "metadata": {"name": "other", "namespace": namespace}}
    command = ("create", "--dry-run=server", "--as=eve", "-o", "json", "-f", "-")
    made = json.loads(cluster.kubectl(*command, stdin=job).stdout)
    assert made["metadata"]["annotations"][CREATED_BY] == "eve"


def test_creator_cannot_be_forged_without_the_mutating_hook(
    cluster: Cluster, namespace: str, stored: dict[str, Any]
) -> None:
    """This test is the last, because it deletes the hook."""
    cluster.kubectl("delete", "mutatingwebhookconfigurations", "--all")
    job = exported(stored, "other")
    job["metadata"]["annotations"] = {CREATED_BY: "alice"}
    assert 'is "alice", but "eve" creates' in attempt(cluster, "eve", "create", "--dry-run=server", stdin=job)
    remove = ("annotate", "mpijob", "train", "-n", namespace, f"{CREATED_BY}-")
    cluster.wait_for("the hook to be gone", lambda: '"alice" was removed' in attempt(cluster, "eve", *remove))
    assert creator(cluster, namespace) == "alice"
