"""Jobs are converted between an older API version and v2beta1, and back. No value and no change is lost."""

from copy import deepcopy
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support import older_jobs, two_versions
from tests.support.older_jobs import V1, V1ALPHA1, V1ALPHA2
from tests.support.strategies import PROPERTY, json_values
from tests.support.two_versions import NEW_SPECS, OLDER, OLDER_SPECS, document
from tools.older_versions_crd import FILE
from webhook.api.mpijob import API_VERSION, OLDER_VERSIONS
from webhook.converters.report import ConversionError
from webhook.parts.older_versions.both_ways import NO_JOB, OWN_FIELDS, SHOWN, WRITTEN_AS, convert, faults
from webhook.parts.older_versions.limits import MAX_ANNOTATIONS_BYTES, MIN_OTHER_ANNOTATIONS_BYTES

Json = dict[str, Any]


def to_new(job: Json) -> Json:
    try:
        return convert(job, API_VERSION)
    except ConversionError:
        assume(False)
        raise


@PROPERTY
@given(two_versions.older_jobs())
def test_older_job_is_the_same_after_conversion_to_v2beta1_and_back(job: Json) -> None:
    before = deepcopy(job)
    new = to_new(job)
    assert convert(new, job["apiVersion"]) == before
    assert job == before, "the input is not changed"


@PROPERTY
@given(two_versions.new_jobs(), st.sampled_from(OLDER))
def test_v2beta1_job_is_the_same_after_conversion_to_an_older_version_and_back(job: Json, version: str) -> None:
    before = deepcopy(job)
    assert convert(convert(job, version), API_VERSION) == before
    assert job == before, "the input is not changed"


@PROPERTY
@given(st.data())
def test_job_changed_in_any_versions_is_the_same_after_conversion_to_each_version_and_back(data: st.DataObject) -> None:
    job = to_new(data.draw(two_versions.older_jobs()))
    for _ in range(data.draw(st.integers(1, 3))):
        version = data.draw(st.sampled_from((API_VERSION, *OLDER)))
        shown = deepcopy(convert(job, version))
        specs = NEW_SPECS if version == API_VERSION else OLDER_SPECS[version]
        changes = data.draw(specs)
        for key in data.draw(st.sets(st.sampled_from(sorted(changes)), max_size=2)):
            shown["spec"][key] = changes[key]
        job = to_new(shown)
        for older in OLDER:
            assert convert(convert(job, older), API_VERSION) == job


@PROPERTY
@given(two_versions.older_jobs())
def test_injected_values_are_in_the_older_version_too(job: Json) -> None:
    new = to_new(job)
    for role in new["spec"]["mpiReplicaSpecs"].values():
        for container in role["template"]["spec"]["containers"]:
            container.setdefault("env", []).append({"name": "INJECTED", "value": "1"})
    new["spec"].setdefault("runPolicy", {})["activeDeadlineSeconds"] = 86400
    older = convert(new, job["apiVersion"])
    assert convert(older, API_VERSION) == new
    assert "INJECTED" in str(older["spec"]) or not new["spec"]["mpiReplicaSpecs"]


WORKER = {"name": "mpi", "image": "a:1", "command": ["sleep", "365d"]}


def horovod(version: str = V1, **spec: Any) -> Json:
    launcher = {"name": "mpi", "image": "a:1", "command": ["mpirun", "train"]}
    roles = {
        role: {"replicas": replicas, "template": {"spec": {"containers": [dict(container)]}}}
        for role, replicas, container in (("Launcher", 1, launcher), ("Worker", 2, WORKER))
    }
    return document(version, {"slotsPerWorker": 1, "cleanPodPolicy": "Running", "mpiReplicaSpecs": roles, **spec})


def worker(job: Json) -> Json:
    container: Json = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    return container


def test_original_spec_is_in_an_annotation_of_the_v2beta1_job() -> None:
    old = horovod()
    new = convert(old, API_VERSION)
    assert new["spec"]["runPolicy"] == {"cleanPodPolicy": "Running", "suspend": False}
    assert worker(new) == {"name": "mpi", "image": "a:1"}
    assert msgspec.json.decode(new["metadata"]["annotations"][WRITTEN_AS]) == {"apiVersion": V1, "spec": old["spec"]}
    assert convert(new, V1) == old


def test_older_client_can_change_a_job_with_injections() -> None:
    new = convert(horovod(), API_VERSION)
    worker(new)["env"] = [{"name": "INJECTED", "value": "1"}]
    new["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    old = convert(new, V1)
    assert worker(old) == {**WORKER, "env": [{"name": "INJECTED", "value": "1"}]}
    assert "launcherCreationPolicy" not in old["spec"]
    worker(old)["image"] = "a:2"
    again = convert(old, API_VERSION)
    assert worker(again) == {"name": "mpi", "image": "a:2", "env": [{"name": "INJECTED", "value": "1"}]}
    assert again["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"
    shown = convert(again, V1)
    assert shown["spec"] == old["spec"]
    assert convert(shown, API_VERSION) == again


def test_older_client_can_change_a_v2beta1_job() -> None:
    job = document(API_VERSION, {**horovod()["spec"], "sshAuthMountPath": "/home/mpiuser/.ssh"})
    del job["spec"]["cleanPodPolicy"]
    old = convert(job, V1)
    assert old["spec"] == {key: value for key, value in job["spec"].items() if key != "sshAuthMountPath"}
    old["spec"]["slotsPerWorker"] = 4
    assert convert(old, API_VERSION)["spec"] == {**job["spec"], "slotsPerWorker": 4}
    old["spec"]["cleanPodPolicy"] = "All"
    new = convert(old, API_VERSION)["spec"]
    assert new["runPolicy"]["cleanPodPolicy"] == "All", "a field of the older version is applied"
    assert new["sshAuthMountPath"] == "/home/mpiuser/.ssh"


def test_v2beta1_client_can_change_an_older_job() -> None:
    new = convert(horovod(mainContainer="mpi"), API_VERSION)
    new["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 8
    old = convert(new, V1)
    assert old["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 8
    assert old["spec"]["mainContainer"] == "mpi"
    assert worker(old) == WORKER


def test_older_job_with_only_v2beta1_fields_gets_no_annotation() -> None:
    old = horovod()
    del old["spec"]["cleanPodPolicy"], worker(old)["command"]
    for role in old["spec"]["mpiReplicaSpecs"].values():
        role["restartPolicy"] = "Never"
    new = convert(old, API_VERSION)
    assert new["metadata"]["annotations"] == {"mine": "1"}
    assert convert(new, V1) == old


def test_annotations_that_the_conversion_did_not_write_are_ignored() -> None:
    values = ["", "x", "[]", "{}", '{"apiVersion": "kubeflow.org/v9", "spec": {}}', "[" * 5000]
    for version, key in ((API_VERSION, WRITTEN_AS), (V1, SHOWN)):
        for value in values:
            job = horovod(version)
            job["metadata"]["annotations"][key] = value
            assert convert(job, V1 if version == API_VERSION else API_VERSION)["spec"]


@pytest.mark.parametrize("depth", [100, 900, 5000])
def test_annotation_that_is_nested_too_deep_is_ignored(depth: int) -> None:
    expected = {version: convert(horovod(API_VERSION), version)["spec"] for version in OLDER}
    deep = "[" * depth + "]" * depth
    template = f'{{"spec": {{"containers": [{{"name": "mpi", "env": {deep}}}]}}}}'
    roles = f'{{"Launcher": {{"template": {template}}}}}'
    for version in OLDER:
        job = horovod(API_VERSION)
        for spec in (f'{{"mpiReplicaSpecs": {roles}}}', f'{{"replicas": 1, "template": {template}}}', deep):
            job["metadata"]["annotations"][WRITTEN_AS] = f'{{"apiVersion": "{version}", "spec": {spec}}}'
            assert convert(job, version)["spec"] == expected[version]


@pytest.mark.parametrize(
    "spec",
    [
        {"mpiReplicaSpecs": {"Worker": 5}},
        {"runLauncherAsWorker": "true"},
        {"mpiImplementation": "mine"},
    ],
)
def test_annotation_with_invalid_fields_is_not_converted_into_the_job(spec: Json) -> None:
    job = horovod()
    expected = convert(job, API_VERSION)["spec"]
    job["metadata"]["annotations"][SHOWN] = msgspec.json.encode({"spec": spec, "as_it_is": True}).decode()
    assert convert(job, API_VERSION)["spec"] == expected


HIDDEN_ITEMS = {"volumes": {"name": "mpi-job-kubectl"}, "initContainers": {"name": "kubectl-delivery"}}
HIDDEN = [
    {"volumes": [{"name": "mpi-job-kubectl", "hostPath": 5}]},
    {"volumes": [{"name": "mpi-job-kubectl", "mine": {}}]},
    {"initContainers": [{"name": "kubectl-delivery", "ports": [{"containerPort": 2**40}]}]},
    {"initContainers": [{"name": "kubectl-delivery", "resources": {"limits": {"cpu": "many"}}}]},
]
"""Invalid fields in items that the conversion to v2beta1 removes. The API server then does not check these fields."""


@pytest.mark.parametrize("hidden", HIDDEN)
def test_annotation_with_invalid_pod_fields_is_ignored(hidden: Json) -> None:
    written = horovod()["spec"]
    job = document(API_VERSION, convert(horovod(), API_VERSION)["spec"])
    expected = convert(job, V1)["spec"]
    written["mpiReplicaSpecs"]["Worker"]["template"]["spec"].update(hidden)
    value = {"apiVersion": V1, "spec": written}
    job["metadata"]["annotations"][WRITTEN_AS] = msgspec.json.encode(value).decode()
    assert convert(job, V1)["spec"] == expected
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 3
    assert not any(key in convert(job, V1)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"] for key in hidden)


@PROPERTY
@given(two_versions.older_jobs(), st.sampled_from([*HIDDEN_ITEMS]), json_values())
def test_older_clients_can_decode_a_job_with_any_annotation(job: Json, key: str, value: Any) -> None:
    new = to_new(job)
    written = deepcopy(job["spec"])
    roles = written.get("mpiReplicaSpecs", {"": written})
    for role in roles.values():
        role["template"]["spec"].setdefault(key, []).append({**HIDDEN_ITEMS[key], "hostPath": value, "env": value})
    annotation = {"apiVersion": job["apiVersion"], "spec": written}
    new["metadata"]["annotations"][WRITTEN_AS] = msgspec.json.encode(annotation).decode()
    shown = convert(new, job["apiVersion"])
    assert not any(faults(job["apiVersion"], shown["spec"]))
    assert convert(shown, API_VERSION)["spec"] == new["spec"]


def test_invalid_field_in_a_removed_item_is_rejected_if_the_job_is_not_stored() -> None:
    job = horovod()
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"].update(HIDDEN[0])
    path = r"spec\.mpiReplicaSpecs\[Worker\]\.template\.spec\.volumes\[0\]\.hostPath"
    with pytest.raises(ConversionError, match=f"^{path}: is not a mapping$"):
        convert(job, API_VERSION)
    job["metadata"]["uid"] = "7"
    assert "volumes" not in convert(job, API_VERSION)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]


@PROPERTY
@given(two_versions.older_jobs(), json_values(), json_values())
def test_arbitrary_annotations_do_not_change_the_spec(job: Json, original: Any, shown: Any) -> None:
    written = {"apiVersion": job["apiVersion"], "spec": original}
    for key, value in ((WRITTEN_AS, written), (SHOWN, {"spec": shown, "as_it_is": True})):
        job["metadata"]["annotations"][key] = msgspec.json.encode(value).decode()
    new = to_new(job)
    for version in OLDER:
        assert convert(convert(new, version), API_VERSION)["spec"] == new["spec"]


def test_original_spec_is_not_stored_if_annotations_would_be_too_large() -> None:
    job = horovod()
    job["metadata"]["annotations"]["large"] = "x" * (MAX_ANNOTATIONS_BYTES - MIN_OTHER_ANNOTATIONS_BYTES)
    new = convert(job, API_VERSION)
    assert WRITTEN_AS not in new["metadata"]["annotations"]
    assert convert(convert(new, V1), API_VERSION) == new


IMPOSSIBLE = {"gpus": 10, "gpusPerNode": 8, "template": {"spec": {"containers": [{"name": "mpi"}]}}}


def test_invalid_job_is_rejected_in_a_request_and_gets_a_stand_in_if_stored() -> None:
    """The stand-in NO_JOB is a suspended job without pods."""
    job = document(V1ALPHA1, IMPOSSIBLE)
    for sent in ({}, {"uid": "1", "resourceVersion": "7"}):
        job["metadata"] = {"name": "a", **sent}
        with pytest.raises(ConversionError, match=r"^spec\.gpus: 10 is not a multiple of the 8 per node"):
            convert(job, API_VERSION)
    job["metadata"] = {"name": "a", "uid": "1"}
    new = convert(job, API_VERSION)
    assert new["spec"] == NO_JOB
    assert convert(new, V1ALPHA1) == job
    without = {key: value for key, value in job.items() if key != "spec"}
    assert convert(convert(without, API_VERSION), V1ALPHA1) == without


@pytest.mark.parametrize(
    ("job", "version", "error"),
    [
        ({"kind": "MPIJob", "apiVersion": "v3"}, V1, 'apiVersion: "v3" is not a known version'),
        ({"kind": "MPIJob", "apiVersion": V1}, "v3", 'apiVersion: "v3" is not a known version'),
        ({"kind": "Job", "apiVersion": V1}, API_VERSION, "kind: is not MPIJob"),
        ({"kind": "MPIJob", "apiVersion": V1}, API_VERSION, "metadata: is not set"),
        ({"kind": "MPIJob", "apiVersion": V1, "metadata": {}}, API_VERSION, "spec: is not set"),
        ({"kind": "MPIJob", "apiVersion": V1ALPHA2, "metadata": {}, "spec": []}, API_VERSION, "spec: is not a mapping"),
    ],
)
def test_object_that_is_not_a_complete_mpijob_is_rejected(job: Json, version: str, error: str) -> None:
    with pytest.raises(ConversionError, match=f"^{error}"):
        convert(job, version)


def test_v1alpha1_client_can_change_a_job_that_v1alpha1_cannot_express_completely() -> None:
    template = {"spec": {"containers": [{"name": "mpi", "image": "a:1", "command": ["mpirun", "train"]}]}}
    written = {"processingUnits": 4, "processingUnitsPerNode": 2, "template": template}
    new = convert(document(V1ALPHA1, written), API_VERSION)
    launcher = new["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["env"] = [{"name": "INJECTED", "value": "1"}]
    old = convert(new, V1ALPHA1)
    assert {key: old["spec"][key] for key in written} == written
    assert convert(old, API_VERSION) == new
    old["spec"]["processingUnits"] = 8
    again = convert(old, API_VERSION)["spec"]
    assert again["mpiReplicaSpecs"]["Worker"]["replicas"] == 4
    assert again["slotsPerWorker"] == 2
    old["spec"]["processingUnitsPerNode"] = 8
    assert convert(old, API_VERSION)["spec"]["slotsPerWorker"] == 8


PORT = {"httpGet": {"port": "ssh"}}


def in_container(**fields: Any) -> Json:
    return {"template": {"spec": {"containers": [{"name": "mpi", **fields}]}}}


def test_fields_of_each_version_equal_the_fields_in_the_crd() -> None:
    operations = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    versions = [operation["value"] for operation in operations if operation["path"] == "/spec/versions/-"]
    assert [f"kubeflow.org/{version['name']}" for version in versions] == [*OLDER_VERSIONS]
    for version, value in zip(OLDER_VERSIONS, versions, strict=True):
        spec = value["schema"]["openAPIV3Schema"]["properties"]["spec"]
        types = {key: field["type"] for key, field in spec["properties"].items()}
        own = {key: shape.type for key, shape in OWN_FIELDS[version].items()}
        common = {"slotsPerWorker": "integer", "runPolicy": "object", "mpiReplicaSpecs": "object"}
        assert types == {**common, **own, **({"template": "object"} if version == V1ALPHA1 else {})}


@pytest.mark.parametrize("version", OLDER_VERSIONS)
def test_job_with_every_field_can_be_decoded(version: str) -> None:
    texts = {fault.text for fault in faults(version, older_jobs.full(version)["spec"])}
    assert texts <= {"is not a quantity"}


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"template": None, "gpus": None},
        {"template": {"metadata": {"creationTimestamp": None}}},
        in_container(resources={"limits": {"cpu": 1, "memory": "2Gi"}}, readinessProbe=PORT),
        in_container(env=[{"name": "A"}], ports=[{"containerPort": 22}]),
    ],
)
def test_valid_spec_can_be_decoded(spec: Any) -> None:
    assert [*faults(V1ALPHA1, spec)] == []


@pytest.mark.parametrize(
    ("version", "spec", "fault"),
    [
        (V1, [], ("spec", "is not a mapping", True)),
        (V1, {"cleanPodPolicy": 5}, ("spec.cleanPodPolicy", "is not text", True)),
        (V1, {"slotsPerWorker": True}, ("spec.slotsPerWorker", "is not a whole number", True)),
        (V1, {"slotsPerWorker": 2**31}, ("spec.slotsPerWorker", "does not fit into 32 bits", False)),
        (V1, {"gpus": 5}, ("spec.gpus", "is not a field of this version", False)),
        (V1ALPHA2, {"mpiReplicaSpecs": {"Worker": 5}}, ("spec.mpiReplicaSpecs[Worker]", "is not a mapping", True)),
        (V1ALPHA1, in_container(env={}), ("spec.template.spec.containers[0].env", "is not a list", True)),
        (
            V1ALPHA1,
            in_container(resources={"limits": {"port": "many"}}),
            ("spec.template.spec.containers[0].resources.limits[port]", "is not a quantity", False),
        ),
        (
            V1ALPHA1,
            in_container(readinessProbe={"httpGet": {"port": 2**40}}),
            ("spec.template.spec.containers[0].readinessProbe.httpGet.port", "does not fit into 32 bits", False),
        ),
    ],
)
def test_spec_that_cannot_be_decoded_has_a_fault(version: str, spec: Any, fault: tuple[str, str, bool]) -> None:
    assert [*faults(version, spec)] == [fault]
