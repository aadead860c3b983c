"""Conversion of MPIJobs of kubeflow.org/v1alpha1.

Both roles get a copy of the template. The number of units, which are GPUs or CPUs, gives the number of workers.
"""

from typing import Any

import pytest

from tests.support.older_jobs import V1ALPHA1
from webhook.converters.report import ConversionError, Outcome
from webhook.parts.older_versions.older_jobs import convert
from webhook.parts.older_versions.replica_specs import Options


def job(container: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    first = {"name": "mpi", "image": "a:1", "command": ["mpirun", "train"], **(container or {})}
    template = {"spec": {"containers": [first], **(pod or {})}}
    return {"apiVersion": V1ALPHA1, "kind": "MPIJob", "metadata": {"name": "a"}, "spec": {"template": template, **spec}}


def workers(old: dict[str, Any], options: Options | None = None) -> tuple[int, Any, Any]:
    spec = convert(old, options).document["spec"]
    worker = spec["mpiReplicaSpecs"]["Worker"]
    resources = worker["template"]["spec"]["containers"][0].get("resources", {})
    return worker["replicas"], resources.get("limits"), spec.get("slotsPerWorker")


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        (job(gpus=16, gpusPerNode=8), (2, {"nvidia.com/gpu": 8}, 8)),
        (job(gpus=4, gpusPerNode=8), (1, {"nvidia.com/gpu": 4}, 4)),
        (job(processingUnits=8, processingUnitsPerNode=4), (2, {"nvidia.com/gpu": 4}, 4)),
        (job(processingUnits=8, processingUnitsPerNode=4, processingResourceType="cpu"), (2, {"cpu": 4}, 4)),
        (job(processingUnits=8, processingUnitsPerNode=4, processingResourceType="tpu"), (2, {"nvidia.com/gpu": 4}, 4)),
        (job(gpus=16, gpusPerNode=8, slotsPerWorker=1), (2, {"nvidia.com/gpu": 8}, 1)),
        (job(replicas=3), (3, None, None)),
        (job({"resources": {"limits": {"nvidia.com/gpu": 2}}}, replicas=3), (3, {"nvidia.com/gpu": 2}, 2)),
        (
            job({"resources": {"limits": {"memory": "1Gi"}}}, gpus=8, gpusPerNode=8),
            (1, {"memory": "1Gi", "nvidia.com/gpu": 8}, 8),
        ),
    ],
)
def test_worker_count_and_worker_limits_and_slots_are_computed(
    old: dict[str, Any], expected: tuple[int, Any, Any]
) -> None:
    assert workers(old) == expected


@pytest.mark.parametrize("resource", ["cpu", "nvidia.com/gpu", "tpu"])
def test_field_processing_resource_type_without_units_is_reported_as_lost(resource: str) -> None:
    notes = convert(job(replicas=3, processingResourceType=resource)).report.notes
    assert [note.outcome for note in notes if note.field == "spec.processingResourceType"] == [Outcome.LOST]


def test_units_per_node_come_from_the_field_or_else_from_the_option() -> None:
    with pytest.raises(ConversionError, match=r"^spec\.gpusPerNode: is not set.*--gpus-per-node"):
        convert(job(gpus=16))
    assert workers(job(gpus=16), Options(gpus_per_node=4))[0] == 4
    assert workers(job(gpus=16, gpusPerNode=8), Options(gpus_per_node=4))[0] == 2


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"gpus": 8, "processingUnits": 8}, r"spec\.gpus: excludes processingUnits"),
        ({"gpus": 8, "replicas": 2}, r"spec\.gpus: excludes replicas"),
        ({}, r"spec\.replicas: is not set"),
        ({"gpus": 12, "gpusPerNode": 8}, r"spec\.gpus: 12 is not a multiple of the 8 per node"),
        ({"gpus": 0, "gpusPerNode": 8}, r"spec\.gpus: cannot be divided among workers"),
        ({"gpus": "8"}, r"spec\.gpus: is not a whole number"),
        ({"gpus": 8, "mpiReplicaSpecs": {}}, r"spec\.mpiReplicaSpecs: is a field of later versions"),
        ({"replicas": 1, "template": None}, r"spec\.template: is not set"),
        ({"replicas": 1, "template": {}}, r"spec\.template\.spec\.containers: is not a list of containers"),
    ],
)
def test_invalid_spec_is_rejected(spec: dict[str, Any], error: str) -> None:
    with pytest.raises(ConversionError, match=f"^{error}"):
        convert(job(**spec))


def test_template_is_copied_for_launcher_and_workers() -> None:
    gpu = {"resources": {"limits": {"nvidia.com/gpu": 2}}, "args": ["x"]}
    converted = convert(job(gpu, {"restartPolicy": "Never", "nodeSelector": {"a": "b"}}, replicas=2, backoffLimit=1))
    spec = converted.document["spec"]
    roles = spec["mpiReplicaSpecs"]
    assert roles["Launcher"]["template"]["spec"] == {
        "containers": [{"name": "mpi", "image": "a:1", "command": ["mpirun", "train"], "args": ["x"]}],
        "nodeSelector": {"a": "b"},
    }
    assert roles["Worker"]["template"]["spec"] == {
        "containers": [{"name": "mpi", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 2}}}],
        "nodeSelector": {"a": "b"},
    }
    assert (roles["Launcher"]["restartPolicy"], roles["Worker"]["restartPolicy"]) == ("Never", "OnFailure")
    assert spec["runPolicy"] == {"backoffLimit": 1}
    assert len(converted.report.notes) == len({(note.field, note.text) for note in converted.report.notes})


def test_request_for_gpus_is_set_to_the_limit_computed_from_the_units() -> None:
    old = job({"resources": {"requests": {"nvidia.com/gpu": 1, "cpu": 1}}}, gpus=16, gpusPerNode=8)
    container = convert(old).document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"nvidia.com/gpu": 8, "cpu": 1}, "limits": {"nvidia.com/gpu": 8}}


def test_field_launcher_on_master_is_reported_as_lost() -> None:
    lost = {note.field: note.text for note in convert(job(replicas=2, launcherOnMaster=True)).report.of(Outcome.LOST)}
    assert "node-role.kubernetes.io/control-plane" in lost["spec.launcherOnMaster"]


def test_only_the_first_container_gets_the_units_if_containers_share_a_yaml_anchor() -> None:
    shared = {"limits": {"cpu": "1"}}
    old = job({"resources": shared}, gpus=4, gpusPerNode=2)
    old["spec"]["template"]["spec"]["containers"] = [{"name": name, "resources": shared} for name in ("mpi", "logs")]
    containers = convert(old).document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert [container["resources"]["limits"] for container in containers] == [
        {"cpu": "1", "nvidia.com/gpu": 2},
        {"cpu": "1"},
    ]
