"""The rule `references` checks the objects to which a job's pods refer."""

from typing import Any

import pytest

from tests.support.any_job import Json
from tests.support.rule_checks import as_texts, fits_a_warning, violations
from webhook.admission.messages import Finding
from webhook.api.networks import NETWORKS
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason, Violation

WORKER = "spec.mpiReplicaSpecs[Worker].template"
LAUNCHER = "spec.mpiReplicaSpecs[Launcher].template"
POD = "Worker.template.spec"
CREATE = "Create it, before or in the same apply."
KINDS = {
    "PersistentVolumeClaim": "v1",
    "ConfigMap": "v1",
    "ServiceAccount": "v1",
    "RuntimeClass": "node.k8s.io/v1",
    "NetworkAttachmentDefinition": "k8s.cni.cncf.io/v1",
}


def stored(kind: str, name: str, *, namespace: str = "team-a", **fields: Any) -> Json:
    metadata = {"name": name} | ({} if kind == "RuntimeClass" else {"namespace": namespace})
    return {"apiVersion": KINDS[kind], "kind": kind, "metadata": metadata, **fields}


def claim(name: str, *modes: str) -> Json:
    return stored("PersistentVolumeClaim", name, spec={"accessModes": list(modes)})


CLUSTER = Snapshot(
    [
        claim("dataset", "ReadWriteMany"),
        claim("scratch", "ReadWriteOnce"),
        claim("models", "ReadOnlyMany", "ReadWriteOnce"),
        claim("single", "ReadWriteOncePod"),
        claim("unknown"),
        stored("PersistentVolumeClaim", "data", namespace="team-b"),
        stored("ConfigMap", "settings"),
        stored("ServiceAccount", "trainer"),
        stored("RuntimeClass", "nvidia"),
        stored("NetworkAttachmentDefinition", "ib"),
        stored("NetworkAttachmentDefinition", "roce", namespace="net"),
    ]
)


def volume(source: str, value: Any) -> Json:
    return {f"{POD}.volumes": [{"name": "v", source: value}]}


def first(field: str, value: Any) -> Json:
    return {f"{POD}.containers.0.{field}": value}


def attached(text: str) -> Json:
    return {"Worker.template.metadata": {"annotations": {NETWORKS: text}}}


CASES: list[tuple[Any, str, str, str]] = [
    (lambda name: volume("persistentVolumeClaim", {"claimName": name}), "PersistentVolumeClaim", "dataset",
     "spec.volumes[0].persistentVolumeClaim.claimName"),
    (lambda name: volume("configMap", {"name": name}), "ConfigMap", "settings", "spec.volumes[0].configMap.name"),
    (lambda name: volume("projected", {"sources": [{"secret": {}}, {"configMap": {"name": name}}]}), "ConfigMap",
     "settings", "spec.volumes[0].projected.sources[1].configMap.name"),
    (lambda name: first("envFrom", [{"configMapRef": {"name": name}}]), "ConfigMap", "settings",
     "spec.containers[0].envFrom[0].configMapRef.name"),
    (lambda name: first("env", [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": name, "key": "a"}}}]),
     "ConfigMap", "settings", "spec.containers[0].env[0].valueFrom.configMapKeyRef.name"),
    (lambda name: {f"{POD}.initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": name}}]}]},
     "ConfigMap", "settings", "spec.initContainers[0].envFrom[0].configMapRef.name"),
    (lambda name: {f"{POD}.serviceAccountName": name}, "ServiceAccount", "trainer", "spec.serviceAccountName"),
    (lambda name: {f"{POD}.serviceAccount": name}, "ServiceAccount", "trainer", "spec.serviceAccount"),
    (lambda name: {f"{POD}.runtimeClassName": name}, "RuntimeClass", "nvidia", "spec.runtimeClassName"),
    (attached, "NetworkAttachmentDefinition", "ib", f"metadata.annotations[{NETWORKS}]"),
    (lambda name: attached(f"ib,{name}@net1"), "NetworkAttachmentDefinition", "ib",
     f"metadata.annotations[{NETWORKS}]"),
    (lambda name: attached(f'[{{"name": "{name}"}}]'), "NetworkAttachmentDefinition", "ib",
     f"metadata.annotations[{NETWORKS}]"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "kind", "name", "path"), CASES, ids=lambda value: value if value in KINDS else "")
class TestEachReference:
    def test_existing_object_is_accepted(self, changes: Any, kind: str, name: str, path: str) -> None:
        assert violations("references", changes(name), view=CLUSTER) == []

    def test_missing_object_is_reported(self, changes: Any, kind: str, name: str, path: str) -> None:
        fault = f'{kind} "zzzzzzzz" does not exist'
        expected = Violation(f"{WORKER}.{path}", fault, fix=CREATE, reason=CauseReason.NOT_SUPPORTED)
        assert violations("references", changes("zzzzzzzz"), view=CLUSTER) == [expected]

    def test_similar_name_is_suggested(self, changes: Any, kind: str, name: str, path: str) -> None:
        (result,) = violations("references", changes(f"{name}s"), view=CLUSTER)
        assert result.message == f'{kind} "{name}s" does not exist, but "{name}" does'
        assert result.fix == f"Use {name}, or create it before or in the same apply."

    def test_reference_is_accepted_if_the_objects_of_the_cluster_are_unknown(
        self, changes: Any, kind: str, name: str, path: str
    ) -> None:
        assert violations("references", changes("gone")) == []

    def test_job_for_another_cluster_is_accepted(self, changes: Any, kind: str, name: str, path: str) -> None:
        managed = {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}
        assert violations("references", {**changes("gone"), **managed}, view=CLUSTER) == []


@pytest.mark.parametrize(
    "changes",
    [
        {},
        volume("configMap", {"name": "gone", "optional": True}),
        volume("configMap", {}),
        volume("configMap", {"name": "train-config"}),  # the operator creates this ConfigMap
        volume("persistentVolumeClaim", {}),
        volume("secret", {"secretName": "gone"}),
        first("env", [{"name": "A", "value": "x"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "gone"}}}]),
        {f"{POD}.serviceAccountName": "trainer", f"{POD}.serviceAccount": "gone"},
        attached("net/roce, ib@ib0"),
    ],
)
def test_optional_or_existing_object_is_accepted(changes: Json) -> None:
    assert violations("references", changes, view=CLUSTER) == []


def test_similar_names_come_from_the_namespace_of_the_job() -> None:
    """Names from other namespaces are not disclosed."""
    result = violations("references", volume("persistentVolumeClaim", {"claimName": "data"}), view=CLUSTER)
    assert [one.message for one in result] == ['PersistentVolumeClaim "data" does not exist, but "dataset" does']
    result = violations("references", attached("net/roca"), view=CLUSTER)
    assert [one.message for one in result] == ['NetworkAttachmentDefinition "roca" does not exist in net']


def test_missing_object_is_reported_once() -> None:
    changes = {
        f"{role}.template.spec.volumes": [{"name": name, "configMap": {"name": "gone"}} for name in "ab"]
        for role in ("Launcher", "Worker")
    }
    result = violations("references", changes, view=CLUSTER)
    assert [one.path for one in result] == [f"{LAUNCHER}.spec.volumes[0].configMap.name"]


def test_invalid_networks_annotation_is_reported() -> None:
    (result,) = violations("references", attached("a/b/c"), view=CLUSTER)
    assert result.path == f"{WORKER}.metadata.annotations[{NETWORKS}]"
    assert result.message == "is not [namespace/]name[@interface], with commas between several"


PATH = f"{WORKER}.spec.volumes[0].persistentVolumeClaim.claimName"


@pytest.mark.parametrize(
    ("name", "workers", "expected"),
    [
        ("dataset", 8, []),
        ("models", 8, []),
        ("unknown", 8, []),
        ("scratch", 1, []),
        ("scratch", 8, [f"(advice) {PATH}: 8 pods mount it, but ReadWriteOnce keeps them on one node"]),
        ("single", 2, [f"{PATH}: 2 pods mount it, but ReadWriteOncePod allows one"]),
    ],
)
def test_claim_mounted_by_too_many_pods_is_reported(name: str, workers: int, expected: list[str]) -> None:
    changes = volume("persistentVolumeClaim", {"claimName": name}) | {"Worker.replicas": workers}
    assert as_texts(violations("references", changes, view=CLUSTER)) == expected


def test_launcher_is_one_of_the_pods_that_mount_a_claim() -> None:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": "single"}} for name in "ab"]
    changes = {f"{role}.template.spec.volumes": volumes for role in ("Launcher", "Worker")} | {"Worker.replicas": 1}
    assert as_texts(violations("references", changes, view=CLUSTER)) == [
        f"{LAUNCHER}.spec.volumes[0].persistentVolumeClaim.claimName: 2 pods mount it, but ReadWriteOncePod allows one"
    ]


def test_warning_names_the_object_and_the_field() -> None:
    (result,) = violations("references", {f"{POD}.serviceAccountName": "x" * 200}, view=CLUSTER)
    assert result.message == f'ServiceAccount "{"x" * 57}..." does not exist'
    (result,) = violations("references", {f"{POD}.runtimeClassName": "gone"}, view=CLUSTER)
    assert not fits_a_warning("references", result), "the warning has the message, but no room for the fix"


@pytest.mark.parametrize("view", [None, CLUSTER])
def test_invalid_claim_name_is_reported(view: Snapshot | None) -> None:
    (result,) = violations("references", volume("persistentVolumeClaim", {"claimName": "My Data"}), view=view)
    fault = 'PersistentVolumeClaim "My Data" contains "M"; allowed are lower case letters, digits, "-" and "."'
    path = f"{WORKER}.spec.volumes[0].persistentVolumeClaim.claimName"
    assert (result.path, result.message, result.fix) == (path, fault, "Write my-data.")


@pytest.mark.parametrize(
    "changes",
    [
        {f"{POD}.serviceAccountName": "My SA"},
        {f"{POD}.runtimeClassName": "My Class"},
        first("envFrom", [{"configMapRef": {"name": "My Map"}}]),
        first("env", [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "My Map", "key": "a"}}}]),
    ],
)
def test_invalid_name_is_left_to_the_rule_pod_template(changes: Json) -> None:
    assert violations("references", changes, view=CLUSTER) == []
    assert len(violations("pod-template", changes)) == 1


DATA = stored("ConfigMap", "settings", data={"a.yaml": "x"}, binaryData={"b": "eA=="})
KEYS = Snapshot([DATA, stored("ConfigMap", "empty", data={}), stored("ConfigMap", "unknown")])


def key_of(name: str, key: str, **more: Any) -> Json:
    return first("env", [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": name, "key": key, **more}}}])


def items(name: str, key: str, **more: Any) -> Json:
    return volume("configMap", {"name": name, "items": [{"key": key, "path": "f"}], **more})


@pytest.mark.parametrize("reference", [key_of, items])
def test_missing_key_of_a_config_map_is_reported(reference: Any) -> None:
    [violation] = violations("references", reference("settings", "a.yml"), view=KEYS)
    assert violation.path.endswith(".configMapKeyRef.key" if reference is key_of else ".configMap.items[0].key")
    assert violation.message == 'ConfigMap "settings" has no key "a.yml"'
    assert violation.fix == "Write a.yaml."
    assert violation.fix in Finding("references", violation).warning
    assert len(violations("references", reference("empty", "a"), view=KEYS)) == 1
    for name, key in (("settings", "a.yaml"), ("settings", "b"), ("unknown", "a")):
        assert violations("references", reference(name, key), view=KEYS) == []
    assert violations("references", reference("settings", "a", optional=True), view=KEYS) == []
    assert violations("references", reference("settings", "a")) == []


def test_missing_config_map_is_one_violation() -> None:
    [violation] = violations("references", key_of("gone", "a"), view=KEYS)
    assert violation.message == 'ConfigMap "gone" does not exist'


def test_missing_key_of_a_projected_volume_is_reported() -> None:
    source = {"configMap": {"name": "settings", "items": [{"key": "c", "path": "f"}]}}
    [violation] = violations("references", volume("projected", {"sources": [source]}), view=KEYS)
    assert violation.path.endswith("spec.volumes[0].projected.sources[0].configMap.items[0].key")
