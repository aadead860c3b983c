"""Generated MPIJobs as JSON values, for property tests.

`jobs()` are objects that the wire types can read, with every optional part there, missing or null.
`mangled_jobs()` are the same with arbitrary JSON in up to three places. `json_values()` is arbitrary JSON.
`COMPLETE` has every field that is read, and `replaced(value)` walks it: each place in turn gets another value.
"""

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.support.samples import sample

# No time limit for an example: how fast this machine is today is not a property.
PROPERTY = settings(deadline=None, max_examples=sample(60, 150), suppress_health_check=[HealthCheck.too_slow])

ISTIO = "sidecar.istio.io/inject"
TRAINING = "training.openshift.io"
KEYS = (ISTIO, f"{TRAINING}/timeout", f"{TRAINING}/timeout-action", f"{TRAINING}/debug-mode", "app", "a/b~c", "")
VALUES = ("true", "false", "", "on", "72h", "7d", "0h", "3 days", "notify-only", "terminate", "x" * 300, "\x1b[1m\n")
NODE_KEYS = ("pool", "topology.kubernetes.io/zone")
ENV = ("PRTE_MCA_prte_default_hostfile", "PRTE_MCA_plm_ssh_args", "HYDRA_LAUNCHER_EXTRA_ARGS", "NCCL_DEBUG", "PATH")

# JSON that Go and JavaScript read alike: no NaN, no lone surrogates.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False) | text
)


def json_values() -> st.SearchStrategy[Any]:
    """Arbitrary JSON, a few levels deep."""
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=8
    )


def sparse(required: dict[str, Any] | None = None, /, **nullable: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A mapping with all of `required`, and each of `nullable` present, null or missing."""
    optional = {key: st.none() | value for key, value in nullable.items()}
    return st.fixed_dictionaries(required or {}, optional=optional)


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


string_maps = st.dictionaries(one_of(*KEYS) | text, one_of(*VALUES) | text, max_size=4)
quantities = one_of("1", "500m", "16Gi", 2, 0.5, "many")
env_vars = sparse(
    {"name": one_of(*ENV) | text},
    value=text,
    valueFrom=sparse(configMapKeyRef=sparse(name=text, key=text), fieldRef=json_values()),
)
containers = sparse(
    {"name": one_of("mpi", "sidecar", "mpi")},
    image=one_of("registry.example.com/mpi:1", "horovod/horovod"),
    command=st.lists(one_of("mpirun", "-np", "2", "python"), max_size=3),
    args=st.lists(text, max_size=2),
    env=st.lists(env_vars, max_size=4),
    envFrom=st.lists(
        sparse(configMapRef=sparse(name=text, optional=st.booleans()), secretRef=json_values()), max_size=2
    ),
    resources=sparse(
        limits=st.dictionaries(one_of("cpu", "memory", "nvidia.com/gpu"), quantities),
        requests=st.dictionaries(one_of("cpu", "memory", "nvidia.com/gpu"), quantities),
    ),
    volumeMounts=st.lists(sparse({"name": text, "mountPath": text}), max_size=2),
    securityContext=sparse(
        capabilities=sparse(add=st.lists(text, max_size=2), drop=st.lists(one_of("ALL", "SYS_CHROOT"), max_size=1)),
        runAsNonRoot=st.booleans(),
        runAsUser=one_of(0, 1000),
        privileged=json_values(),
    ),
)
node_terms = sparse(
    matchExpressions=st.lists(
        sparse(key=one_of(*NODE_KEYS), operator=one_of("In", "Exists"), values=st.lists(one_of("training", "b"))),
        max_size=2,
    ),
    matchFields=st.just([]),
)
pod_affinity_terms = sparse(
    namespaces=st.lists(one_of("team-a", "other", ""), max_size=2),
    namespaceSelector=st.dictionaries(st.text(max_size=3), json_values(), max_size=1),
    labelSelector=json_values(),
)
affinities = sparse(
    nodeAffinity=sparse(
        requiredDuringSchedulingIgnoredDuringExecution=sparse(nodeSelectorTerms=st.lists(node_terms, max_size=2)),
        preferredDuringSchedulingIgnoredDuringExecution=json_values(),
    ),
    podAffinity=sparse(
        requiredDuringSchedulingIgnoredDuringExecution=st.lists(pod_affinity_terms, max_size=2),
        preferredDuringSchedulingIgnoredDuringExecution=st.lists(
            sparse(weight=st.integers(1, 100), podAffinityTerm=pod_affinity_terms), max_size=2
        ),
    ),
)
tolerations = sparse(
    key=one_of("nvidia.com/gpu", "team", ""),
    operator=one_of("Exists", "Equal", ""),
    value=one_of("ml", ""),
    effect=one_of("NoSchedule", "NoExecute", ""),
    tolerationSeconds=st.integers(0, 9),
)
pod_specs = sparse(
    containers=st.lists(containers, max_size=3),
    initContainers=st.lists(containers, max_size=1),
    volumes=st.lists(sparse({"name": text}, emptyDir=sparse(medium=text), hostPath=sparse(path=text)), max_size=2),
    serviceAccountName=one_of("", "default", "trainer"),
    serviceAccount=one_of("", "trainer"),
    automountServiceAccountToken=st.booleans(),
    restartPolicy=one_of("Never", "OnFailure"),
    affinity=affinities,
    tolerations=st.lists(tolerations, max_size=3),
    nodeSelector=st.dictionaries(one_of(*NODE_KEYS), one_of("training", "a", "") | text, max_size=2),
    imagePullSecrets=st.lists(st.fixed_dictionaries({}, optional={"name": one_of("registry", "own")}), max_size=3),
    priorityClassName=one_of("high", ""),
    securityContext=sparse(fsGroup=one_of(0, 1337), runAsNonRoot=st.booleans(), runAsUser=one_of(0, 1000)),
)
pod_templates = sparse(metadata=sparse(labels=string_maps, annotations=string_maps), spec=pod_specs)
replica_specs = st.fixed_dictionaries(
    {},
    optional={
        "template": pod_templates,
        "replicas": st.none() | st.integers(-1, 2**31 - 1),
        "restartPolicy": st.none() | one_of("Never", "OnFailure", "Always", ""),
    },
)
run_policies = sparse(
    cleanPodPolicy=one_of("Running", "All", "None", "running", ""),
    activeDeadlineSeconds=st.integers(-1, 2**63 - 1),
    ttlSecondsAfterFinished=st.integers(-1, 10**6),
    backoffLimit=st.integers(-1, 10),
    suspend=st.booleans(),
    schedulingPolicy=sparse(minAvailable=st.integers(-1, 200), queue=text),
)
job_metadata = st.fixed_dictionaries(
    {},
    optional={
        "name": one_of("train", "pi", "x" * 60),
        "generateName": one_of("train-"),
        "namespace": one_of("team"),
        "labels": st.none() | string_maps,
        "annotations": st.none() | string_maps,
        "managedFields": json_values(),
    },
)
job_specs = sparse(
    {},
    mpiReplicaSpecs=st.dictionaries(
        one_of("Launcher", "Worker", "Launcher", "Worker", "worker"), st.none() | replica_specs, max_size=3
    ),
    slotsPerWorker=st.integers(0, 16),
    runLauncherAsWorker=st.booleans(),
    runPolicy=run_policies,
    sshAuthMountPath=one_of("/root/.ssh", "/home/mpiuser/.ssh"),
    mpiImplementation=one_of("OpenMPI", "Intel", "MPICH", "", "LAM"),
)


def jobs() -> st.SearchStrategy[dict[str, Any]]:
    """MPIJobs that the wire types read; by far not all of them valid."""
    return st.fixed_dictionaries(
        {"apiVersion": st.just("kubeflow.org/v2beta1"), "kind": st.just("MPIJob")},
        optional={"metadata": job_metadata, "spec": job_specs, "status": json_values()},
    )


@st.composite
def mangled_jobs(draw: st.DrawFn) -> Any:
    """MPIJobs with arbitrary JSON in one to three places."""
    job = draw(jobs() | st.just(COMPLETE).map(copy.deepcopy))
    for _ in range(draw(st.integers(1, 3))):
        *parents, last = draw(one_of(*paths(job)))
        parent = job
        for key in parents:
            parent = parent[key]
        parent[last] = draw(json_values())
    return job


def paths(value: Any, prefix: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of everything in `value`, itself left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*prefix, key)
        yield from paths(item, (*prefix, key))


def replaced(value: Any) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """(path, COMPLETE with `value` at this path) for every path in it."""
    for path in paths(COMPLETE):
        job: Any = copy.deepcopy(COMPLETE)
        parent = job
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = copy.deepcopy(value)
        yield path, job


def _replica(replicas: int, **container: Any) -> dict[str, Any]:
    return {
        "replicas": replicas,
        "restartPolicy": "Never",
        "template": {
            "metadata": {"labels": {"app": "train"}, "annotations": {"note": "x"}},
            "spec": {
                "containers": [
                    {
                        "name": "mpi",
                        "image": "registry.example.com/mpi:1",
                        "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
                        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                        "securityContext": {"capabilities": {"add": ["CHOWN"]}, "runAsUser": 1000},
                        **container,
                    }
                ],
                "initContainers": [{"name": "fetch", "image": "busybox", "env": []}],
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "scratch", "emptyDir": {"medium": "Memory"}},
                    {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}},
                    {"name": "keys", "csi": {"driver": "secrets-store.csi.k8s.io"}},
                    {"name": "node", "hostPath": {"path": "/data"}},
                ],
                "imagePullSecrets": [{"name": "pull"}],
                "serviceAccountName": "",
                "serviceAccount": "",
                "restartPolicy": "Never",
                "schedulerName": "default-scheduler",
                "nodeSelector": {"disk": "ssd"},
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a100", "h100"]}]}
                            ]
                        }
                    }
                },
                "tolerations": [{"key": "spot", "operator": "Exists", "value": "", "effect": "NoSchedule"}],
                "priorityClassName": "high",
                "securityContext": {"runAsUser": 0, "fsGroup": 100},
                "hostname": "",
                "subdomain": "",
            },
        },
    }


COMPLETE: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {
        "name": "train",
        "namespace": "team",
        "labels": {"app": "train"},
        "annotations": {"training.openshift.io/timeout": "72h"},
        "ownerReferences": [{"kind": "Workflow", "controller": False}],
    },
    "spec": {
        "slotsPerWorker": 1,
        "runLauncherAsWorker": False,
        "sshAuthMountPath": "/root/.ssh",
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "OpenMPI",
        "runPolicy": {
            "ttlSecondsAfterFinished": 600,
            "backoffLimit": 3,
            "suspend": False,
            "schedulingPolicy": {"minAvailable": 3, "queue": "q", "priorityClass": "p", "scheduleTimeoutSeconds": 60},
        },
        "mpiReplicaSpecs": {
            "Launcher": _replica(1, command=["mpirun", "-n", "2", "train"]),
            "Worker": _replica(2),
        },
    },
}
