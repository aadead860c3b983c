"""The texts about the folders of tests/corpus: patterns in 204 real jobs, their frequency, and their outcomes."""

from typing import Final, NamedTuple


class Subject(NamedTuple):
    """A subject of the page about real jobs."""

    title: str
    real: str
    ours: str


INTRODUCTION: Final = """\
# What real jobs look like

This page is based on 204 MPIJobs from 57 public sources: benchmarks of cloud vendors and of NVIDIA, AMD and AWS, Kueue,
Horovod, DeepSpeed, molecular dynamics, Linpack, courses. It describes what they have in common, and how this service
handles it. The jobs below were written in the same shapes. None of them is a copy.

The columns are the places where a job is submitted: without a cluster, and in five namespaces of [one
cluster](../../tests/corpus/cluster.yaml) with five kinds of nodes. *open* allows everything. *queued* has a queue
of Kueue. *restricted* enforces this level of [Pod Security](../pod-security.md). *quota* has 16 GPUs, 800 CPUs and
4 Ti of memory. *openshift* is a namespace of [OpenShift](../openshift.md). *policy* is *queued* with [settings that
are off by default](../../tests/corpus/policy.yaml). The file `NAME.outcome` next to each job has the texts of
rejections and warnings, and the injected values.

To check your job: `mpijob-webhook check job.yaml --cluster tests/corpus/cluster.yaml -n restricted`."""

SUBJECTS: Final = {
    "user": Subject(
        "The user that mpirun runs as",
        "161 run mpirun as root, with `--allow-run-as-root` or `OMPI_ALLOW_RUN_AS_ROOT`; 22 as user 1000.",
        "Root is fine if the namespace allows it. A restricted namespace starts no container as root: "
        "`ssh-paths` reports this before the job is stored. For user 1000, `security-context` injects the fields that "
        "the level requires, and `scc` the fields that OpenShift requires.",
    ),
    "resources": Subject(
        "Resources of launchers",
        "123 launchers state no resources, so a quota for CPU or memory rejects their pod. The others state 50m to "
        "100m of CPU and 100Mi to 1Gi of memory.",
        "`launcher-resources` injects similar amounts if a quota or LimitRange requires them. The needs of workers "
        "cannot be guessed: `resource-quota` names the missing resources.",
    ),
    "cpu-only": Subject(
        "Jobs without accelerators",
        "36 jobs; 8 of them have more than 4 slots: 36, 64, 96 or 192, a rank for each core.",
        "`slots` allows 1 to 8 by default, and its rejection names the alternatives. To allow a rank on each core, an "
        "administrator sets `slots.maxCpu`, as in `manifests/policies/hpc-cpu.yaml` (the column *policy*).",
    ),
    "accelerators": Subject(
        "Accelerators",
        "`nvidia.com/gpu`, `amd.com/gpu`, `habana.ai/gaudi`, `aws.amazon.com/neuron`, `aws.amazon.com/neuroncore` "
        "(16 for each worker); 20 jobs use claims of dynamic resource allocation.",
        "All of these are treated as accelerators: `gpu-nodes` selects their nodes, and `shared-memory` sets their "
        "`/dev/shm`. The number of devices in a claim depends on its template, so rules do not reject claims.",
    ),
    "one-rank-per-node": Subject(
        "One rank for each node",
        "torchrun or deepspeed, started by mpirun once on each node: `-np` is the number of workers, or `-N 1`, "
        "`-npernode 1`, `--map-by ppr:1:node`. One slot for eight GPUs is right in this case.",
        "`slots` reads the command line, and does not warn if the ranks fit.",
    ),
    "waiting": Subject(
        "Waiting for the workers",
        "42 write a loop by hand, with ssh, nslookup or `until`; 40 set `backoffLimit`, up to 2,000; 20 use "
        "`launcherCreationPolicy: WaitForWorkersReady`, 10 a probe of sshd's port.",
        "`launcher-wait` waits in every launcher that certainly has a shell. For others there is the annotation"
        " `worker-readiness`. `mpi-env` lets ssh try for longer. A launcher that fails more often than `backoffLimit`"
        " is deleted with its log, and the warning about injections says so.",
    ),
    "shared-memory": Subject(
        "Shared memory",
        "102 mount a memory volume at `/dev/shm`, of 1Gi to 512Gi or without a size; 34 mount the node's by hostPath.",
        "`shared-memory` injects the volume if workers with accelerators mount nothing at this path. A hostPath is "
        "rejected if Pod Security rejects it.",
    ),
    "rdma-resources": Subject(
        "Resources for RDMA",
        "`vpc.amazonaws.com/efa` (1 to 32), `rdma/ib` (1 to 8), `rdma/hca_shared_devices_a`, "
        "`rdma/rdma_shared_device_a`, `nvidia.com/hostdev` (4, 8), `nvidia.com/rdma-vf` (8, 16), "
        "`nvidia.com/sriov_rdma_vf` (16), `amd.com/nic`, `amd.com/vnic`: often one for each GPU, not one for each "
        "pod.",
        "The user's resources are not changed. `accelerator-available` reports a resource that no node has.",
    ),
    "rdma-besides": Subject(
        "Other settings for RDMA",
        "`IPC_LOCK` in 68, `/dev/infiniband` by hostPath in 29, privileged workers in 43, the host network in 26. "
        "With the host network, sshd uses port 2222, which is declared so that the scheduler separates the workers.",
        "None of these is ever injected. They are admitted if the namespace's Pod Security level allows them. If a "
        "policy enables `host-network`, it declares a missing port.",
    ),
    "pod-security": Subject(
        "Pod Security",
        "101 of 204 break the level baseline: by `IPC_LOCK`, hostPath, privileged containers or the host network.",
        "`pod-security` checks both templates against the labels of the namespace, and names an alternative: a device "
        "resource needs none of these.",
    ),
    "rank-environment": Subject(
        "Variables for the ranks",
        "`-x NAME` on the command line, above all `-x LD_LIBRARY_PATH` in more than 100; `NCCL_SOCKET_IFNAME` in "
        "71, `NCCL_IB_HCA` in 64, `NCCL_DEBUG` in most.",
        "`rank-environment` warns about variables that the ranks would never see.",
    ),
    "open-mpi-5": Subject(
        "Open MPI 5",
        "13 set `PRTE_MCA_*` by hand; 43 use `plm_rsh_args`, and 31 of these set it only in a form that Open MPI 5 "
        "ignores.",
        "`mpi-env` injects the variables that Open MPI 5 reads, with the job's options.",
    ),
    "placement": Subject(
        "Placement",
        "A nodeSelector in 65, tolerations in 33, required affinity in 12, anti-affinity in 13, spreading in 4.",
        "`gpu-nodes` and `topology` add missing fields, and never change the user's fields. `accelerator-available` "
        "reports nodes that do not exist, and `ever-fits` and `volcano-queue` report queues that are too small for the "
        "job.",
    ),
    "end-of-job": Subject(
        "The end of the job",
        "194 set `cleanPodPolicy` to Running or All; one sets `activeDeadlineSeconds`; two are meant to run for ever.",
        "`clean-pod-policy` and `job-timeout` inject missing fields. A job that runs for ever needs the annotation "
        "`training.openshift.io/timeout: 3650d`, and a user with permission to exempt jobs from the rule "
        "`job-timeout`.",
    ),
    "istio": Subject(
        "Istio",
        "4 disable the sidecar by hand.",
        "`istio` disables it for all jobs.",
    ),
    "api-access": Subject(
        "Access to the Kubernetes API",
        "One launcher calls kubectl. It names its service account.",
        "`api-access` disables the API token of all pods that name no service account.",
    ),
    "operator-volumes": Subject(
        "Volumes of the operator",
        "3 mount the volumes `ssh-auth` and `mpi-job-config` of the operator in init containers.",
        "The operator adds these volumes later, so they are not reported as missing: such a job is admitted.",
    ),
    "unknown-fields": Subject(
        "Fields that do not exist",
        "`spec.cleanPodPolicy`, `runPolicy.schedulerName`, `runPolicy.cleanUpPolicy`: of older versions, or mistaken.",
        "The API server removes them before it calls webhooks. `clean-pod-policy` injects the intended value.",
    ),
    "mpirun-lines": Subject(
        "Command lines",
        "121 can be parsed; 70 use variables, `$(...)` or here-documents; 13 do not contain mpirun.",
        "A command line that cannot be parsed causes neither a warning nor a rejection.",
    ),
    "sizes": Subject(
        "Sizes",
        "From one worker to hundreds; elastic jobs; launchers that are workers too.",
        "`worker-count` allows 2 to 100 by default.",
    ),
}
