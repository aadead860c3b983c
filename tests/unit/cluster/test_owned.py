"""The view records only the existence and the owner of some objects, but not their contents."""

from typing import Any

import msgspec
import pytest

from webhook.cluster.owned import Owned, Owner
from webhook.cluster.resource import Resource
from webhook.cluster.resources.config_maps import CONFIG_MAPS, ConfigMap
from webhook.cluster.resources.jobs import JOBS
from webhook.cluster.resources.network_attachment_definitions import (
    NETWORK_ATTACHMENT_DEFINITIONS,
    NetworkAttachmentDefinition,
)
from webhook.cluster.resources.other_pods import OTHER_PODS
from webhook.cluster.resources.pods import JOB_NAME, PODS
from webhook.cluster.resources.services import SERVICES

NAME = {"name": "train-launcher", "namespace": "team-a"}
REFERENCE = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train", "uid": "1"}
OWNER = Owner("kubeflow.org", "MPIJob", "train", "1")


def project(resource: Resource[Any, Any], **metadata: Any) -> Any:
    labels = {"labels": {JOB_NAME: ""}} if resource is PODS else {}
    return resource.project(msgspec.json.encode({"metadata": {**NAME, **labels, **metadata}, "data": {"a": "secret"}}))


@pytest.mark.parametrize("resource", [JOBS, PODS, SERVICES], ids=lambda resource: resource.plural)
class TestOwned:
    def test_object_without_a_controller_has_no_owner(self, resource: Resource[Any, Any]) -> None:
        assert project(resource) == Owned("team-a", "train-launcher")
        assert project(resource, ownerReferences=[REFERENCE]) == Owned("team-a", "train-launcher")

    def test_controller_is_the_owner(self, resource: Resource[Any, Any]) -> None:
        references = [{**REFERENCE, "uid": "2"}, {**REFERENCE, "controller": True, "blockOwnerDeletion": True}]
        assert project(resource, ownerReferences=references) == Owned("team-a", "train-launcher", OWNER)

    def test_object_with_a_deletion_timestamp_is_recorded_as_deleted(self, resource: Resource[Any, Any]) -> None:
        record = project(resource, deletionTimestamp="2026-01-01T00:00:00Z")
        assert record == Owned("team-a", "train-launcher", deleted=True)

    def test_contents_are_not_cached(self, resource: Resource[Any, Any]) -> None:
        assert resource.metadata_only
        document = {"metadata": {**NAME, "annotations": {"a": "b"}}, "data": {"a": "secret"}, "spec": {"b": 1}}
        head = {"apiVersion": resource.api_versions[0], "kind": resource.kind}
        assert resource.trim(document) == {**head, "metadata": NAME}


@pytest.mark.parametrize(
    ("name", "labels", "of_job", "other"),
    [
        ("train-worker-0", {JOB_NAME: "train", "app": "x"}, True, False),
        ("train-launcher-x7", {JOB_NAME: ""}, True, False),
        ("train-worker-12", {"app": "x"}, False, True),
        ("train-worker-12", None, False, True),
        ("worker-1", {}, False, False),
        ("train-worker-1-x", {}, False, False),
    ],
)
def test_pods_are_recorded_by_label_or_by_a_workers_name(name: str, labels: Any, of_job: bool, other: bool) -> None:
    metadata = {"name": name, "labels": labels}
    assert [project(resource, **metadata) is not None for resource in (PODS, OTHER_PODS)] == [of_job, other]


def test_trimmed_pod_has_only_the_job_label() -> None:
    document = {"metadata": {**NAME, "labels": {JOB_NAME: "train", "app": "x"}}}
    assert PODS.trim(document)["metadata"] == {**NAME, "labels": {JOB_NAME: "train"}}


def test_job_that_is_not_a_launcher_is_ignored() -> None:
    assert project(JOBS, name="nightly") is None


def test_network_attachment_definition_is_recorded_by_name() -> None:
    assert project(NETWORK_ATTACHMENT_DEFINITIONS) == NetworkAttachmentDefinition("team-a", "train-launcher")


FIELDS = [
    {"manager": "kubectl", "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:b.yaml": {}}, "f:metadata": {"f:x": {}}}},
    {"manager": "helm", "fieldsV1": {"f:binaryData": {"f:c": {}}, "f:data": {"f:a": {}}}},
    {"manager": "other"},
]


@pytest.mark.parametrize(
    ("fields", "metadata", "keys"),
    [
        ({}, {"managedFields": FIELDS}, ("a", "b.yaml", "c")),
        ({}, {"managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {}}}]}, ()),
        ({}, {}, None),
        ({"data": {"a": "secret"}}, {"managedFields": FIELDS}, ("a",)),
        ({"binaryData": {"a": "secret"}}, {}, ("a",)),
        ({"data": {}}, {}, ()),
        ({"data": {"x" * 1001: "secret"}}, {}, None),
    ],
)
def test_config_map_is_recorded_with_its_keys(fields: Any, metadata: Any, keys: tuple[str, ...] | None) -> None:
    document = {"metadata": {**NAME, **metadata}, **fields}
    record = CONFIG_MAPS.project(msgspec.json.encode(document))
    assert record == ConfigMap("team-a", "train-launcher", keys=keys)
    trimmed = CONFIG_MAPS.trim(document)
    assert "secret" not in str(trimmed)
    assert "managedFields" not in str(trimmed)
    assert CONFIG_MAPS.project(msgspec.json.encode(trimmed)) == record


def test_config_map_is_recorded_with_its_owner() -> None:
    record = project(CONFIG_MAPS, ownerReferences=[{**REFERENCE, "controller": True}], deletionTimestamp="x")
    assert (record.owner, record.deleted) == (OWNER, True)
