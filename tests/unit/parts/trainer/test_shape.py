"""A shape is the MPIJob that is equivalent to a TrainJob.

It maps the path of each MPIJob field to the path of the TrainJob or runtime field from which the value comes.
"""

import copy

import msgspec
import pytest

from tests.support.trainer import LAUNCHER, NODE, patch, pods, record, replicated_job, runtime, train_job
from webhook.parts.trainer.shape import of_runtime, of_train_job

WORKERS = "spec.mpiReplicaSpecs[Worker]"
LAUNCHERS = "spec.mpiReplicaSpecs[Launcher]"
FIRST = "template.spec.containers[0]"
JOBS = "spec.template.spec.replicatedJobs"
PATCHED = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template"


def shaped(job, base):
    shape = of_train_job(job, record(base))
    return shape, msgspec.json.decode(shape.document)["spec"]


def main_container(job, base, role):
    return shaped(job, base)[1]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("numbers", "as_node", "workers"),
    [
        ({}, True, 1),
        ({"numNodes": 3}, True, 2),
        ({"numNodes": 0}, True, 1),
        ({"numNodes": 0}, False, 0),
        ({}, False, 1),
    ],
)
def test_number_of_workers_is_computed_from_num_nodes(numbers, as_node, workers):
    _, spec = shaped(train_job(**numbers), runtime(runLauncherAsNode=as_node))

    assert spec["mpiReplicaSpecs"]["Worker"]["replicas"] == workers
    assert spec["runLauncherAsWorker"] is as_node


def test_number_of_workers_without_num_nodes_is_the_parallelism_of_the_runtime():
    base = runtime()
    replicated_job(base, NODE)["template"]["spec"]["parallelism"] = 4

    assert shaped(train_job(), base)[1]["mpiReplicaSpecs"]["Worker"]["replicas"] == 4


@pytest.mark.parametrize(
    ("of_runtime", "fields", "slots"),
    [
        (1, {}, 1),
        (4, {}, 4),
        (4, {"numProcPerNode": 2}, 2),
        (1, {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}, 8),
        (1, {"resourcesPerNode": {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": 8}}}, 2),
        (1, {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "many"}}}, 1),
        (2, {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}, 2),
        (1, {"numProcPerNode": 1, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}, 1),
    ],
)
def test_slots_are_num_proc_per_node_or_the_number_of_gpus(of_runtime, fields, slots):
    assert shaped(train_job(**fields), runtime(numProcPerNode=of_runtime))[1]["slotsPerWorker"] == slots


def test_slots_are_the_number_of_gpus_in_the_runtime():
    base = runtime()
    pods(base, NODE)["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 4}}

    assert shaped(train_job(), base)[1]["slotsPerWorker"] == 4


def test_fields_of_spec_trainer_are_merged_into_launcher_and_workers():
    of_launcher = {"image": "registry.example.com/own:1", "command": ["mpirun"], "args": ["train"]}
    of_both = {"env": [{"name": "A", "value": "b"}]}
    limits = {"limits": {"cpu": 4}}
    job = train_job(**of_launcher, **of_both, resourcesPerNode=limits)
    launcher, worker = (main_container(job, runtime(), role) for role in ("Launcher", "Worker"))

    assert launcher.items() >= {**of_launcher, **of_both, "resources": limits}.items()
    assert worker.items() >= {**of_both, "resources": limits}.items()
    assert (worker["image"], worker["command"]) == ("registry.example.com/deepspeed:1.0", ["/usr/sbin/sshd"])


def test_only_the_launcher_gets_the_resources_if_it_is_not_a_node():
    job, base = train_job(resourcesPerNode={"limits": {"cpu": 4}}), runtime(runLauncherAsNode=False)

    assert main_container(job, base, "Launcher")["resources"] == {"limits": {"cpu": 4}}
    assert "resources" not in main_container(job, base, "Worker")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (f"{WORKERS}.replicas", "spec.trainer.numNodes"),
        ("spec.slotsPerWorker", "spec.trainer.numProcPerNode"),
        ("spec.runPolicy.suspend", "spec.suspend"),
        ("metadata.labels[a.b/c]", "metadata.labels[a.b/c]"),
        (f"{LAUNCHERS}.{FIRST}.image", "spec.trainer.image"),
        (f"{WORKERS}.{FIRST}.resources.limits[nvidia.com/gpu]", "spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]"),
        (f"{WORKERS}.template.spec.containers", "spec.trainer.resourcesPerNode"),
        (f"{LAUNCHERS}.{FIRST}.env[0].name", "spec.trainer.env[0].name"),
    ],
)
def test_path_in_the_mpijob_is_translated_to_the_train_job(path, place):
    resources = {"limits": {"nvidia.com/gpu": 4}}
    job = train_job(image="registry.example.com/own:1", env=[{"name": "A"}], resourcesPerNode=resources)

    assert shaped(job, runtime())[0].places.shown(path) == (place, "")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("spec.sshAuthMountPath", "spec.mlPolicy.mpi.sshAuthMountPath"),
        ("spec.mpiReplicaSpecs", JOBS),
        (WORKERS, f"{JOBS}[0]"),
        (f"{LAUNCHERS}.{FIRST}.resources.limits[memory]", f"{JOBS}[1].template.spec.{FIRST}.resources.limits[memory]"),
        (f"{WORKERS}.template.spec.volumes[0]", f"{JOBS}[0].template.spec.template.spec.volumes[0]"),
    ],
)
def test_path_in_the_mpijob_is_translated_to_the_runtime(path, place):
    base = runtime()
    pods(base, LAUNCHER)["containers"][0]["resources"] = {"limits": {"memory": "1Gi"}}
    shape, _ = shaped(train_job(resourcesPerNode={"limits": {"cpu": 1}}), base)

    assert shape.places.shown(path) == ("spec.runtimeRef", f" (ClusterTrainingRuntime deepspeed, {place})")
    assert of_runtime(base).places.shown(path) == (place, "")


def test_container_of_the_training_becomes_the_first_container():
    base = runtime()
    pods(base, NODE)["containers"].insert(0, {"name": "sidecar", "image": "registry.example.com/sidecar:1"})
    shape, spec = shaped(train_job(resourcesPerNode={"limits": {"cpu": 1}}), base)
    containers = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]

    assert [container["name"] for container in containers] == ["node", "sidecar"]
    assert shape.places.of(f"{WORKERS}.template.spec.containers[1].image").path.endswith("spec.containers[0].image")
    assert shape.places.of(f"{WORKERS}.template.spec.containers[0].image").path.endswith("spec.containers[1].image")
    assert shape.places.of(f"{WORKERS}.template.spec.containers[0].resources").path == "spec.trainer.resourcesPerNode"


def test_patch_is_merged_and_its_paths_are_translated():
    base = runtime()
    pods(base, NODE)["nodeSelector"] = {"pool": "a"}
    pods(base, NODE)["tolerations"] = [{"key": "old"}]
    pods(base, NODE)["volumes"] = [{"name": "data", "emptyDir": {}}]
    change = {
        "nodeSelector": {"gpu": "h100"},
        "tolerations": [{"key": "new"}],
        "volumes": [{"name": "more", "persistentVolumeClaim": {"claimName": "claim"}}],
        "containers": [{"name": "node", "volumeMounts": [{"name": "more", "mountPath": "/more"}]}],
        "serviceAccountName": "trainer",
    }
    shape, spec = shaped(train_job(patches=[patch("node", change)]), base)
    pod = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]

    assert pod["nodeSelector"] == {"pool": "a", "gpu": "h100"}
    assert pod["tolerations"] == [{"key": "new"}]
    assert [volume["name"] for volume in pod["volumes"]][:2] == ["data", "more"]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "more", "mountPath": "/more"}]
    assert pod["containers"][0]["image"] == "registry.example.com/deepspeed:1.0"
    for path, place in {
        "volumes[1].persistentVolumeClaim.claimName": "volumes[0].persistentVolumeClaim.claimName",
        "nodeSelector[gpu]": "nodeSelector[gpu]",
        "tolerations[0].key": "tolerations[0].key",
        "serviceAccountName": "serviceAccountName",
    }.items():
        assert shape.places.shown(f"{WORKERS}.template.spec.{path}") == (f"{PATCHED}.spec.{place}", "")
    assert shape.places.of(f"{WORKERS}.template.spec.nodeSelector[pool]").in_runtime


def test_replicated_job_gets_the_image_of_spec_trainer_if_a_patch_sets_the_label_of_a_trainer():
    label = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = train_job(image="registry.example.com/own:1", patches=[patch("node", {}, labels=label)])

    assert main_container(job, runtime(), "Worker")["image"] == "registry.example.com/own:1"


def test_job_and_runtime_are_not_changed():
    job = train_job(
        numNodes=2,
        env=[{"name": "A"}],
        resourcesPerNode={"limits": {"cpu": 1}},
        patches=[patch("node", {"nodeSelector": {"a": "b"}})],
    )
    base = runtime()
    before = copy.deepcopy((job, base))

    shaped(job, base)
    of_runtime(base)

    assert (job, base) == before


def test_node_without_a_command_is_not_assumed_to_run_sshd():
    base = runtime()
    for field in ("command", "args"):
        del pods(base, NODE)["containers"][0][field]

    assert main_container(train_job(), base, "Worker")["args"] == ["(entrypoint)"]


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("Set replicas to 3 or fewer.", "Set numNodes to 4 or fewer."),
        ("Reduce worker count to 4 and -np to 8 (8 GPUs total)", "Reduce numNodes to 5 and -np to 8 (8 GPUs total)"),
        ("Use 4 workers.", "Use 5 nodes."),
        ("Use 4 or set slotsPerWorker to 2.", "Use 4 or set numProcPerNode to 2."),
        ('"replicas" is not spec.slotsPerWorker', '"replicas" is not spec.mlPolicy.mpi.numProcPerNode'),
        ("Set spec.mpiReplicaSpecs[Worker].replicas.", "Set spec.mlPolicy.numNodes."),
    ],
)
def test_field_names_and_numbers_in_messages_are_translated(text, translated):
    assert of_runtime(runtime()).places.worded(text) == translated


def test_numbers_in_messages_are_unchanged_if_the_launcher_is_not_a_node():
    places = of_runtime(runtime(runLauncherAsNode=False)).places

    assert places.worded("Set replicas to 3.") == "Set numNodes to 3."
    assert places.worded("Use 1 worker.") == "Use 1 node."
