"""The diagnosis for each cause that can block a job, and the order of causes."""

import json
from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.support import odd_values
from tests.support.jobs import REMOVE
from tests.support.stuck.real_logs import LOGS
from tests.support.stuck.seen import HOUR_AGO, container, event, false, job, launcher, pod, sight, true, workload
from webhook.api.quantity import Quantity
from webhook.api.taints import Taint
from webhook.cluster.resources.nodes import NodeShape
from webhook.kit.importance import Importance
from webhook.parts.why import loose
from webhook.parts.why.cause import Stage
from webhook.parts.why.diagnosis import diagnose
from webhook.parts.why.limits import MAX_TEXT_CHARACTERS
from webhook.parts.why.place import place
from webhook.parts.why.sight import Judged, QueuePlace, Sight, happened
from webhook.parts.why.state import State

QUEUED = {"metadata.labels": {"kueue.x-k8s.io/queue-name": "gpu"}, "spec.runPolicy.suspend": True}
SUSPENDED = {"spec.runPolicy.suspend": True}


def finding(rule: str, path: str, message: str, fix: str, *, refuses: bool = False) -> Judged:
    return Judged(rule, path, message, fix, refuses=refuses, importance=Importance.FAILS)


MISSING = finding("references", "spec.volumes[0]", 'PersistentVolumeClaim "data" does not exist', "Create it.")
REPLICAS = "spec.mpiReplicaSpecs[Worker].replicas"
TOO_LARGE = finding("accelerator-available", REPLICAS, "60 workers, nodes for 6", "Set replicas to 6 or fewer.")
CONTRACT = finding("upstream-contract", "spec.x", "is 2", "Set x to 1.", refuses=True)
NO_CLAIM = false("PodScheduled", "Unschedulable", '0/4 nodes are available: persistentvolumeclaim "data" not found. x')


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return container(waiting={"reason": reason, "message": message})


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return container(terminated={"exitCode": code, "reason": reason})


def unscheduled(message: str, **spec: Any) -> list[dict[str, Any]]:
    conditions = [false("PodScheduled", "Unschedulable", message)] if message else []
    return [pod("train-worker-0", phase="Pending", node="", conditions=conditions, **spec), pod("train-worker-1")]


def unschedulable(message: str, *, nodes: Collection[NodeShape] = (), **spec: Any) -> Sight:
    """A job with a pending worker, for which the scheduler has this message."""
    return sight(pods=unscheduled(f"0/4 nodes are available: {message}. x", **spec), nodes=nodes)


def queued(message: str, reason: str = "Pending", **fields: Any) -> Sight:
    """A queued job whose Workload has this message from Kueue."""
    return sight(job=job(QUEUED), pods=[], workload=workload(false("QuotaReserved", reason, message), **fields))


def with_launcher(log: str, code: int = 1, reason: str = "Error", **fields: Any) -> Sight:
    """A job whose launcher failed with this log."""
    name = "train-launcher-abcde"
    failed = pod(name, ended(code, reason), phase="Failed")
    pods = [failed, pod("train-worker-0"), pod("train-worker-1")]
    return sight(pods=pods, logs={name: log}, launcher=launcher(failed=1), **fields)


def rejected(message: str) -> Sight:
    """A job whose workers the API server rejects with this message."""
    return sight(pods=[], events=[event("train", "MPIJobFailed", f"worker pod created failed: {message}")])


RUNNING = job({}, true("Running"))
WAIT_FOR_WORKERS = {"name": "wait-for-workers"}
TAINTED = "4 node(s) had untolerated taint(s)"
GPU_NODES = NodeShape({}, frozenset(), (Taint("team", "", "NoSchedule"),), {"nvidia.com/gpu": Quantity(8)})
OTHER_NODES = NodeShape({}, frozenset(), (Taint("web", "yes", "NoSchedule"),), {})
SAME_WORKER = pod("train-worker-1")
SAME_WORKER["metadata"]["uid"] = "of-worker-1"
GPUS = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 8}}}]


def log(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


EVICTION = true("DisruptionTarget", "EvictionByEvictionAPI", "Eviction API: evicting")
EVICTED = [*with_launcher("").pods[:2], pod("train-worker-1", conditions=[EVICTION])]
REJECTED = {
    "ResourceQuota is used up": (
        'pods "x" is forbidden: exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2',
        "the quota is used up: ResourceQuota q, requested: requests.cpu=1, used: requests.cpu=2",
    ),
    "Pod Security": (
        'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
        'Pod Security rejects the pods: violates PodSecurity "restricted:latest": runAsNonRoot != true',
    ),
    "SCC": (
        'pods "x" is forbidden: unable to validate against any security context constraint: [provider restricted-v2: '
        ".containers[0].runAsUser: Invalid value: 1000: must be in the ranges: [100068, 100069]]",
        "no SCC of OpenShift accepts the pods: [provider restricted-v2: .containers[0].runAsUser: Invalid value: "
        "1000: must be in the ranges: [100068, 100069]]",
    ),
    "runtime class": (
        'pods "x" is forbidden: pod rejected: RuntimeClass "kata" not found',
        'the pods need an object that does not exist: RuntimeClass "kata"',
    ),
    "priority class": (
        'pods "x" is forbidden: no PriorityClass with name high was found',
        "the pods need an object that does not exist: no PriorityClass with name high was found",
    ),
    "another webhook": (
        'admission webhook "a.b" denied the request: no',
        'an admission webhook rejects the pods: "a.b" denied the request: no',
    ),
    "invalid template": (
        'Pod "x" is invalid: spec.containers[0].image: Required value',
        "the API server rejects the pods: is invalid: spec.containers[0].image: Required value",
    ),
    "pods are not created for an unknown reason": (
        "the sky fell",
        "the pods are not created: worker pod created failed: the sky fell",
    ),
}
"""For each case: the message with which the API server rejects both workers, and the cause in the summary."""
TABLE: dict[str, tuple[Sight, str]] = {
    **{
        case: (rejected(message), f"does not run: 2 of 2 workers cannot be created, {cause}")
        for case, (message, cause) in REJECTED.items()
    },
    "runs": (
        sight(job=RUNNING, launcher=launcher(activeDeadlineSeconds=7500)),
        "runs since 2026-11-22 11:00:00Z (1h), 2 of 2 workers ready; 1h5m of 2h5m left: at 2026-11-22T13:05:00Z it "
        "is terminated (activeDeadlineSeconds)",
    ),
    "succeeded": (
        sight(job=job({"status": {"conditions": [true("Succeeded")], "startTime": "2026-11-22T10:00:00Z",
                                  "completionTime": "2026-11-22T10:40:30Z"}})),
        "succeeded at 2026-11-22 10:40:30Z, after 40m30s",
    ),
    "starts": (sight(pods=[]), "is being started, 0 of 2 workers ready"),
    "deleted": (
        sight(job=job({"metadata.deletionTimestamp": "2026-11-22T11:58:00Z", "metadata.finalizers": ["a/b"]})),
        "does not run: it is being deleted since 2m, held by the finalizer a/b",
    ),
    "managed by a different controller": (
        sight(job=job({"spec.runPolicy.managedBy": "me"}), pods=[], launcher=None),
        'does not run: the operator ignores it: managedBy is "me"',
    ),
    "MultiKueue": (
        sight(job=job({"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}), pods=[], launcher=None),
        "does not run: MultiKueue runs it in another cluster, so it has no pods here",
    ),
    "no operator processes the job": (
        sight(job=job({"status": REMOVE}), pods=[], launcher=None),
        "does not run: no operator has processed it since it was created 1h ago",
    ),
    "unreadable": (
        sight(job=job({"status": REMOVE, "Worker.template.spec.hostNetwork": "yes"}), pods=[], launcher=None),
        "does not run: the operator cannot read it: spec.mpiReplicaSpecs[Worker].template.spec.hostNetwork: must be "
        "true or false, not a string",
    ),
    "operator has not handled the job yet": (
        sight(
            job=job({"status": REMOVE, "metadata.creationTimestamp": "2026-11-22T11:59:55Z"}), pods=[], launcher=None
        ),
        "is being started, 0 of 2 workers ready",
    ),
    "operator has written an event": (
        sight(
            job=job({"status": REMOVE}), pods=[], launcher=None,
            events=[event("train", "MPIJobCreated", "", source={"component": "mpi-job-controller"})],
        ),
        "is being started, 0 of 2 workers ready",
    ),
    "invalid": (
        sight(
            job=job({"status": REMOVE}), pods=[], launcher=None,
            events=[event("train", "ValidationError", "Found validation errors: spec.x: must be 1")],
        ),
        "does not run: the operator rejects it: spec.x: must be 1",
    ),
    "invalid, and the event has expired": (
        sight(
            job=job({"status": REMOVE, "Launcher.replicas": 2}), pods=[], launcher=None, findings=[CONTRACT]
        ),
        "does not run: the operator rejects it: spec.x: is 2",
    ),
    "running job that an update made invalid": (
        sight(job=job({"Launcher.replicas": 2}, true("Running")), findings=[CONTRACT]),
        "does not run: the operator rejects it: spec.x: is 2",
    ),
    "job that only a policy rejects": (
        sight(job=job({}, true("Running")), findings=[CONTRACT]),
        "runs since 2026-11-22 11:00:00Z (1h), 2 of 2 workers ready",
    ),
    "name taken": (
        sight(pods=[], launcher=None, events=[event("train", "ErrResourceExists", 'Resource "train" of Kind "" is')]),
        'does not run: a name that the operator needs is taken: Resource "train" of Kind "" is',
    ),
    "suspended": (
        sight(job=job(SUSPENDED), pods=[]), "does not run: it is suspended by its user, and by no queue"
    ),
    "no queue name in a namespace where Kueue suspends every job": (
        sight(job=job(SUSPENDED), pods=[], all_queued=True),
        "does not run: it names no queue, and in this namespace Kueue starts only jobs that name one",
    ),
    "no Workload": (
        sight(job=job(QUEUED), pods=[]),
        'does not run: it waits for the queue "gpu", but Kueue has made no Workload of it',
    ),
    "queue is full": (
        replace(queued("couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor a, 2 "
                       "more needed"), place=QueuePlace(2, 5, "LocalQueue gpu")),
        'does not run: queue "gpu" is full: 2 cpu more needed in flavor a for the worker pods; it is number 2 of 5 in '
        "LocalQueue gpu, since 1h",
    ),
    "preempted": (
        sight(job=job(QUEUED), pods=[], workload=workload(
            false("QuotaReserved", "Pending", "insufficient unused quota for cpu in flavor a, 2 more needed"),
            true("Evicted", "Preempted"),
        )),
        'does not run: queue "gpu" is full: 2 cpu more needed in flavor a (it ran: another job preempted it), since 1h',
    ),
    "one flavor is full, a different flavor never fits": (
        queued("couldn't assign flavors to pod set worker: untolerated taint x in flavor b, insufficient unused quota "
              "for cpu in flavor a, 2 more needed"),
        'does not run: queue "gpu" is full: 2 cpu more needed in flavor a for the worker pods, since 1h',
    ),
    "launcher requests nothing that the queue covers": (
        queued("failed to assign flavors to pod set launcher: no TAS flavor assigned"),
        'does not run: queue "gpu" could never admit it: the launcher pods request nothing that the queue covers',
    ),
    "no flavor of the queue ever fits": (
        queued("couldn't assign flavors to pod set worker: flavor a doesn't match node affinity"),
        'does not run: queue "gpu" could never admit it: flavor a doesn\'t match node affinity',
    ),
    "queue is inactive": (
        queued("ClusterQueue gpu is inactive", "Inadmissible"),
        'does not run: queue "gpu" takes no jobs: ClusterQueue gpu is inactive',
    ),
    "Kueue has not processed the Workload": (
        sight(job=job(QUEUED), pods=[], workload=workload()),
        'does not run: it waits in queue "gpu": Kueue has not processed it yet, since 1h',
    ),
    "Kueue has deactivated the Workload": (
        sight(job=job(QUEUED), pods=[], workload=workload(true("Evicted", "Deactivated", "too often"), active=False)),
        "does not run: Kueue has deactivated it: too often",
    ),
    "Kueue does not retry the Workload": (
        sight(job=job(QUEUED), pods=[], workload=workload(true("Finished", "FailedToStart", "invalid label"))),
        "does not run: Kueue does not retry it: invalid label",
    ),
    "admission check is not ready": (
        sight(job=job(QUEUED), pods=[], workload=workload(true("QuotaReserved"), status={
            "admissionChecks": [{"name": "a", "state": "Ready"}, {"name": "b", "state": "Retry", "message": "no."}]})),
        "does not run: it has its quota, but the admission check b is Retry: no",
    ),
    "launcher exceeds a ResourceQuota": (
        sight(pods=[pod("train-worker-0"), pod("train-worker-1")], events=[
            event("train-launcher", "FailedCreate", 'pods "x" is forbidden: exceeded quota: q', kind="Job")]),
        "does not run: the launcher cannot be created, the quota is used up: ResourceQuota q",
    ),
    "rejected workers that were created later": (
        sight(job=RUNNING, events=[event("train", "MPIJobFailed", "worker pod created failed: exceeded quota: q")]),
        "runs since 2026-11-22 11:00:00Z (1h), 2 of 2 workers ready",
    ),
    "no node has room": (
        sight(pods=unscheduled("0/4 nodes are available: 1 node(s) had untolerated taint {a: b}, 3 Insufficient "
                               "nvidia.com/gpu. no new claims to deallocate, preemption: 0/4 nodes are available")),
        "does not run: train-worker-0: no node has room now: 1 node(s) had untolerated taint {a: b}, 3 Insufficient "
        "nvidia.com/gpu",
    ),
    "job larger than all nodes together": (
        sight(pods=unscheduled("0/6 nodes are available: 6 Insufficient nvidia.com/gpu. x"), findings=[TOO_LARGE]),
        "does not run: train-worker-0: the cluster could never hold the whole job (60 workers, nodes for 6): "
        "6 Insufficient nvidia.com/gpu. x",
    ),
    "different scheduler has not processed the pod": (
        sight(pods=unscheduled("", schedulerName="volcano")),
        'does not run: train-worker-0: the scheduler "volcano" has not processed it',
    ),
    "pod has a scheduling gate": (
        sight(pods=unscheduled("", schedulingGates=[{"name": "kueue.x-k8s.io/topology"}])),
        "does not run: train-worker-0: held by the scheduling gate kueue.x-k8s.io/topology",
    ),
    "unbound claim": (
        sight(pods=unscheduled("0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
                               volumes=[{"persistentVolumeClaim": {"claimName": "data"}}])),
        "does not run: train-worker-0: a volume does not exist yet: PersistentVolumeClaim data has none",
    ),
    "image cannot be pulled": (
        sight(pods=[pod("train-launcher-abcde"), pod("train-worker-0", waiting("ErrImagePull", "no such host"),
                                                     phase="Pending"), pod("train-worker-1")]),
        "does not run: train-worker-0: image registry.example.com/a:1 cannot be pulled: no such host",
    ),
    "runs as root": (
        sight(pods=[pod("train-worker-0", waiting("CreateContainerConfigError",
                    "container has runAsNonRoot and image will run as root"), phase="Pending")]),
        "does not run: train-worker-0: container has runAsNonRoot and image will run as root",
    ),
    "evicted": (
        sight(job=job({}, true("Failed", "MPIJobEvicted", "1/2 workers are evicted")), pods=[
            {**pod("train-worker-0", phase="Failed"), "status": {"phase": "Failed", "reason": "Evicted",
             "message": "The node was low on resource: memory."}}]),
        "failed: train-worker-0: its node evicted it (Evicted: The node was low on resource: memory)",
    ),
    "crash loop of a worker": (
        sight(pods=[pod("train-worker-0", {**waiting("CrashLoopBackOff"),
                    "lastState": {"terminated": {"exitCode": 1}}})],
              logs={"train-worker-0": "sshd: no hostkeys available -- exiting.\n"}),
        "does not run: train-worker-0: sshd has no host keys",
    ),
    "exit code": (
        with_launcher("Traceback\n  x\nValueError: no data\n---\n"),
        "does not run: the launcher failed once (6 tries left): container main ended with exit code 1; its last line "
        "is: ValueError: no data",
    ),
    "exit code without a log": (
        with_launcher("", 127),
        "does not run: the launcher failed once (6 tries left): container main ended with exit code 127: its command "
        "is not in the image",
    ),
    "launcher exceeded its memory limit": (
        with_launcher("", 137, "OOMKilled"),
        "does not run: the launcher failed once (6 tries left): container main used more memory than its limit "
        "(OOMKilled)",
    ),
    "failed launcher is retried": (
        sight(job=RUNNING, launcher=launcher(failed=1), pods=[
            {**pod("train-launcher-new"), "metadata": {**pod("train-launcher-new")["metadata"],
                                                      "creationTimestamp": "2026-11-22T11:30:00Z"}},
            pod("train-launcher-old", ended(1), phase="Failed"), pod("train-worker-0"), pod("train-worker-1")]),
        "runs since 2026-11-22 11:00:00Z (1h), 2 of 2 workers ready; before that the launcher failed once (6 tries "
        "left): container main ended with exit code 1",
    ),
    "deadline": (
        sight(job=job({}, true("Failed", "DeadlineExceeded")), pods=[],
              launcher=launcher(true("Failed", "DeadlineExceeded"), activeDeadlineSeconds=60)),
        "failed: its time limit was exceeded: activeDeadlineSeconds of 1m",
    ),
    "failed, and the pods are gone": (
        sight(job=job({}, true("Failed", "BackoffLimitExceeded", "Job has failed")), pods=[], launcher=None),
        "failed: BackoffLimitExceeded: Job has failed; the pod of the launcher was deleted with its log when its tries "
        "were used up",
    ),
    "failed, and restartPolicy Never keeps the pods": (
        sight(job=job({"Launcher.restartPolicy": "Never"}, true("Failed", "BackoffLimitExceeded", "Job has failed")),
              pods=[], launcher=None),
        "failed: BackoffLimitExceeded: Job has failed",
    ),
    "container restarted in its pod": (
        sight(pods=[pod("train-launcher-abcde", {**waiting("CrashLoopBackOff"), "restartCount": 4,
                        "lastState": {"terminated": {"exitCode": 1}}}), pod("train-worker-0"), pod("train-worker-1")]),
        "does not run: the launcher failed 4 times (2 tries left, then its pod is deleted with its log): container "
        "main ended with exit code 1",
    ),
    "preempted, and the worker was created again": (
        replace(with_launcher(log("worker-lost.openmpi-4")),
                events=[event("train-worker-1", "Preempted", "Preempted by pod 1 on node a", kind="Pod")]),
        "does not run: train-worker-1: it was preempted by a pod with a higher priority (Preempted by pod 1 on node a)",
    ),
    "evicted by an autoscaler": (
        replace(with_launcher(log("worker-lost.openmpi-5")), pods=EVICTED),
        "does not run: train-worker-1: it was evicted from its node by a drain, an autoscaler or Karpenter (Eviction "
        "API: evicting)",
    ),
    "a lost node, and the ranks wait forever": (
        sight(job=RUNNING, pods=[pod("train-launcher-abcde"), pod("train-worker-0"), pod("train-worker-1", conditions=[
              true("DisruptionTarget", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")])]),
        "does not run: train-worker-1: its node was lost (Taint manager: deleting due to NoExecute taint)",
    ),
    "a worker was killed for memory and restarted": (
        replace(with_launcher(log("worker-lost.mpich")), pods=[*with_launcher("").pods[:2], pod("train-worker-1", {
            **container(running={"startedAt": HOUR_AGO}),
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": HOUR_AGO}}})]),
        "does not run: train-worker-1: container main used more memory than its limit (OOMKilled)",
    ),
    "preempted before the launcher was retried": (
        sight(job=RUNNING, events=[
            event("train-worker-1", "Preempted", "Preempted by pod 1", kind="Pod", at="2026-11-22T10:00:00Z")]),
        "runs since 2026-11-22 11:00:00Z (1h), 2 of 2 workers ready; before that train-worker-1: it was preempted by a "
        "pod with a higher priority (Preempted by pod 1)",
    ),
    "an evicted launcher": (
        sight(pods=[{**pod("train-launcher-abcde", phase="Failed"), "status": {"phase": "Failed", "reason": "Evicted",
              "message": "The node was low on resource: memory."}}, pod("train-worker-0"), pod("train-worker-1")]),
        "does not run: train-launcher-abcde: its node evicted it (Evicted: The node was low on resource: memory)",
    ),
    "a node that was briefly not ready": (
        sight(job=RUNNING, pods=[pod("train-launcher-abcde"), pod("train-worker-0"), SAME_WORKER], events=[
            event("train-worker-1", "NodeNotReady", "Node is not ready", kind="Pod",
                  involvedObject={"kind": "Pod", "name": "train-worker-1", "uid": "of-worker-1"})]),
        "runs since 2026-11-22 11:00:00Z (1h), 2 of 2 workers ready",
    ),
    "a rank was killed": (
        with_launcher(log("killed.openmpi-5"), 137),
        "does not run: the launcher failed once (6 tries left): a rank was killed on train-worker-1 (signal 9), most "
        "likely for memory",
    ),
    "a traceback": (
        with_launcher(log("traceback.openmpi-4")),
        "does not run: the launcher failed once (6 tries left): container main ended with exit code 1; Python raised: "
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'",
    ),
    "a traceback that Intel MPI hides behind a signal": (
        with_launcher(f"Traceback (most recent call last):\nKeyError: 'a'\n{log('traceback.intel')}", 9),
        "does not run: the launcher failed once (6 tries left): container main ended with exit code 9; Python raised: "
        "KeyError: 'a'",
    ),
    "the log of sshd has the cause": (
        replace(with_launcher(log("wrong-key.openmpi-4")), logs={
            "train-launcher-abcde": log("wrong-key.openmpi-4"), "train-worker-0": log("strict-modes.openmpi-4")}),
        "does not run: the launcher failed once (6 tries left): sshd does not accept the key, since other users may "
        "write to /root/.ssh",
    ),
    "sshd without SYS_CHROOT": (
        replace(with_launcher(log("ssh-silent.intel")), logs={
            "train-launcher-abcde": log("ssh-silent.intel"), "train-worker-0": log("sshd-chroot.openmpi-4")}),
        'does not run: the launcher failed once (6 tries left): sshd may not chroot to "/run/sshd": it lacks the '
        "capability SYS_CHROOT, which CRI-O does not give by default",
    ),
    "an init container runs": (
        sight(pods=[pod("train-launcher-abcde", phase="Pending", inits=[
            {"name": "wait", "state": {"running": {"startedAt": "2026-11-22T11:55:00Z"}}}], conditions=[])],
            logs={"train-launcher-abcde": "waiting for train-worker-1\n"}),
        "does not run: train-launcher-abcde: init container wait has not ended after 5m; its last line is: waiting for "
        "train-worker-1",
    ),
    "an init container crashes": (
        sight(pods=[pod("train-launcher-abcde", phase="Pending", conditions=[], inits=[
            {**waiting("CrashLoopBackOff"), "name": "data", "lastState": {"terminated": {"exitCode": 2}}}])
            ], logs={"train-launcher-abcde": "no such bucket\n"}),
        "does not run: train-launcher-abcde: init container data: ended with exit code 2; its last line is: no "
        "such bucket",
    ),
    "a sidecar": (
        sight(job=RUNNING, pods=[pod("train-launcher-abcde", inits=[
            {"name": "proxy", "state": {"running": {}}}],
            initContainers=[{"name": "proxy", "restartPolicy": "Always"}]),
            pod("train-worker-0"), pod("train-worker-1")]),
        "runs since 2026-11-22 11:00:00Z (1h), 2 of 2 workers ready",
    ),
    "a pull secret that does not exist": (
        sight(pods=[pod("train-worker-0", waiting("ErrImagePull", "401 Unauthorized"), phase="Pending")], events=[
            event("train-worker-0", "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets "
                  "(regcred); attempting to pull the image may not succeed.", kind="Pod")]),
        "does not run: train-worker-0: image registry.example.com/a:1 cannot be pulled: 401 Unauthorized; the pull "
        "secret regcred does not exist",
    ),
    "the job's workers use all GPUs": (
        sight(pods=[pod("train-launcher-abcde", phase="Pending", node="", containers=GPUS, conditions=[false(
            "PodScheduled", "Unschedulable", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. x")]),
            pod("train-worker-0", containers=GPUS), pod("train-worker-1", containers=GPUS)]),
        "does not run: train-launcher-abcde: no node has room now: 2 Insufficient nvidia.com/gpu. x; train-worker-0 "
        "and 1 more of this job hold 16 nvidia.com/gpu",
    ),
    "a second controller": (
        sight(pods=[{**pod("train-worker-0"), "metadata": {"name": "train-worker-0", "labels": {
            "training.kubeflow.org/operator-name": "mpijob-controller"}}}]),
        "does not run: a second controller creates pods for it: mpijob-controller",
    ),
    "a finding of admission only": (
        sight(pods=[], findings=[MISSING]),
        'does not run: PersistentVolumeClaim "data" does not exist (admission would warn now)',
    ),
}  # fmt: skip


STATES = {
    "runs": State.RUNS,
    "succeeded": State.SUCCEEDED,
    "is being started": State.STARTS,
    "does not run": State.STUCK,
    "failed": State.FAILED,
}
"""The state of a job by the first words of its summary."""


@pytest.mark.parametrize("case", TABLE)
def test_state_and_summary_of_a_job(case: str) -> None:
    facts, summary = TABLE[case]
    (state,) = (state for words, state in STATES.items() if summary.startswith(words))
    diagnosis = diagnose(facts)
    assert (diagnosis.summary, diagnosis.state) == (summary, state)
    assert all(cause.fix and cause.where and cause.text for cause in diagnosis.causes)


def test_cause_has_the_field_and_the_fix_of_a_finding_about_the_same_object() -> None:
    pods = [pod("train-worker-0", phase="Pending", node="", conditions=[NO_CLAIM])]
    (cause,) = diagnose(sight(pods=pods, findings=[MISSING])).causes
    assert (cause.id, cause.stage) == ("no-claim", Stage.SCHEDULING)
    assert (cause.where, cause.fix) == ("Pod train-worker-0, PodScheduled; spec.volumes[0]", "Create it.")


def test_finding_about_a_different_object_is_a_separate_cause() -> None:
    other = structs.replace(MISSING, message='ConfigMap "settings" does not exist')
    pods = [pod("train-worker-0", phase="Pending", node="", conditions=[NO_CLAIM])]
    assert [cause.id for cause in diagnose(sight(pods=pods, findings=[other])).causes] == ["no-claim", "references"]


FIXES_OF_CASES = {
    "failed, and the pods are gone": "Set spec.mpiReplicaSpecs[Launcher].restartPolicy to Never",
    "the job's workers use all GPUs": (
        "Remove the devices from spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].resources.limits"
    ),
    "a pull secret that does not exist": "Create the Secret regcred in this namespace",
    "evicted by an autoscaler": 'karpenter.sh/do-not-disrupt: "true"',
    "preempted, and the worker was created again": "Set priorityClassName in the templates",
    "the log of sshd has the cause": "Set StrictModes no in the worker's sshd_config",
    "sshd without SYS_CHROOT": "Add SYS_CHROOT to spec.mpiReplicaSpecs[Worker]",
}
"""The fix by the case in TABLE."""
FIXES = {
    **{case: (TABLE[case][0], fix) for case, fix in FIXES_OF_CASES.items()},
    "no-name, outside a queue": (
        with_launcher(log("no-name.openmpi-4")),
        'set the annotation training.openshift.io/worker-readiness to the port of sshd, for example "22". The '
        "launcher then waits for them.",
    ),
    "no-name, in a queue": (
        with_launcher(log("no-name.mpich"), job=job({"metadata.labels": {"kueue.x-k8s.io/queue-name": "gpu"}})),
        "The launcher then waits for them (in a queue launcherCreationPolicy has no effect).",
    ),
    "no-name, though the launcher waits": (
        with_launcher(log("no-name.openmpi-5"), job=job({"spec.launcherCreationPolicy": "WaitForWorkersReady"})),
        "The launcher waited for its workers",
    ),
    "no-name, though an init container waits": (
        with_launcher(log("no-name.mpich"), job=job({"Launcher.template.spec.initContainers": [WAIT_FOR_WORKERS]})),
        "-c wait-for-workers names those missing.",
    ),
    "taint, up to Kubernetes 1.34": (
        unschedulable("4 node(s) had untolerated taint {nvidia.com/gpu: present}"),
        "Add to spec.mpiReplicaSpecs[Worker].template.spec.tolerations: {key: nvidia.com/gpu, operator: Equal, value: "
        "present}",
    ),
    "taint of the nodes": (
        unschedulable(TAINTED, containers=GPUS, nodes=[GPU_NODES, OTHER_NODES]),
        "tolerations: {key: team, operator: Exists, effect: NoSchedule}",
    ),
    "taints of nodes that the user may not read": (
        unschedulable(TAINTED),
        "tolerations: one for a taint that kubectl describe nodes shows.",
    ),
    "taint of the nodes with the devices, other nodes have no devices": (
        unschedulable(f"3 Insufficient nvidia.com/gpu, {TAINTED}", containers=GPUS, nodes=[GPU_NODES, OTHER_NODES]),
        "for nodes with a taint, add to spec.mpiReplicaSpecs[Worker].template.spec.tolerations: {key: team, operator: "
        "Exists, effect: NoSchedule}",
    ),
    "taint of a control plane, other nodes do not match": (
        unschedulable(
            "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 3 node(s) didn't match Pod's "
            "node affinity/selector"
        ),
        "Compare nodeSelector, affinity and tolerations with",
    ),
    "taint with a value that must be quoted in YAML": (
        unschedulable("4 node(s) had untolerated taint {gpu: true}"),
        '{key: gpu, operator: Equal, value: "true"}',
    ),
    "taints of nodes that are not ready": (
        unschedulable(
            "1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 3 node(s) had untolerated taint "
            "{node.cloudprovider.kubernetes.io/uninitialized: true}"
        ),
        "These nodes are not ready, or not for jobs: kubectl describe nodes",
    ),
    "taint that is tolerated": (
        unschedulable(TAINTED, tolerations=[{"operator": "Exists"}], nodes=[GPU_NODES]),
        "tolerations: one for a taint that kubectl describe nodes shows.",
    ),
}


@pytest.mark.parametrize("case", FIXES)
def test_fix_names_the_field_and_the_value(case: str) -> None:
    facts, fix = FIXES[case]
    assert fix in diagnose(facts).causes[0].fix


def test_colours_control_characters_and_invalid_utf8_are_removed() -> None:
    message = "\x1b[31mno \ufffdsuch\x07 host\x1b[0m"
    diagnosis = diagnose(sight(pods=[pod("train-worker-0", waiting("ErrImagePull", message), phase="Pending")]))
    assert diagnosis.causes[0].text.endswith("cannot be pulled: no such host")


def test_causes_are_ordered_by_stage() -> None:
    failed = with_launcher("ssh: Could not resolve hostname train-worker-0: Name or service not known")
    pods = [*failed.pods[:1], pod("train-worker-0", waiting("ErrImagePull", "no"), phase="Pending")]
    pods.append(pod("train-worker-1", phase="Pending", node="", conditions=[NO_CLAIM]))
    diagnosis = diagnose(
        replace(failed, pods=pods, findings=[structs.replace(MISSING, rule="slots", message="few", path="a")])
    )
    assert [cause.stage for cause in diagnosis.causes] == [Stage.SCHEDULING, Stage.START, Stage.RUN, Stage.ADMISSION]


def test_long_text_is_cut_only_in_the_summary() -> None:
    diagnosis = diagnose(rejected(f'admission webhook "a.b" denied the request: {"x" * 500}'))
    assert len(diagnosis.summary) < 330 < len(diagnosis.causes[0].text)
    assert diagnosis.summary.endswith("xxx...")


def test_many_pods_with_the_same_problem_have_one_cause() -> None:
    pods = [pod(f"train-worker-{index}", phase="Pending", node="", conditions=[NO_CLAIM]) for index in range(40)]
    (cause,) = diagnose(sight(pods=pods)).causes
    assert cause.text == 'train-worker-0 and 39 more: PersistentVolumeClaim "data" not found'


def test_equal_findings_about_several_fields_are_one_cause_and_do_not_change_the_state_of_a_running_job() -> None:
    findings = [structs.replace(MISSING, path=path) for path in ("a", "b")]
    diagnosis = diagnose(sight(job=RUNNING, findings=findings))
    assert [cause.where for cause in diagnosis.causes] == ["a, b"]
    assert diagnosis.state is State.RUNS


def test_place_in_the_queue_depends_on_priority_and_then_on_age() -> None:
    def waits(name: str, priority: int, created: str, queue: str = "gpu") -> dict[str, Any]:
        return {
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"queueName": queue, "priority": priority},
        }

    mine = waits("mine", 0, "2026-01-02T00:00:00Z")
    admitted = {**waits("d", 9, "2026-01-01T00:00:00Z"), "status": {"conditions": [true("QuotaReserved")]}}
    workloads = [
        mine,
        waits("older", 0, "2026-01-01T00:00:00Z"),
        waits("higher", 5, "2026-01-03T00:00:00Z"),
        waits("younger", 0, "2026-01-04T00:00:00Z"),
        waits("elsewhere", 9, "2026-01-01T00:00:00Z", "cpu"),
        admitted,
    ]
    assert place(mine, workloads) == QueuePlace(3, 4, "LocalQueue gpu")
    assert place(admitted, workloads) is None


def test_workers_deleted_by_clean_pod_policy_are_not_the_cause_of_a_failure() -> None:
    """The operator deletes these workers after the launcher has failed."""
    failed = with_launcher("Killed\n", code=3, job=job({}, true("Failed", "MPIJobFailed")))
    worker = pod("train-worker-0", ended(143), phase="Failed")
    leaving = {**worker, "metadata": {**worker["metadata"], "deletionTimestamp": "2026-11-22T12:00:00Z"}}
    diagnosis = diagnose(failed)
    assert "the launcher failed" in diagnosis.summary
    assert diagnose(replace(failed, pods=[*failed.pods[:1], leaving])) == diagnosis


def test_text_of_an_event_is_cut_before_patterns_search_it() -> None:
    """The time of a search is quadratic in the text's length. A user who may create Events could delay other users."""
    message = "worker pod created failed: " + "maximum " * 200_000
    facts = sight(pods=[], events=[event("train", "MPIJobFailed", message)])
    assert len(loose.text(facts.events[0], "message")) == MAX_TEXT_CHARACTERS
    assert diagnose(facts).state is State.STUCK


OBJECTS = [field.name for field in fields(Sight) if field.name in {"job", "launcher", "pods", "workload", "events"}]


@settings(max_examples=400)
@given(data=st.data())
def test_diagnosis_accepts_objects_with_any_value_in_any_field(data: st.DataObject) -> None:
    facts = TABLE[data.draw(st.sampled_from(sorted(TABLE)))][0]
    name = data.draw(st.sampled_from(OBJECTS))
    original = json.loads(json.dumps(getattr(facts, name)))
    if not original:
        return
    broken = odd_values.changed(original, data)
    if name in {"pods", "events"}:
        broken = [item for item in broken if isinstance(item, dict)]
    odd = replace(facts, **{name: broken})
    diagnose(odd)
    for warning in odd.warnings():
        odd.since(happened(warning))


def test_job_larger_than_the_cluster_does_not_start_without_a_change() -> None:
    pods = unscheduled("0/6 nodes are available: 6 Insufficient nvidia.com/gpu. x")
    (cause,) = diagnose(sight(pods=pods, findings=[TOO_LARGE])).causes
    assert (cause.passes, cause.fix) == (False, "Set replicas to 6 or fewer.")
    assert cause.where.endswith(f"; {REPLICAS}")
    (cause,) = diagnose(sight(pods=pods)).causes
    assert cause.passes


@pytest.mark.parametrize(
    ("annotations", "origin", "raised"),
    [
        (
            {"timeout": "2h"},
            ', from the annotation training.openshift.io/timeout "2h"',
            "the annotation training.openshift.io/timeout",
        ),
        ({"timeout": "3h"}, "", "spec.runPolicy.activeDeadlineSeconds"),
        ({"timeout": "soon", "injected": "istio, job-timeout"}, "", "spec.runPolicy.activeDeadlineSeconds"),
        (
            {"injected": "istio,job-timeout"},
            ", the default of the policy",
            "it by the annotation training.openshift.io/timeout",
        ),
    ],
)
def test_diagnosis_names_the_origin_of_the_time_limit(annotations: dict[str, str], origin: str, raised: str) -> None:
    prefixed = {f"training.openshift.io/{key}": value for key, value in annotations.items()}
    over = true("Failed", "DeadlineExceeded")
    limited = launcher(over, activeDeadlineSeconds=7200)
    (cause,) = diagnose(sight(job=job({"metadata.annotations": prefixed}, over), pods=[], launcher=limited)).causes
    assert cause.text == f"its time limit was exceeded: activeDeadlineSeconds of 2h{origin}"
    assert cause.fix == f"Raise {raised}, and let the program continue from its last checkpoint."
