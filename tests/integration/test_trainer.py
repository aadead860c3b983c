"""The service's verdicts on TrainJobs and runtimes agree with the real Kubeflow Trainer and JobSet."""

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import KEEP_RUNNING
from tests.support.clients_page import shown
from tests.support.installation import service
from tests.support.kubeflow_sdks import submit
from tests.support.paths import EXAMPLES, MANIFESTS
from tests.support.rare import FULL
from tests.trainer import stack
from tests.trainer.recipe import TRAINER
from tests.trainer.stack import Stack
from webhook.api import yaml
from webhook.parts.trainer import conversion

pytestmark = pytest.mark.built(TRAINER)
RIGHTS = MANIFESTS / "components" / "trainer" / "rbac.yaml"
KINDS = ("clustertrainingruntimes", "trainingruntimes", "trainjobs")
# The namespace of the service, in which nothing is reviewed.
UNCHECKED = "mpijob-webhook"
OF_MPI = ("deepspeed-distributed", "mlx-distributed")


@pytest.fixture(scope="module")
def trainer_stack(operator_cluster: Cluster) -> Iterator[Stack]:
    with stack.running(operator_cluster) as found:
        yield found


@pytest.fixture(scope="module")
def checked(operator_cluster: Cluster, trainer_stack: Stack) -> Iterator[Stack]:
    """Trainer, and the service, which has reviewed and cached Trainer's runtimes."""
    with service.running(operator_cluster, "--trainer"):
        for runtime in trainer_stack.runtimes.values():
            operator_cluster.kubectl("create", "-f", "-", stdin=runtime)
        wait_for_runtimes(operator_cluster, *OF_MPI)
        yield trainer_stack


def wait_for(cluster, what, probe):
    cluster.wait_for(what, probe, timeout=120)


def wait_for_runtimes(cluster, *names):
    """Wait until the service has cached the runtimes. Until then, the service admits every job that uses them."""
    for name in names:
        probe = job(f"probe-{'x' * 50}", runtime=name)
        refused = lambda probe=probe: "[name-length]" in create(cluster, "default", probe, "--dry-run=server").stderr  # noqa: E731
        wait_for(cluster, f"the service to see {name}", refused)


def job(name="job", *, runtime="deepspeed-distributed", kind="ClusterTrainingRuntime", **fields):
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": runtime, "kind": kind}, "trainer": fields},
    }


def create(cluster, namespace, manifest, *flags):
    return cluster.kubectl("create", "-n", namespace, "-f", "-", *flags, stdin=manifest, check=False)


def test_runtimes_of_trainer_are_admitted(operator_cluster, checked):
    stored = {each["metadata"]["name"] for each in operator_cluster.get("clustertrainingruntimes")["items"]}

    assert {*checked.runtimes} == stored
    assert {*OF_MPI} <= stored
    decisions = [line for line in service.decisions(operator_cluster) if line["webhook"] == "trainer"]
    created = {line["name"] for line in decisions if line["name"] in stored}
    assert created == {*OF_MPI}, "the API server sends only MPI runtimes"


@pytest.mark.parametrize("runtime", OF_MPI)
def test_admitted_job_completes(operator_cluster, checked, namespace, runtime):
    manifest = job(runtime=runtime, numNodes=3, resourcesPerNode={"limits": {"nvidia.com/gpu": 4}})

    done = create(operator_cluster, namespace, manifest)

    assert done.returncode == 0, done.stderr
    finished = lambda: has_condition(operator_cluster.get("trainjob", "job", "-n", namespace), "Complete")  # noqa: E731
    wait_for(operator_cluster, "the TrainJob to complete", finished)
    made = operator_cluster.get("jobs.batch", "-n", namespace)["items"]
    assert {each["metadata"]["name"]: each["spec"]["completions"] for each in made} == {
        "job-node-0": 2,
        "job-launcher-0": 1,
    }
    hostfile = operator_cluster.get("configmap", "job-mpi-hostfile", "-n", namespace)["data"]["hostfile"]
    assert hostfile.count("slots=4") == 3


def test_service_rejects_a_job_name_that_jobset_rejects(operator_cluster, checked, namespace):
    longest, too_long = "x" * 44, "x" * 45

    assert create(operator_cluster, namespace, job(longest), "--dry-run=server").returncode == 0
    refused = create(operator_cluster, namespace, job(too_long))
    assert refused.returncode
    assert "Use a name of at most 44 characters. [name-length]" in refused.stderr


JOB_SET = "template.spec"
NODE_JOB = f"{JOB_SET}.replicatedJobs.0"
NODE_PODS = f"{NODE_JOB}.template.spec.template.spec"


FETCHER = {"name": "dataset-initializer", "image": "fetch:1", "volumeMounts": [{"name": "none", "mountPath": "/data"}]}
FETCHES = {
    "name": "dataset-initializer",
    "template": {"spec": {"template": {"spec": {"containers": [FETCHER]}}}},
}


# Errors in a runtime's spec, and the message of Trainer, JobSet or Kubernetes that only a controller's log contains.
REFUSED_LATER = {
    "long-name": ({}, "pod names generated for this JobSet will exceed 63 characters"),
    "depends-on-the-next": (
        {f"{NODE_JOB}.dependsOn": [{"name": "launcher", "status": "Ready"}]},
        "DependsOn can't be set for the first ReplicatedJob",
    ),
    "succeeds-with-nobody": (
        {f"{JOB_SET}.successPolicy.targetReplicatedJobs": ["workers"]},
        "does not appear in .spec.ReplicatedJobs",
    ),
    "restarts-always": ({f"{NODE_PODS}.restartPolicy": "Always"}, "spec.template.spec.restartPolicy"),
    "fetches-into-nothing": (
        {
            f"{JOB_SET}.replicatedJobs.0": FETCHES,
            f"{JOB_SET}.replicatedJobs.1.dependsOn": [{"name": "dataset-initializer", "status": "Complete"}],
        },
        "volumeMounts[0].name: Not found",
    ),
    "no-implementation": ({"mlPolicy.mpi.mpiImplementation": ""}, "doesn't supported"),
}


# Errors that a job can correct. So the service admits the runtime, and rejects a job that does not correct the error.
AT_THE_JOB = ("fetches-into-nothing",)


def put(spec, path, value):
    """Set the value at the path, or insert the value if the path ends in a list. Missing mappings are created."""
    *way, last = path.split(".")
    for key in way:
        spec = spec[int(key)] if key.isdigit() else spec.setdefault(key, {})
    if isinstance(spec, list):
        spec.insert(int(last), value)
    else:
        spec[last] = value


def broken_runtime(stack, case, namespace):
    runtime = copy.deepcopy(stack.runtimes["deepspeed-distributed"])
    for path, value in REFUSED_LATER[case][0].items():
        put(runtime["spec"], path, value)
    return {**runtime, "kind": "TrainingRuntime", "metadata": {"name": case, "namespace": namespace}}


def of_broken(case):
    return job(f"{case}-{'x' * 40}" if case == "long-name" else case, runtime=case, kind="TrainingRuntime")


@pytest.fixture(scope="module")
def stored(operator_cluster, checked):
    """Creates all broken objects in the unreviewed namespace, before the tests, because controllers take time."""
    for case in REFUSED_LATER:
        operator_cluster.kubectl("create", "-f", "-", stdin=broken_runtime(checked, case, UNCHECKED))
    for case in REFUSED_LATER:
        cached = lambda case=case: create(operator_cluster, UNCHECKED, of_broken(case)).returncode == 0  # noqa: E731
        wait_for(operator_cluster, f"Trainer to see {case}", cached)


@pytest.mark.parametrize("case", REFUSED_LATER)
def test_error_that_controllers_would_only_log_is_rejected_at_creation(
    operator_cluster, checked, stored, namespace, case
):
    rule = "pod-template" if case == "fetches-into-nothing" else "upstream-contract"
    if case in AT_THE_JOB:
        operator_cluster.kubectl("create", "-f", "-", stdin=broken_runtime(checked, case, namespace))
        at_once = lambda: create(operator_cluster, namespace, of_broken(case), "--dry-run=server").stderr  # noqa: E731
        wait_for(operator_cluster, "the service to see the runtime", lambda: f"[{rule}]" in at_once())
    elif case != "long-name":
        runtime = broken_runtime(checked, case, namespace)
        assert f"[{rule}]" in create(operator_cluster, namespace, runtime).stderr

    name = of_broken(case)["metadata"]["name"]
    wait_for(operator_cluster, f"{case} to be rejected", lambda: refused_by_a_controller(operator_cluster, case, name))
    assert not operator_cluster.get("pods", "-n", UNCHECKED, f"-ljobset.sigs.k8s.io/jobset-name={name}")["items"]


def refused_by_a_controller(cluster, case, name):
    """Whether the log of Trainer or JobSet has the expected error for the job."""
    return is_logged(cluster, name, REFUSED_LATER[case][1])


def is_logged(cluster, name, text):
    """Whether a line about this job in the log of Trainer or JobSet has the text."""
    lines = (line for each in ("trainer", "jobset") for line in cluster.programs[each].log.read_text().splitlines())
    return any(name in line and text in line for line in lines)


# Name suffixes of ConfigMaps that already belong to a different owner, and the error of Trainer or the API server.
IN_THE_WAY = {
    "runtime-snapshot": "a snapshot configmap exists but is owned by another object",
    "mpi-hostfile": "Only one reference can have Controller set to true",
}


@pytest.mark.parametrize("suffix", IN_THE_WAY)
def test_job_whose_config_map_belongs_to_a_different_owner_is_rejected(operator_cluster, checked, namespace, suffix):
    for where in (namespace, UNCHECKED):
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"owns-{suffix}", "namespace": where}}
        operator_cluster.kubectl("create", "-f", "-", stdin=owner)
        uid = operator_cluster.get("configmap", f"owns-{suffix}", "-n", where)["metadata"]["uid"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"owns-{suffix}", "uid": uid, "controller": True}
        metadata = {"name": f"with-{suffix}-{suffix}", "namespace": where, "ownerReferences": [reference]}
        operator_cluster.kubectl("create", "-f", "-", stdin={**owner, "metadata": metadata})
    manifest = job(f"with-{suffix}")

    refused = lambda: create(operator_cluster, namespace, manifest, "--dry-run=server").stderr  # noqa: E731
    wait_for(operator_cluster, "the service to see the ConfigMap", lambda: "[child-names]" in refused())
    assert create(operator_cluster, UNCHECKED, manifest).returncode == 0
    error = IN_THE_WAY[suffix]
    wait_for(operator_cluster, error, lambda: is_logged(operator_cluster, f"with-{suffix}", error))


def of_nodes(count, name="job", **runtime):
    return job(name, numNodes=count, resourcesPerNode={"limits": {"nvidia.com/gpu": 4}}, **runtime)


def lasting(cluster, namespace, checked):
    """Create a runtime whose pods run until they are deleted. Pods of other runtimes end after a second."""
    runtime = copy.deepcopy(checked.runtimes["deepspeed-distributed"])
    runtime["kind"], runtime["metadata"] = "TrainingRuntime", {"name": "lasting", "namespace": namespace}
    for each in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        each["template"]["spec"]["template"]["metadata"] = {"annotations": {KEEP_RUNNING: "yes"}}
    cluster.kubectl("create", "-f", "-", stdin=runtime)


def limited(cluster, namespace, gpus):
    """Create a quota, and wait until the service rejects a job with too many nodes."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": namespace},
        "spec": {"hard": {"requests.nvidia.com/gpu": str(gpus)}},
    }
    cluster.kubectl("create", "-f", "-", stdin=quota)
    too_large = of_nodes(gpus // 4 + 2)
    refused = lambda: create(cluster, namespace, too_large, "--dry-run=server").stderr  # noqa: E731
    wait_for(cluster, "the service to see the quota", lambda: "Quota exceeded" in refused())


def test_only_one_of_two_simultaneous_jobs_gets_the_quota(operator_cluster, checked, namespace):
    limited(operator_cluster, namespace, 8)
    lasting(operator_cluster, namespace, checked)
    two_nodes = lambda name: of_nodes(2, name, runtime="lasting", kind="TrainingRuntime")  # noqa: E731
    cached = lambda: create(operator_cluster, namespace, two_nodes("probe"), "--dry-run=server").returncode == 0  # noqa: E731
    wait_for(operator_cluster, "Trainer to see the runtime", cached)
    names = ("first", "second")

    with ThreadPoolExecutor() as pool:
        both = [pool.submit(create, operator_cluster, namespace, two_nodes(name)) for name in names]
    done = {name: each.result() for name, each in zip(names, both, strict=True)}

    assert sorted(each.returncode for each in done.values()) == [0, 1]
    (admitted,) = (name for name, each in done.items() if not each.returncode)
    (other,) = (name for name in names if name != admitted)
    assert "[resource-quota]" in done[other].stderr
    operator_cluster.kubectl("delete", "trainjob", admitted, "-n", namespace)
    fits = lambda: create(operator_cluster, namespace, two_nodes(other)).returncode == 0  # noqa: E731
    wait_for(operator_cluster, "quota for the other job", fits)


@pytest.mark.skipif(not FULL, reason="downloads packages: run `make test-long`")
@pytest.mark.timeout(600)
def test_trainer_sdk_prints_the_documented_rejection_and_no_warnings(operator_cluster, checked, namespace):
    """docs/clients.md shows this output. Users of the SDK do not see warnings."""
    request = {"runtime": "deepspeed-distributed", "name": "llama", "image": "registry.example.com/llama:1"}

    refused, _ = submit("trainer", operator_cluster, namespace, {**request, "num_nodes": 300})

    assert f"{refused['error']}\n{refused['message']}\n".replace(namespace, "NAMESPACE") == shown("Kubeflow SDK")
    one = create(operator_cluster, namespace, job("one", numNodes=1), "--dry-run=server").stderr
    assert "Warning: spec.trainer.numNodes: 1 node, but Trainer creates two pods" in one
    created, output = submit("trainer", operator_cluster, namespace, {**request, "num_nodes": 1})
    assert created == "llama"
    assert "two pods" not in output


def test_service_can_read_all_kinds_with_the_permissions_of_the_component_trainer(operator_cluster, checked):
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{UNCHECKED}"]
    account = operator_cluster.kubeconfig_for(f"system:serviceaccount:{UNCHECKED}:mpijob-webhook", groups)
    operator_cluster.kubectl("apply", "-f", RIGHTS)
    flags = ("--trainer", "--kubeconfig", str(account))

    def read(replica):
        lines = replica.ops("/metrics").splitlines()
        synced = {line for line in lines if line.startswith("mpijob_webhook_cache_synced") and line.endswith(" 1.0")}
        return {f'mpijob_webhook_cache_synced{{kind="{kind}"}} 1.0' for kind in KINDS} <= synced

    with service.running(operator_cluster, *flags, name="by-account", register=False) as replica:
        wait_for(operator_cluster, "all kinds to be read", lambda: read(replica))
    operator_cluster.kubectl("delete", "-f", RIGHTS)


def test_stored_train_job_can_be_suspended_and_deleted(operator_cluster, checked, namespace):
    assert create(operator_cluster, namespace, job()).returncode == 0

    suspend = ("patch", "trainjob", "job", "-n", namespace, "--type=merge", "-p", '{"spec":{"suspend":true}}')
    operator_cluster.kubectl(*suspend)
    operator_cluster.kubectl("delete", "trainjob", "job", "-n", namespace)


# (example, whether its launcher is a worker)
CONVERTED = (("rdma-efa", False), ("frameworks/deepspeed", False), ("openmpi-pi", True), ("horovod-gpu", True))
OF_INDEXED_JOBS = "JOB_COMPLETION_INDEX"


def mpi_job(name, namespace, **spec):
    """An example job whose pods run until they are deleted."""
    (found,) = yaml.load_all((EXAMPLES / f"{name}.yaml").read_text())
    found["metadata"]["namespace"] = namespace
    found["spec"].update(spec)
    for replica in found["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["metadata"] = {"annotations": {KEEP_RUNNING: "yes"}}
    return found


def essentials(cluster, namespace, label):
    """The restart policy and first container of each pod, by role."""
    found = {}
    for pod in cluster.get("pods", "-n", namespace)["items"]:
        spec, role = pod["spec"], pod["metadata"]["labels"][label].replace("node", "worker")
        container = spec["containers"][0]
        env = {each["name"]: each.get("value") for each in container["env"] if each["name"] != OF_INDEXED_JOBS}
        same = {key: container.get(key) for key in ("image", "command", "args", "resources", "securityContext")}
        found.setdefault(role, []).append((spec["restartPolicy"], {**same, "env": env}))
    return found


def slots(cluster, namespace, config_map):
    return [
        line.split()[1]
        for line in cluster.get("configmap", config_map, "-n", namespace)["data"]["hostfile"].splitlines()
    ]


@pytest.mark.parametrize(("example", "as_worker"), CONVERTED)
def test_converted_job_has_the_same_pods_as_the_mpi_job(operator_cluster, checked, namespace, example, as_worker):
    """The comparison includes injected values and the API server's defaults."""
    cluster, written = operator_cluster, mpi_job(example, namespace, runLauncherAsWorker=as_worker)
    name = written["metadata"]["name"]
    created = create(cluster, namespace, written)
    assert created.returncode == 0, created.stderr
    stored = cluster.get("mpijob", name, "-n", namespace)
    pod_count = written["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] + 1
    by_operator = lambda: essentials(cluster, namespace, "training.kubeflow.org/job-role")  # noqa: E731
    counted = lambda found: sum(map(len, found.values())) == pod_count  # noqa: E731
    wait_for(cluster, "the pods of the MPIJob", lambda: counted(by_operator()))
    expected, expected_slots = by_operator(), slots(cluster, namespace, f"{name}-config")

    converted, runtime = conversion.convert(stored)
    other = cluster.create_namespace()
    for each in (runtime, converted.document):
        each["metadata"]["namespace"] = other
    assert create(cluster, other, runtime).returncode == 0
    accepted = lambda: create(cluster, other, converted.document).returncode == 0  # noqa: E731
    wait_for(cluster, "the TrainJob to be accepted", accepted)

    by_trainer = lambda: essentials(cluster, other, "jobset.sigs.k8s.io/replicatedjob-name")  # noqa: E731
    wait_for(cluster, "the pods of the TrainJob", lambda: counted(by_trainer()))
    assert by_trainer() == expected
    assert slots(cluster, other, f"{name}-mpi-hostfile") == expected_slots
    cluster.kubectl("delete", "mpijob", name, "-n", namespace)
    cluster.kubectl("delete", "namespace", other, "--wait=false")
