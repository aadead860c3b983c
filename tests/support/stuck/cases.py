"""The jobs, the reason why each does not run, and a pattern for the first line of `why`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.controlplane.assets import assets
from tests.controlplane.nodes import BY_HAND, KEEP_RUNNING
from tests.support import kueue_objects
from tests.support.jobs import changed
from tests.support.queued_jobs import MANAGED, PRIORITY_LABEL, QUEUE_LABEL
from tests.support.stuck.real_logs import LOGS
from webhook.api.yaml import load_all

Json = dict[str, Any]

TEAM, FULL, BOUNDED, RESTRICTED, UNMANAGED = "team-a", "team-quota", "team-limits", "team-restricted", "team-free"
NAMESPACES: Final[Mapping[str, dict[str, str]]] = {
    TEAM: MANAGED,
    FULL: {},
    BOUNDED: {},
    RESTRICTED: {"pod-security.kubernetes.io/enforce": "restricted"},
    UNMANAGED: {},
}
WORKER, LAUNCHER = "Worker.template.spec", "Launcher.template.spec"
CONTAINER, OF_LAUNCHER = f"{WORKER}.containers.0", f"{LAUNCHER}.containers.0"


@dataclass(frozen=True)
class Fails:
    """The failure of a role's container."""

    role: str
    status: Mapping[str, Any]
    """The status of the only container."""
    events: tuple[tuple[str, str], ...] = ()
    log: str = ""
    phase: str = "Pending"
    init: bool = False
    """Whether the only init container fails."""


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    why: str
    """The cause, for the documentation."""
    says: str
    """A pattern for the first line of `why`."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = TEAM
    queue: str = ""
    fails: Fails | None = None

    def job(self) -> Json:
        job: Json = load_all(assets().upstream_examples["pi"].read_text())[0]
        resources = {"limits": {"cpu": 1, "memory": "1Gi"}}
        plain: Json = {
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec.runPolicy": {"cleanPodPolicy": "Running"},
            f"{CONTAINER}.resources": resources,
            f"{OF_LAUNCHER}.resources": resources,
            "Launcher.template.metadata.annotations": {KEEP_RUNNING: "yes"},
            "Worker.template.metadata.annotations": {},
        }
        if self.queue:
            plain["metadata.labels"] = {QUEUE_LABEL: self.queue}
        if self.fails:
            plain[f"{self.fails.role}.template.metadata.annotations"][BY_HAND] = "yes"
        return changed({**plain, **self.changes}, job)


def waiting(reason: str, message: str) -> dict[str, Any]:
    """The state of a container that is not started."""
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"state": {"terminated": {"exitCode": code, "reason": reason}}}


def failed(log: str, code: int = 1) -> Fails:
    """A launcher that failed. Its log is a recorded log of a real program. In this log, the job's name is `train`."""
    return Fails("Launcher", ended(code), log=(LOGS / f"{log}.log").read_text(), phase="Failed")


_ONCE: Final = {"spec.runPolicy.backoffLimit": 0}
_VOLUME: Final = f"{WORKER}.volumes"
_INIT: Final = {f"{LAUNCHER}.initContainers": [{"name": "fetch", "image": "registry.example.com/ml/train:1.5"}]}


CASES: Final = (
    Case(
        "queue-full",
        "Other jobs use the quota of the queue",
        r'queue "small" is full: \S+ cpu more',
        queue="small",
    ),
    Case(
        "queue-inactive",
        "The queue is inactive, because its flavor does not exist",
        r'queue "broken" takes no jobs: .*inactive \(FlavorNotFound\)',
        queue="broken",
    ),
    Case(
        "queue-held",
        "The administrator has stopped the queue",
        r'queue "held" takes no jobs: .* is stopped \(Hold\)',
        queue="held",
    ),
    Case("no-queue", "There is no LocalQueue of this name", r'queue "trainin" takes no jobs', queue="trainin"),
    Case(
        "never-fits",
        "It requests more than the queue can ever have",
        r'queue "small" could never admit it: .*cpu',
        {"Worker.replicas": 9},
        queue="small",
    ),
    Case(
        "uncovered",
        "The queue has no quota for GPUs at all",
        r'queue "small" could never admit it: .*nvidia.com/gpu unavailable',
        {f"{CONTAINER}.resources": {"limits": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}}},
        queue="small",
    ),
    Case(
        "no-flavor",
        "Its launcher requests nothing, in a queue with topology-aware scheduling",
        r'queue "racks" could never admit it: the launcher pods request nothing',
        {f"{OF_LAUNCHER}.resources": {}},
        queue="racks",
    ),
    Case(
        "unmanaged",
        "Kueue does not manage the namespace, and the job names a queue",
        r"Kueue does not manage this namespace",
        namespace=UNMANAGED,
        queue="small",
    ),
    Case(
        "no-class",
        "Its WorkloadPriorityClass does not exist",
        r"WorkloadPriorityClass",
        {"metadata.labels": {QUEUE_LABEL: "small", PRIORITY_LABEL: "urgent"}},
    ),
    Case(
        "check-pending",
        "An admission check of the queue is not ready",
        r"the admission check budget is Pending",
        queue="checked",
    ),
    Case(
        "quota",
        "The ResourceQuota of the namespace is used up",
        r"cannot be created, the quota is used up",
        namespace=FULL,
    ),
    Case(
        "unstated",
        "A ResourceQuota limits CPU, and the pods do not request CPU",
        r"the quota limits what the pods do not request: .*requests.cpu",
        {f"{CONTAINER}.resources": {}, f"{OF_LAUNCHER}.resources": {}},
        namespace=FULL,
    ),
    Case(
        "limit-range",
        "A LimitRange does not allow such large containers",
        r"a LimitRange rejects the pods: maximum memory usage per Container is 2Gi",
        {f"{CONTAINER}.resources": {"limits": {"cpu": 1, "memory": "8Gi"}}},
        namespace=BOUNDED,
    ),
    Case(
        "pod-security",
        "The namespace's Pod Security level rejects the pods",
        r'Pod Security rejects the pods: violates PodSecurity "restricted',
        namespace=RESTRICTED,
    ),
    Case(
        "no-account",
        "Its ServiceAccount does not exist",
        r'serviceaccount "trainer" not found',
        {f"{WORKER}.serviceAccountName": "trainer"},
    ),
    Case(
        "no-claim",
        "Its PersistentVolumeClaim does not exist",
        r'PersistentVolumeClaim "dataset" not found',
        {_VOLUME: [{"name": "data", "persistentVolumeClaim": {"claimName": "dataset"}}]},
    ),
    Case(
        "unbound",
        "Its PersistentVolumeClaim gets no volume",
        r'a volume does not exist yet: PersistentVolumeClaim "?homeless',
        {_VOLUME: [{"name": "data", "persistentVolumeClaim": {"claimName": "homeless"}}]},
    ),
    Case(
        "no-node",
        "No node has the label of its nodeSelector",
        r"no node matches: .*didn't match Pod's node affinity/selector",
        {f"{WORKER}.nodeSelector": {"gpu": "h900"}},
    ),
    Case(
        "no-room",
        "No node has enough free GPUs",
        r"no node has room now: .*Insufficient nvidia.com/gpu",
        {f"{CONTAINER}.resources": {"limits": {"nvidia.com/gpu": 16}}},
    ),
    Case(
        "too-large",
        "All nodes together have room for fewer workers",
        r"the cluster could never hold the whole job \(4 workers, nodes for 3\): .*Insufficient example.com/npu",
        {"Worker.replicas": 4, f"{CONTAINER}.resources": {"limits": {"example.com/npu": 1}}},
    ),
    Case(
        "tainted",
        "The only nodes with its devices have a taint",
        r"no node has room now: .*untolerated taint",
        {f"{CONTAINER}.resources": {"limits": {"example.com/tpu": 1}}},
    ),
    Case(
        "own-gpus",
        "Its launcher requests GPUs, and its workers use all of them",
        r"no node has room now: .*nvidia.com/gpu; own-gpus-worker-0 and 3 more of this job hold 32 nvidia.com/gpu",
        {
            "Worker.replicas": 4,
            f"{CONTAINER}.resources": {"limits": {"nvidia.com/gpu": 8}},
            f"{OF_LAUNCHER}.resources": {"limits": {"nvidia.com/gpu": 8}},
        },
    ),
    Case(
        "no-scheduler",
        "It names a scheduler that does not run",
        r'the scheduler "volcan" has not processed it',
        {f"{WORKER}.schedulerName": "volcan"},
    ),
    Case(
        "gated",
        "A scheduling gate holds its pods",
        r"held by the scheduling gate example.com/budget",
        {f"{WORKER}.schedulingGates": [{"name": "example.com/budget"}]},
    ),
    Case(
        "image",
        "The image cannot be pulled",
        r"image registry.example.com/ml/train:1.5 cannot be pulled: .*not found",
        {f"{CONTAINER}.image": "registry.example.com/ml/train:1.5"},
        fails=Fails(
            "Worker",
            waiting(
                "ImagePullBackOff",
                'Back-off pulling image "registry.example.com/ml/train:1.5": ErrImagePull: rpc error: code = NotFound'
                ' desc = failed to pull and unpack image "registry.example.com/ml/train:1.5": not found',
            ),
        ),
    ),
    Case(
        "pull-secret",
        "The pull secret of its image does not exist",
        r"the pull secret regcred does not exist",
        {f"{WORKER}.imagePullSecrets": [{"name": "regcred"}]},
        fails=Fails(
            "Worker",
            waiting("ErrImagePull", "failed to authorize: failed to fetch anonymous token: 401 Unauthorized"),
            events=(
                (
                    "FailedToRetrieveImagePullSecret",
                    "Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not "
                    "succeed.",
                ),
            ),
        ),
    ),
    Case(
        "init-runs",
        "An init container of its launcher has not ended",
        r"init container fetch has not ended after \S+; its last line is: 12% of dataset.tar",
        _INIT,
        fails=Fails(
            "Launcher",
            {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}},
            log="12% of dataset.tar\n",
            init=True,
        ),
    ),
    Case(
        "init-crashes",
        "An init container of its launcher fails",
        r"init container fetch: ended with exit code 1; its last line is: no such bucket",
        _INIT,
        fails=Fails(
            "Launcher",
            {
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
            },
            log="no such bucket\n",
            init=True,
        ),
    ),
    Case(
        "no-config",
        "A ConfigMap for its environment does not exist",
        r'lacks configmap "settings" not found',
        {f"{CONTAINER}.envFrom": [{"configMapRef": {"name": "settings"}}]},
        fails=Fails("Worker", waiting("CreateContainerConfigError", 'configmap "settings" not found')),
    ),
    Case(
        "no-secret",
        "A Secret that it mounts does not exist",
        r'secret "wandb" not found',
        {_VOLUME: [{"name": "token", "secret": {"secretName": "wandb"}}]},
        fails=Fails(
            "Worker",
            waiting("ContainerCreating", ""),
            events=(("FailedMount", 'MountVolume.SetUp failed for volume "token" : secret "wandb" not found'),),
        ),
    ),
    Case(
        "no-sshd",
        "The image has no sshd",
        r"does not start: .*/usr/sbin/sshd",
        fails=Fails(
            "Worker",
            waiting(
                "RunContainerError",
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: exec: "
                '"/usr/sbin/sshd": stat /usr/sbin/sshd: no such file or directory',
            ),
        ),
    ),
    Case(
        "not-ready",
        "The launcher waits for workers, and the readiness probe of the workers uses the wrong port",
        r"not ready: Readiness probe failed: .*:22: connect: connection refused",
        {"spec.launcherCreationPolicy": "WaitForWorkersReady"},
        fails=Fails(
            "Worker",
            {"state": {"running": {}}, "ready": False},
            events=(("Unhealthy", "Readiness probe failed: dial tcp 10.0.0.7:22: connect: connection refused"),),
            phase="Running",
        ),
    ),
    Case("suspended", "Its user has suspended it", r"suspended by its user", {"spec.runPolicy.suspend": True}),
    Case(
        "managed-by",
        "managedBy names a different controller",
        r'the operator ignores it: managedBy is "kueue"',
        {"spec.runPolicy.managedBy": "kueue"},
    ),
    Case(
        "refused",
        "The operator rejects the job, here for its restartPolicy",
        r'the operator rejects it: .*restartPolicy.*"Always"',
        {"Worker.restartPolicy": "Always"},
    ),
    Case(
        "name-taken",
        "A Service with the job's name already exists",
        r'the operator needs is taken: Service "name-taken" exists',
    ),
    Case(
        "wrong-key",
        "The workers do not accept the launcher's key",
        r"the key of the launcher is not accepted",
        _ONCE,
        fails=failed("wrong-key.openmpi-4"),
    ),
    Case(
        "wrong-hostfile",
        "The hostfile of mpirun does not exist",
        r"mpirun cannot open the hostfile /etc/mpi/hosts",
        _ONCE,
        fails=failed("wrong-hostfile.openmpi-4"),
    ),
    Case(
        "slots",
        "mpirun starts more ranks than there are slots",
        r"too few slots for 4 ranks",
        fails=failed("slots.openmpi-5"),
    ),
    Case(
        "no-name",
        "The launcher started before its workers had DNS names",
        r"the launcher found no address for train-worker-7",
        fails=failed("no-name.openmpi-5"),
    ),
    Case(
        "killed",
        "A rank was killed, here on the second worker",
        r"a rank was killed on train-worker-1 \(signal 9\)",
        _ONCE,
        fails=failed("killed.openmpi-5", 137),
    ),
    Case(
        "traceback",
        "A rank raised a Python exception",
        r"Python raised: FileNotFoundError: .*train.bin",
        _ONCE,
        fails=failed("traceback.openmpi-4"),
    ),
    Case(
        "log-gone",
        "Its launcher failed more often than backoffLimit allows, and is deleted with its log",
        r"the pod of the launcher was deleted with its log",
        {"spec.runPolicy.backoffLimit": 1},
        fails=Fails("Launcher", {**ended(1), "restartCount": 2}, phase="Running"),
    ),
    Case(
        "out-of-memory",
        "The launcher used more memory than its limit",
        r"used more memory than its limit of 1Gi",
        _ONCE,
        fails=Fails("Launcher", ended(137, "OOMKilled"), phase="Failed"),
    ),
    Case(
        "deadline",
        "It reached its time limit",
        r"failed: its time limit was exceeded: activeDeadlineSeconds of 2s",
        {"spec.runPolicy.activeDeadlineSeconds": 2},
    ),
)

ABSENT: Final = Case("nobody", "The operator does not run", r"no operator has processed it")
"""A job that is created after the operator was stopped."""

HOLDS_THE_QUEUE: Final = Case("first", "", "runs since", queue="small")
"""A job that runs. It is created before the other jobs."""


def queues() -> list[Json]:
    racks = kueue_objects.flavor("racks", {"kubernetes.io/os": "linux"})
    four: dict[str, int | str] = {"cpu": 4, "memory": "100Gi"}
    strategy = {"admissionChecks": [{"name": "budget"}]}
    return [
        kueue_objects.flavor("any", {"kubernetes.io/os": "linux"}),
        kueue_objects.manifest("AdmissionCheck", "budget", {"controllerName": "example.com/budget"}),
        kueue_objects.topology("racks", "topology.kubernetes.io/rack"),
        {**racks, "spec": {**racks["spec"], "topologyName": "racks"}},
        kueue_objects.cluster_queue("racks", {"racks": four}),
        kueue_objects.cluster_queue("small", {"any": four}),
        kueue_objects.cluster_queue("broken", {"gone": four}),
        kueue_objects.cluster_queue("held", {"any": four}, stopPolicy="Hold"),
        kueue_objects.cluster_queue("checked", {"any": four}, admissionChecksStrategy=strategy),
        *(
            kueue_objects.local_queue(name, name, namespace=TEAM)
            for name in ("small", "broken", "held", "checked", "racks")
        ),
    ]


def others() -> list[Json]:
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return [
        _manifest("ResourceQuota", "compute", FULL, {"hard": {"requests.cpu": "2"}}),
        _manifest("LimitRange", "bounds", BOUNDED, {"limits": [{"type": "Container", "max": {"memory": "2Gi"}}]}),
        _manifest("PersistentVolumeClaim", "homeless", TEAM, claim),
        _manifest("Service", "name-taken", TEAM, {"ports": [{"port": 80}]}),
    ]


def _manifest(kind: str, name: str, namespace: str, spec: Json) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}
