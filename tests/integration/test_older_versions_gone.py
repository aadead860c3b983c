"""Older versions: while the service is down, after their removal from the CRD, and with jobs stored in v1."""

import json
from collections.abc import Iterator
from copy import deepcopy

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.support.installation import service
from tests.support.installation.older_versions import (
    CRD,
    Json,
    container,
    horovod,
    read,
    resource,
    serve_older_versions,
)
from tests.support.jobs import GOOD, changed
from tests.support.rare import rare
from tools import older_versions_crd
from webhook.parts.older_versions.both_ways import NO_JOB, WRITTEN_AS

# The patch in docs/older-versions.md that removes the older versions from the CRD.
REMOVED: list[Json] = [
    *[{"op": "remove", "path": f"/spec/versions/{number}"} for number in (3, 2, 1)],
    {"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}},
]

pytestmark = rare


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster, because these tests replace the CRD."""
    with Cluster(log_dir=tmp_path_factory.mktemp("older-versions-gone-logs")) as running:
        yield running


def test_v2beta1_works_and_older_versions_fail_while_the_service_is_down(cluster: Cluster, namespace: str) -> None:
    with service.running(cluster, "--conversion"):
        serve_older_versions(cluster)
        cluster.kubectl("create", "-f", "-", stdin=horovod(namespace))
        read(cluster, namespace, "horovod", "v1")
    new = read(cluster, namespace, "horovod", "v2beta1")
    assert "command" not in container(new)
    cluster.kubectl("annotate", resource("v2beta1"), "horovod", "-n", namespace, "changed=meanwhile")
    cluster.kubectl("create", "-f", "-", stdin=changed({"metadata.namespace": namespace}, GOOD))
    assert len(cluster.get(resource("v2beta1"), "-n", namespace)["items"]) == 2
    for arguments in (
        ("get", resource("v1"), "horovod", "-n", namespace),
        ("delete", resource("v1"), "horovod", "-n", namespace, "--wait=false"),
        ("create", "-f", "-"),
    ):
        stdin = horovod(namespace, "other") if arguments[0] == "create" else None
        failed = cluster.kubectl(*arguments, stdin=stdin, check=False)
        assert "conversion webhook for kubeflow.org/v" in failed.stderr, (arguments, failed)
    with service.running(cluster, "--conversion"):
        serve_older_versions(cluster)
        assert read(cluster, namespace, "horovod", "v1")["metadata"]["annotations"]["changed"] == "meanwhile"


def test_older_versions_can_be_removed_from_the_crd(cluster: Cluster, namespace: str) -> None:
    with service.running(cluster, "--conversion"):
        serve_older_versions(cluster)
        cluster.kubectl("create", "-f", "-", stdin=horovod(namespace))
    cluster.kubectl("patch", "crd", CRD, "--type=json", "-p", json.dumps(REMOVED))
    crd = cluster.get("crd", CRD)
    assert [version["name"] for version in crd["spec"]["versions"]] == crd["status"]["storedVersions"] == ["v2beta1"]
    new = read(cluster, namespace, "horovod", "v2beta1")
    cluster.kubectl("annotate", resource("v2beta1"), "horovod", "-n", namespace, f"{WRITTEN_AS}-")
    assert read(cluster, namespace, "horovod", "v2beta1")["spec"] == new["spec"]


def test_jobs_stored_in_an_older_version_stay_readable(cluster: Cluster, namespace: str) -> None:
    """training-operator's CRD has only v1. This project's CRD replaces that CRD, and the existing jobs stay."""
    crd = older_versions_crd.crd({"url": "https://127.0.0.1:1/convert"})
    v1 = deepcopy(next(version for version in crd["spec"]["versions"] if version["name"] == "v1"))
    alone = deepcopy(crd)
    alone["spec"] |= {"versions": [v1 | {"storage": True}], "conversion": {"strategy": "None"}}
    cluster.kubectl("delete", "crd", CRD)
    cluster.kubectl("create", "-f", "-", stdin=alone)
    cluster.wait_for("the CRD", lambda: has_condition(cluster.get("crd", CRD), "Established") or None)
    broken = horovod(namespace, "broken", mpiReplicaSpecs={"Worker": {}})
    for job in (horovod(namespace), broken):
        cluster.wait_for(
            "v1", lambda job=job: not cluster.kubectl("create", "-f", "-", stdin=job, check=False).returncode or None
        )

    with service.running(cluster, "--conversion"):
        serve_older_versions(cluster)
        jobs = {job["metadata"]["name"]: job for job in cluster.get(resource("v2beta1"), "-n", namespace)["items"]}
        assert set(jobs) == {"horovod", "broken"}
        assert "command" not in container(jobs["horovod"])
        assert jobs["broken"]["spec"] == NO_JOB
        assert read(cluster, namespace, "broken", "v1")["spec"]["mpiReplicaSpecs"] == {"Worker": {}}
        cluster.kubectl("delete", resource("v1"), "broken", "-n", namespace)

        assert cluster.get("crd", CRD)["status"]["storedVersions"] == ["v1", "v2beta1"]
        stored = cluster.get(resource("v2beta1"), "-A")
        cluster.kubectl("replace", "-f", "-", stdin=stored)
        anew = ("--subresource=status", "--type=merge", "-p", '{"status": {"storedVersions": ["v2beta1"]}}')
        cluster.kubectl("patch", "crd", CRD, *anew)
        assert container(read(cluster, namespace, "horovod", "v1"))["command"] == ["sleep", "infinity"]
    cluster.kubectl("patch", "crd", CRD, "--type=json", "-p", json.dumps(REMOVED))
    assert "command" not in container(read(cluster, namespace, "horovod", "v2beta1"))
