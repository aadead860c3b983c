"""Strategies for jobs in older versions and in v2beta1, with the fields that the conversion uses."""

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.support.older_jobs import V1, V1ALPHA1, V1ALPHA2
from webhook.api.mpijob import API_VERSION
from webhook.parts.older_versions.both_ways import DEFAULTS

Json = dict[str, Any]
OLDER = (V1, V1ALPHA2, V1ALPHA1)


def optional(required: Json | None = None, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Mappings with all fields of `required` and any of `fields`."""
    return st.fixed_dictionaries(required or {}, optional=fields)


NUMBERS = st.integers(0, 4)
WORDS = st.sampled_from(
    [
        ["sleep", "365d"],
        ["mpirun", "-mca", "plm_rsh_agent", "/etc/mpi/kubexec.sh", "train"],
        ["sh", "-c", "mpirun --mca plm_rsh_agent /etc/mpi/kubexec.sh train; echo done"],
        ["/usr/sbin/sshd", "-De"],
        ["train"],
    ]
)
ENV = st.lists(
    st.sampled_from(
        [
            {"name": "A", "value": "1"},
            {"name": "B", "value": "2"},
            {"name": "OMPI_MCA_plm_rsh_agent", "value": "/etc/mpi/kubexec.sh"},
        ]
    ),
    unique_by=lambda variable: variable["name"],
    max_size=3,
)
MOUNTS = st.lists(
    st.sampled_from([{"name": "mpi-job-kubectl", "mountPath": "/opt/kube"}, {"name": "data"}]), max_size=2
)
RESOURCES = st.sampled_from([{}, {"limits": {"cpu": "1"}}, {"limits": {"nvidia.com/gpu": 2}}])


def containers(*names: str) -> st.SearchStrategy[list[Json]]:
    each = optional(
        {"name": st.sampled_from(names)},
        image=st.sampled_from(["a:1", "b:2"]),
        command=WORDS,
        args=WORDS,
        env=ENV,
        volumeMounts=MOUNTS,
        resources=RESOURCES,
    )
    return st.lists(each, min_size=1, max_size=len(names), unique_by=lambda container: container["name"])


SELECTOR = st.sampled_from([{"mpi_role_type": "worker"}, {"training.kubeflow.org/job-role": "worker"}, {"app": "x"}])
TEMPLATES = st.fixed_dictionaries(
    {
        "spec": optional(
            {"containers": containers("mpi", "logs", "main")},
            initContainers=containers("kubectl-delivery", "data"),
            volumes=st.lists(st.sampled_from([{"name": "mpi-job-kubectl"}, {"name": "data"}]), max_size=2),
            topologySpreadConstraints=st.lists(
                st.builds(lambda labels: {"labelSelector": {"matchLabels": labels}}, SELECTOR), max_size=1
            ),
            restartPolicy=st.sampled_from(["Never", "Always"]),
            serviceAccountName=st.just("mine"),
        )
    }
)
RUN_POLICY = optional(
    cleanPodPolicy=st.sampled_from(["All", "None"]),
    backoffLimit=NUMBERS,
    suspend=st.booleans(),
    ttlSecondsAfterFinished=NUMBERS,
    managedBy=st.sampled_from(["kubeflow.org/training-operator", "kubeflow.org/mpi-operator"]),
)


def roles(*policies: str) -> st.SearchStrategy[Json]:
    """Mappings with Launcher, Worker or both."""
    role = optional({"template": TEMPLATES}, replicas=NUMBERS, restartPolicy=st.sampled_from(policies))
    return optional(Launcher=role, Worker=role)


_FROM_V1ALPHA2 = {"mpiReplicaSpecs": roles("Never", "OnFailure", "Always", "ExitCode")}
_COMMON = {
    "slotsPerWorker": NUMBERS,
    "runPolicy": RUN_POLICY,
    "cleanPodPolicy": st.sampled_from(["All", "Running"]),
    "mainContainer": st.sampled_from(["main", "absent"]),
}
OLDER_SPECS = {
    V1: optional(_FROM_V1ALPHA2, **_COMMON),
    V1ALPHA2: optional(
        _FROM_V1ALPHA2,
        **_COMMON,
        backoffLimit=NUMBERS,
        activeDeadlineSeconds=NUMBERS,
        mpiDistribution=st.sampled_from(["OpenMPI", "IntelMPI", "MPICH"]),
    ),
    V1ALPHA1: st.one_of(
        optional({"template": TEMPLATES, "replicas": NUMBERS}, slotsPerWorker=NUMBERS, launcherOnMaster=st.booleans()),
        optional({"template": TEMPLATES, "gpus": st.just(4), "gpusPerNode": st.sampled_from([1, 2, 4, 8])}),
    ),
}
NEW_SPECS = optional(
    {"mpiReplicaSpecs": roles("Never", "OnFailure")},
    slotsPerWorker=NUMBERS,
    runPolicy=RUN_POLICY,
    sshAuthMountPath=st.sampled_from(["/root/.ssh", "/home/mpiuser/.ssh"]),
    runLauncherAsWorker=st.booleans(),
    launcherCreationPolicy=st.sampled_from(["AtStartup", "WaitForWorkersReady"]),
    mpiImplementation=st.sampled_from(["OpenMPI", "Intel", "MPICH"]),
)
# Specs as the API server stores them, with defaults.
STORED_SPECS = NEW_SPECS.map(
    lambda spec: {
        **DEFAULTS,
        **spec,
        **({"runPolicy": {"suspend": False, **spec["runPolicy"]}} if "runPolicy" in spec else {}),
    }
)


def document(version: str, spec: Any) -> Json:
    """A job in this version, as the API server sends it for conversion: with managedFields and a status."""
    return {
        "apiVersion": version,
        "kind": "MPIJob",
        "metadata": {"name": "a", "namespace": "b", "annotations": {"mine": "1"}, "managedFields": [{"manager": "x"}]},
        "spec": deepcopy(spec),
        "status": {"conditions": []},
    }


@st.composite
def older_jobs(draw: st.DrawFn) -> Json:
    version = draw(st.sampled_from(OLDER))
    return document(version, draw(OLDER_SPECS[version]))


@st.composite
def new_jobs(draw: st.DrawFn) -> Json:
    """A job in v2beta1: as a user writes it, or as the API server stores it."""
    return document(API_VERSION, draw(st.one_of(NEW_SPECS, STORED_SPECS)))
