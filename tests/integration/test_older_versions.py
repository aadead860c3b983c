"""The CRD has older versions. The service converts jobs, so that a client can read and write any version."""

import json
from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.clients_page import shown
from tests.support.installation import service
from tests.support.installation.older_versions import (
    LAUNCHER,
    OLDER,
    VERSIONS,
    container,
    horovod,
    read,
    resource,
    serve_older_versions,
    units,
)
from tests.support.jobs import GOOD, changed
from tests.support.kubeflow_sdks import submit
from tests.support.rare import FULL
from webhook.api.annotations import SKIP
from webhook.parts.older_versions.both_ways import WRITTEN_AS


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster, because these tests replace the CRD."""
    with Cluster(log_dir=tmp_path_factory.mktemp("older-versions-logs")) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def converting(cluster: Cluster) -> Iterator[None]:
    with service.running(cluster, "--conversion"):
        serve_older_versions(cluster)
        yield


def test_job_can_be_read_and_written_in_each_version(cluster: Cluster, namespace: str) -> None:
    job = horovod(namespace, mainContainer="mpi")
    created = cluster.kubectl("create", "-f", "-", stdin=job)
    assert "kubeflow.org/v1 of MPIJob goes away: `mpijob-webhook convert FILE` converts the job" in created.stderr

    new = read(cluster, namespace, "horovod", "v2beta1")
    assert "command" not in container(new)
    assert container(new, "Launcher")["command"] == ["mpirun", "-np", "2", "python", "train.py"]
    assert new["spec"]["runPolicy"]["cleanPodPolicy"] == "Running"
    assert new["spec"]["runPolicy"]["activeDeadlineSeconds"] == 24 * 60 * 60, "the injected values are present"

    old = read(cluster, namespace, "horovod", "v1")
    assert (old["spec"]["cleanPodPolicy"], old["spec"]["mainContainer"]) == ("Running", "mpi")
    assert container(old)["command"] == ["sleep", "infinity"]
    assert container(old, "Launcher")["command"] == LAUNCHER["command"]
    assert old["spec"]["runPolicy"]["activeDeadlineSeconds"] == 24 * 60 * 60

    cluster.kubectl(
        "patch", resource("v1"), "horovod", "-n", namespace, "--type=merge", "-p", '{"spec":{"slotsPerWorker":2}}'
    )
    assert read(cluster, namespace, "horovod", "v2beta1")["spec"]["slotsPerWorker"] == 2
    replicas = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}})
    cluster.kubectl("patch", resource("v2beta1"), "horovod", "-n", namespace, "--type=merge", "-p", replicas)
    again = read(cluster, namespace, "horovod", "v1")
    assert again["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 3
    assert again["spec"] == {
        **old["spec"],
        "slotsPerWorker": 2,
        "mpiReplicaSpecs": {
            **old["spec"]["mpiReplicaSpecs"],
            "Worker": {**old["spec"]["mpiReplicaSpecs"]["Worker"], "replicas": 3},
        },
    }

    cluster.kubectl("create", "-f", "-", stdin=changed({"metadata.namespace": namespace}, GOOD))
    cluster.kubectl("create", "-f", "-", stdin=units(namespace))
    for version in VERSIONS:
        items = cluster.get(resource(version), "-n", namespace)["items"]
        assert sorted(item["metadata"]["name"] for item in items) == ["horovod", "train", "units"]
    old = read(cluster, namespace, "units", "v1alpha1")["spec"]
    assert {key: old[key] for key in ("processingUnits", "processingUnitsPerNode", "processingResourceType")} == {
        "processingUnits": 4,
        "processingUnitsPerNode": 2,
        "processingResourceType": "cpu",
    }
    assert old["template"] == units(namespace)["spec"]["template"]
    new = read(cluster, namespace, "units", "v2beta1")["spec"]
    assert (new["slotsPerWorker"], new["mpiReplicaSpecs"]["Worker"]["replicas"]) == (2, 2)


@pytest.mark.parametrize("flags", [[], ["--server-side"]])
@pytest.mark.parametrize("version", ["v1", "v1alpha2"])
def test_repeated_apply_in_an_older_version_changes_nothing(
    cluster: Cluster, namespace: str, version: str, flags: list[str]
) -> None:
    job = horovod(namespace, version=version)
    # The job skips injections, because client-side apply removes values that the service injects into containers.
    job["metadata"]["annotations"] = {SKIP: "api-access,istio,job-timeout,labels,mpi-env,clean-pod-policy"}
    cluster.kubectl("apply", *flags, "-f", "-", stdin=job)
    before = read(cluster, namespace, "horovod", "v2beta1")
    assert cluster.kubectl("diff", *flags, "-f", "-", stdin=job, check=False).stdout == ""
    applied = cluster.kubectl("apply", *flags, "-f", "-", stdin=job)
    assert flags or applied.stdout.endswith(" unchanged\n")
    after = read(cluster, namespace, "horovod", "v2beta1")
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]

    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 4
    cluster.kubectl("apply", *flags, "-f", "-", stdin=job)
    changed_job = read(cluster, namespace, "horovod", "v2beta1")
    assert changed_job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 4
    assert "command" not in container(changed_job)


def test_client_with_an_older_version_changes_a_v2beta1_job(cluster: Cluster, namespace: str) -> None:
    new = changed({"metadata.namespace": namespace, "spec.sshAuthMountPath": "/home/mpiuser/.ssh"}, GOOD)
    cluster.kubectl("create", "-f", "-", stdin=new)
    before = read(cluster, namespace, "train", "v2beta1")
    for number, version in enumerate(OLDER, start=5):
        old = read(cluster, namespace, "train", version)
        assert "sshAuthMountPath" not in old["spec"]
        old["spec"]["runPolicy"]["backoffLimit"] = number
        cluster.kubectl("replace", "-f", "-", stdin=old)
        after = read(cluster, namespace, "train", "v2beta1")
        assert after["spec"] == {**before["spec"], "runPolicy": {**before["spec"]["runPolicy"], "backoffLimit": number}}
        assert after["metadata"]["annotations"] == before["metadata"]["annotations"]


@pytest.mark.parametrize("dry_run", [[], ["--dry-run=server"]])
def test_invalid_older_job_is_rejected_with_the_reason(cluster: Cluster, namespace: str, dry_run: list[str]) -> None:
    refused = cluster.kubectl("create", *dry_run, "-f", "-", stdin=units(namespace, processingUnits=5), check=False)
    assert refused.returncode == 1
    assert f"MPIJob {namespace}/units: spec.processingUnits: 5 is not a multiple of the 2 per node" in refused.stderr
    refused = cluster.kubectl("create", *dry_run, "-f", "-", stdin=horovod(namespace, mpiReplicaSpecs={}), check=False)
    assert "[schema]" in refused.stderr or "at least 2 required" in refused.stderr, refused.stderr
    cluster.kubectl("create", "-f", "-", stdin=units(namespace))
    wrong = ("-p", '{"spec": {"processingUnits": 5}}', "--type=merge", *dry_run)
    refused = cluster.kubectl("patch", resource("v1alpha1"), "units", "-n", namespace, *wrong, check=False)
    assert "5 is not a multiple of the 2 per node" in refused.stderr
    assert read(cluster, namespace, "units", "v1alpha1")["spec"]["processingUnits"] == 4


def test_rules_apply_to_jobs_in_older_versions(cluster: Cluster, namespace: str) -> None:
    job = horovod(namespace)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 1
    refused = cluster.kubectl("create", "-f", "-", stdin=job, check=False)
    assert "spec.mpiReplicaSpecs[Worker].replicas: 1 worker, at least 2 required." in refused.stderr


def test_job_that_the_operator_cannot_read_is_rejected_in_every_version(cluster: Cluster, namespace: str) -> None:
    job = horovod(namespace)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = 5
    refused = cluster.kubectl("create", "--validate=false", "-f", "-", stdin=job, check=False)
    path = "spec.mpiReplicaSpecs[Worker].template.spec"
    assert f"MPIJob {namespace}/horovod: {path}.containers[0].image: is not text" in refused.stderr
    job = horovod(namespace)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["volumes"] = [
        {"name": "mpi-job-kubectl", "hostPath": 5}  # the conversion removes this volume
    ]
    refused = cluster.kubectl("create", "--validate=false", "-f", "-", stdin=job, check=False)
    assert f"{path}.volumes[0].hostPath: is not a mapping" in refused.stderr


def test_invalid_conversion_annotation_is_not_shown_to_older_clients(cluster: Cluster, namespace: str) -> None:
    """The annotation stores fields that only the older version has. Any user may write the annotation."""
    cluster.kubectl("create", "-f", "-", stdin=horovod(namespace))
    new = read(cluster, namespace, "horovod", "v2beta1")
    before = read(cluster, namespace, "horovod", "v1")["spec"]
    written = json.loads(new["metadata"]["annotations"][WRITTEN_AS])
    pod = written["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert pod["containers"][0]["command"] == ["sleep", "infinity"]
    pod["volumes"] = [{"name": "mpi-job-kubectl", "hostPath": 5}]
    annotation = f"{WRITTEN_AS}={json.dumps(written)}"
    name = (resource("v2beta1"), "horovod", "-n", namespace)
    cluster.kubectl("annotate", "--overwrite", *name, annotation)
    forged = read(cluster, namespace, "horovod", "v1")["spec"]
    assert "volumes" not in forged["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert container(read(cluster, namespace, "horovod", "v1")).get("command") is None
    annotation = f"{WRITTEN_AS}={new['metadata']['annotations'][WRITTEN_AS]}"
    cluster.kubectl("annotate", "--overwrite", *name, annotation)
    assert read(cluster, namespace, "horovod", "v1")["spec"] == before


@pytest.mark.skipif(not FULL, reason="downloads packages: run `make test-long`")
@pytest.mark.timeout(600)
def test_training_sdk_prints_the_documented_rejection(cluster: Cluster, namespace: str) -> None:
    """docs/clients.md shows this output."""
    job = horovod(namespace)
    refused, _ = submit("training", cluster, namespace, changed({"Worker.replicas": 1}, job))
    first, _, rest = refused["error"].partition("\n")
    assert f"{first}\n{refused['message']}\n".replace(namespace, "NAMESPACE") == shown("Kubeflow training SDK")
    assert json.dumps(refused["message"])[1:-1] in rest, "the message is in one line, with escaped newlines"
    stored, _ = submit("training", cluster, namespace, job)
    assert "job-timeout" in stored["training.openshift.io/injected"].split(",")
