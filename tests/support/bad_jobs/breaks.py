"""What goes wrong in jobs, one field at a time: changes as in `tests.support.jobs.changed`, by what is wrong."""

from collections.abc import Mapping
from typing import Any, Final

from tests.support.bad_jobs.facts import STORED, TAKEN
from tests.support.jobs import REMOVE

Changes = Mapping[str, Any]

LAUNCHER: Final = "Launcher.template.spec"
WORKER: Final = "Worker.template.spec"
LAUNCHED: Final = f"{LAUNCHER}.containers.0"
WORKING: Final = f"{WORKER}.containers.0"
QUEUE: Final = "metadata.labels.kueue\\.x-k8s\\.io/queue-name"
GPU: Final = f"{WORKING}.resources.limits.nvidia\\.com/gpu"
# The limit counts; a request would have to be the same.
NO_REQUEST: Final = {f"{WORKING}.resources.requests.nvidia\\.com/gpu": REMOVE}

BREAKS: Final[Mapping[str, Changes]] = {
    # the operator's own checks
    "no name for so many workers": {"metadata.name": "x" * 60},
    "a name with no room to grow": {"metadata.name": "x" * 54},
    "a name that is no label": {"metadata.name": "9_Train.Model"},
    "a long generateName": {"metadata.name": REMOVE, "metadata.generateName": "x" * 52},
    "a misspelt role": {"spec.mpiReplicaSpecs.worker": {"replicas": 2}},
    "a role that there is not": {"spec.mpiReplicaSpecs.Evaluator": {"replicas": 2}},
    "two launchers": {"Launcher.replicas": 2},
    "no worker": {"Worker.replicas": 0},
    "no worker at all": {"Worker": REMOVE},
    "no replicas": {"Worker.replicas": REMOVE},
    "a restart policy of pods": {"Worker.restartPolicy": "Always"},
    "negative slots": {"spec.slotsPerWorker": -1},
    "no slots": {"spec.slotsPerWorker": 0},
    "no path for the key": {"spec.sshAuthMountPath": ""},
    "the operator's own path for the key": {"spec.sshAuthMountPath": "/etc/mpi"},
    "another implementation": {"spec.mpiImplementation": "Intel"},
    "an unknown implementation": {"spec.mpiImplementation": "LAM"},
    "an unknown way to create the launcher": {"spec.launcherCreationPolicy": "Later"},
    "an unknown cleanPodPolicy": {"spec.runPolicy.cleanPodPolicy": "running"},
    "a negative time to keep it": {"spec.runPolicy.ttlSecondsAfterFinished": -1},
    "a negative limit": {"spec.runPolicy.activeDeadlineSeconds": -1},
    "negative retries": {"spec.runPolicy.backoffLimit": -1},
    "an unknown manager": {"spec.runPolicy.managedBy": "me"},
    "a volume of the operator's": {f"{LAUNCHER}.volumes": [{"name": "ssh-auth", "emptyDir": {}}]},
    "a mount at the operator's path": {f"{LAUNCHED}.volumeMounts": [{"name": "x", "mountPath": "/etc/mpi"}]},
    "a label of the operator's": {"Worker.template.metadata.labels.training\\.kubeflow\\.org/job-name": "x"},
    "a hostname": {f"{WORKER}.hostname": "x"},
    "the pod's restart policy": {f"{WORKER}.restartPolicy": "Always"},
    "a quantity that nobody can read": {f"{WORKING}.resources.limits.memory": "1e1.5"},
    "a negative quantity": {f"{WORKING}.resources.requests.memory": "-1Gi"},
    # numbers
    "too many workers": {"Worker.replicas": 150},
    "one worker": {"Worker.replicas": 1},
    "five workers": {"Worker.replicas": 5},
    "many workers, and the launcher": {"Worker.replicas": 100, "spec.runLauncherAsWorker": True},
    "too many slots": {"spec.slotsPerWorker": 40},
    "one slot": {"spec.slotsPerWorker": 1},
    "three slots": {"spec.slotsPerWorker": 3},
    "too many GPUs": {GPU: 24, **NO_REQUEST},
    "no GPU": {GPU: 0, **NO_REQUEST},
    "half a GPU": {GPU: "0.5", **NO_REQUEST},
    "a negative GPU": {GPU: -1, **NO_REQUEST},
    "GPUs of two kinds": {GPU: 8, f"{LAUNCHED}.resources.limits.amd\\.com/gpu": 1},
    "a request for GPUs alone": {
        f"{WORKING}.resources.limits.nvidia\\.com/gpu": REMOVE,
        f"{WORKING}.resources.requests.nvidia\\.com/gpu": 4,
    },
    "requests unlike limits": {f"{WORKING}.resources.requests.nvidia\\.com/gpu": 8, GPU: 4},
    "a GPU of the launcher": {f"{LAUNCHED}.resources.limits.nvidia\\.com/gpu": 1},
    "a GPU of the launcher, a worker": {
        f"{LAUNCHED}.resources.limits.nvidia\\.com/gpu": 1, "spec.runLauncherAsWorker": True, GPU: 8, **NO_REQUEST,
    },
    "too many ranks": {f"{LAUNCHED}.command": ["mpirun", "-np", "1000", "train"]},
    "too few ranks": {f"{LAUNCHED}.command": ["mpirun", "-np", "2", "train"]},
    "one CPU": {f"{WORKING}.resources.limits.cpu": "1", f"{WORKING}.resources.requests.cpu": "1"},
    # nodes, bounds and quotas
    "more CPUs than a node has": {f"{WORKING}.resources.limits.cpu": "400"},
    "more memory than a node has": {f"{WORKING}.resources.limits.memory": "9Ti"},
    "a GPU that no node has": {f"{WORKING}.resources.limits.nvidia\\.com/gpus": 2, GPU: REMOVE, **NO_REQUEST},
    "a label that no node has": {f"{WORKER}.nodeSelector": {"disk": "ssd"}},
    "a value that no node has": {f"{WORKER}.nodeSelector": {"team": "reserch"}},
    "little CPU": {f"{WORKING}.resources.limits.cpu": "50m"},
    "little memory": {f"{LAUNCHED}.resources": {"requests": {"memory": "1Mi"}}},
    "a high limit for the request": {f"{WORKING}.resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "16"}}},
    "a limit above the bound": {f"{LAUNCHED}.resources": {"limits": {"cpu": "80", "memory": "1Gi"}}},
    "nothing stated": {f"{WORKING}.resources": {}},
    "sixty workers": {"Worker.replicas": 60},
    # Kueue
    "a queue that is not there": {QUEUE: "trainnig"},
    "a queue": {QUEUE: "training"},
    "a queue, and too many workers": {QUEUE: "training", "Worker.replicas": 90},
    "a priority that is not there": {f"{WORKER}.priorityClassName": "hihg"},
    "a workload priority that is not there": {
        QUEUE: "training", "metadata.labels.kueue\\.x-k8s\\.io/priority-class": "bacth"
    },
    # gangs
    "a larger gang than there is": {"spec.runPolicy.schedulingPolicy": {"minAvailable": 500}},
    "a negative gang": {"spec.runPolicy.schedulingPolicy": {"minAvailable": -1}},
    "no gang": {"spec.runPolicy.schedulingPolicy": {"minAvailable": 0}},
    "a gang with the launcher last": {
        "spec.launcherCreationPolicy": "WaitForWorkersReady", "spec.runPolicy.schedulingPolicy": {"queue": "q"}
    },
    "a long wait for the gang": {"spec.runPolicy.schedulingPolicy": {"scheduleTimeoutSeconds": 9000}},
    "a negative wait": {"spec.runPolicy.schedulingPolicy": {"scheduleTimeoutSeconds": -1}},
    "two queues": {QUEUE: "training", "spec.runPolicy.schedulingPolicy": {"queue": "q"}},
    # Volcano
    "a misspelt queue of Volcano's": {"spec.runPolicy.schedulingPolicy": {"queue": "reserch"}},
    "a queue of Volcano's that is no leaf": {"spec.runPolicy.schedulingPolicy": {"queue": "root"}},
    "a small queue of Volcano's, and many workers": {
        "spec.runPolicy.schedulingPolicy": {"queue": "research"}, "Worker.replicas": 5,
        "spec.slotsPerWorker": 4, GPU: 4, **NO_REQUEST,
    },
    # time
    "a limit that is too long": {"spec.runPolicy.activeDeadlineSeconds": 10**7},
    "an annotation that is too long": {"metadata.annotations.training\\.openshift\\.io/timeout": "30d"},
    "both limits too long": {
        "metadata.annotations.training\\.openshift\\.io/timeout": "30d",
        "spec.runPolicy.activeDeadlineSeconds": 30 * 24 * 3600,
    },
    "an annotation that cannot be read": {
        "metadata.annotations.training\\.openshift\\.io/timeout": "3 days",
        "spec.runPolicy.activeDeadlineSeconds": REMOVE,
    },
    "a limit and an annotation": {
        "metadata.annotations.training\\.openshift\\.io/timeout": "3h", "spec.runPolicy.activeDeadlineSeconds": 60
    },
    "an unknown action": {"metadata.annotations.training\\.openshift\\.io/timeout-action": "mail"},
    "kept too briefly": {"spec.runPolicy.ttlSecondsAfterFinished": 5},
    "pods kept": {"spec.runPolicy.cleanPodPolicy": "None"},
    # images and what pods refer to
    "no image": {f"{WORKING}.image": REMOVE},
    "an image in capitals": {f"{WORKING}.image": "registry.example.com/ML/Train:1"},
    "an image with a scheme": {f"{WORKING}.image": "https://registry.example.com/ml/train:1"},
    "an image from elsewhere": {f"{WORKING}.image": "docker.io/ml/train"},
    "an image that changes": {f"{WORKING}.image": "registry.example.com/ml/train:latest"},
    "a claim that is not there": {
        f"{WORKER}.volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "dataset"}}]
    },
    "an account that is not there": {f"{WORKER}.serviceAccountName": "reportr"},
    "networks that cannot be read": {
        "Worker.template.metadata.annotations.k8s\\.v1\\.cni\\.cncf\\.io/networks": "[{"
    },
    "a network that is not there": {
        "Worker.template.metadata.annotations.k8s\\.v1\\.cni\\.cncf\\.io/networks": "storag"
    },
    "the disk of the node": {f"{WORKER}.volumes": [{"name": "d", "emptyDir": {}}]},
    "a path of the node": {f"{WORKER}.volumes": [{"name": "d", "hostPath": {"path": "/data"}}]},
    # Pod Security, and the user
    "privileged": {f"{WORKING}.securityContext": {"privileged": True}},
    "the host's network": {f"{WORKER}.hostNetwork": True},
    "the host's processes": {f"{WORKER}.hostPID": True, f"{WORKER}.hostIPC": True},
    "a port of the host": {f"{WORKING}.ports": [{"containerPort": 22, "hostPort": 22}]},
    "a capability": {f"{WORKING}.securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}},
    "memory locking": {f"{WORKING}.securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}},
    "no seccomp profile": {f"{WORKER}.securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "procMount": {f"{WORKING}.securityContext": {"procMount": "Unmasked"}},
    "a sysctl": {f"{WORKER}.securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
    "escalation": {f"{WORKING}.securityContext": {"allowPrivilegeEscalation": True}},
    "root": {f"{WORKER}.securityContext": {"runAsUser": 0}, f"{LAUNCHER}.securityContext": {"runAsUser": 0}},
    "root in a container": {f"{WORKING}.securityContext": {"runAsUser": 0}},
    "root on purpose": {f"{WORKER}.securityContext": {"runAsNonRoot": False}},
    "a user with the key of root": {
        "spec.sshAuthMountPath": "/root/.ssh",
        f"{WORKER}.securityContext": {"runAsUser": 1000}, f"{LAUNCHER}.securityContext": {"runAsUser": 1000},
    },
    "root with the key of a user": {
        "spec.sshAuthMountPath": "/home/mpiuser/.ssh", f"{LAUNCHER}.securityContext": {"runAsUser": 0}
    },
    "a group for the key of root": {
        "spec.sshAuthMountPath": "/root/.ssh", f"{LAUNCHER}.securityContext": {"fsGroup": 100, "runAsUser": 0}
    },
    "other users": {
        "spec.sshAuthMountPath": "/home/mpiuser/.ssh",
        f"{WORKER}.securityContext": {"runAsUser": 1000}, f"{LAUNCHER}.securityContext": {"runAsUser": 1001},
    },
    "sshd without what root needs": {
        f"{WORKER}.securityContext": {"runAsUser": 0}, f"{WORKING}.securityContext": {"capabilities": {"drop": ["ALL"]}}
    },
    "a token that nobody chose": {
        f"{WORKER}.serviceAccountName": REMOVE, f"{WORKER}.automountServiceAccountToken": True
    },
    "a posture that nobody may choose": {
        "metadata.annotations.training\\.openshift\\.io/network-policy": "isolated"
    },
    # environment and regulated data
    "variables that do not arrive": {f"{LAUNCHED}.env": [{"name": "NCCL_DEBUG", "value": "INFO"}]},
    "variables of the worker": {f"{WORKING}.env": [{"name": "NCCL_IB_HCA", "value": "mlx5"}]},
    "regulated data": {"metadata.labels.compliance\\.openshift\\.io/data-classification": "PHI"},
    "the name of another's object": {"metadata.name": TAKEN},
    "a change of a running job": {"metadata.name": STORED, "spec.slotsPerWorker": 3},
    "more than a megabyte of text": {f"{WORKING}.args": ["x" * 2**20]},
    # the API server's checks of a pod
    "a request above the limit": {f"{WORKING}.resources": {"requests": {"memory": "8Gi"}, "limits": {"memory": "4Gi"}}},
    "thousandths of a byte": {f"{WORKING}.resources.limits.memory": "512m"},
    "a hundred bytes": {f"{WORKING}.resources.limits.memory": 100},
    "half a huge page": {f"{WORKING}.resources.limits.hugepages-2Mi": "3Mi"},
    "a fraction of a device": {f"{WORKING}.resources.limits.example\\.com/nic": "1.5"},
    "a variable with two values": {
        f"{WORKING}.env": [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    },
    "a field of the pod that there is not": {
        f"{WORKING}.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.node"}}}]
    },
    "a resource that there is not": {
        f"{WORKING}.env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpus"}}}]
    },
    "a policy of images in small letters": {f"{WORKING}.imagePullPolicy": "ifnotpresent"},
    "another protocol": {f"{WORKING}.ports": [{"containerPort": 22, "protocol": "tcp"}]},
    "a container called like no label": {f"{WORKING}.name": "my_worker"},
    "a mount of a misspelt volume": {
        f"{WORKER}.volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}],
        f"{WORKING}.volumeMounts": [{"name": "date", "mountPath": "/data"}],
    },
    "a mount with two sub-paths": {
        f"{WORKER}.volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}],
        f"{WORKING}.volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "a", "subPathExpr": "$(A)"}],
    },
    "a recursive mount that is written": {
        f"{WORKER}.volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}],
        f"{WORKING}.volumeMounts": [{"name": "data", "mountPath": "/data", "recursiveReadOnly": "Enabled"}],
    },
    "a medium in small letters": {f"{WORKER}.volumes": [{"name": "data", "emptyDir": {"medium": "memory"}}]},
    "a mode in decimal": {
        f"{WORKER}.volumes": [{"name": "data", "configMap": {"name": "settings", "defaultMode": 777}}]
    },
    "a toleration of a key and any value": {
        f"{WORKER}.tolerations": [{"key": "gpu", "operator": "Exists", "value": "yes"}]
    },
    "a toleration of an effect in small letters": {
        f"{WORKER}.tolerations": [{"key": "gpu", "operator": "Exists", "effect": "noSchedule"}]
    },
    "a toleration for some seconds": {
        f"{WORKER}.tolerations": [{"key": "g", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 9}]
    },
    "a spread of no kind": {
        f"{WORKER}.topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Never", "labelSelector": {"matchLabels": {}}}
        ]
    },
    "a spread over some domains": {
        f"{WORKER}.topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}
        ]
    },
    "a readiness probe with a grace period": {
        f"{WORKING}.readinessProbe": {"tcpSocket": {"port": 22}, "terminationGracePeriodSeconds": 5}
    },
    "a probe that never succeeds": {f"{WORKING}.livenessProbe": {"tcpSocket": {"port": 22}, "successThreshold": 2}},
    "a profile that is not of its type": {
        f"{WORKER}.securityContext": {"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a.json"}}
    },
    "a privileged container that may not escalate": {
        f"{WORKING}.securityContext": {"privileged": True, "allowPrivilegeEscalation": False}
    },
    "shared processes and the host's": {f"{WORKER}.hostPID": True, f"{WORKER}.shareProcessNamespace": True},
    "a DNS policy in small letters": {f"{WORKER}.dnsPolicy": "clusterFirst"},
    "a claim under two names": {
        f"{WORKER}.resourceClaims": [
            {"name": "gpus", "resourceClaimName": "a", "resourceClaimTemplateName": "four-gpus"}
        ]
    },
    "a claim that the pod has not": {f"{WORKING}.resources.claims": [{"name": "gpus"}]},
    "numbers as text": {f"{WORKER}.terminationGracePeriodSeconds": "30"},
    "a grace period below nothing": {f"{WORKER}.terminationGracePeriodSeconds": -5},
    "an affinity of nothing": {
        f"{WORKER}.affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "team", "operator": "Exists", "values": ["research"]}]}
                    ]
                }
            }
        }
    },
    # what the launcher starts, and what pods state beside their class
    "ranks in words": {f"{LAUNCHED}.command": ["mpirun", "-np", "eight", "train"]},
    "ranks below none": {f"{LAUNCHED}.command": ["mpirun", "-np", "-1", "train"]},
    "a priority in numbers": {f"{WORKER}.priority": 1000, f"{WORKER}.preemptionPolicy": "Never"},
    "a command in one word": {f"{LAUNCHED}.command": ["mpirun -np 8 train"]},
    "an option in one word": {f"{LAUNCHED}.command": ["mpirun", "-np 8", "train"]},
}  # fmt: skip
