"""What the folders of tests/corpus show: patterns of real jobs, how many of 204 have them, and their outcomes."""

from typing import Final, NamedTuple


class Subject(NamedTuple):
    """A subject of the page about real jobs."""

    title: str
    real: str
    ours: str


INTRODUCTION: Final = """\
# What real jobs look like

204 MPIJobs of 57 public sources were read: benchmarks of cloud vendors and of NVIDIA, AMD and AWS, Kueue, Horovod,
DeepSpeed, molecular dynamics, Linpack, courses. This page says what they have in common, and what this service does
about it. The jobs below were written for it in the same shapes; none is a copy.

The columns are where a job is submitted: with nothing known of a cluster, and to five namespaces of
[one cluster](../tests/corpus/cluster.yaml) with five kinds of nodes: *open* allows everything, in *queued* Kueue has a
queue, *restricted* enforces that level of [Pod Security](pod-security.md), *quota* has 16 GPUs, 800 CPUs and 4 Ti of
memory, *openshift* is as [OpenShift](openshift.md) makes a namespace. *policy* is *queued* with what an administrator
[may switch on](../tests/corpus/policy.yaml) besides the defaults. The file beside each job, `NAME.outcome`, has the
texts of refusals and warnings, and what is injected.

To see it for a job of your own: `mpijob-webhook check job.yaml --cluster tests/corpus/cluster.yaml -n restricted`."""

SUBJECTS: Final = {
    "user": Subject(
        "The user that mpirun runs as",
        "161 run mpirun as root, with `--allow-run-as-root` or `OMPI_ALLOW_RUN_AS_ROOT`; 22 as user 1000.",
        "Root is fine where the namespace allows it. A restricted namespace starts no container as root: `ssh-paths` "
        "says so before the job is stored. For user 1000 `security-context` injects what that level asks "
        "for, and `scc` what OpenShift needs.",
    ),
    "resources": Subject(
        "What launchers ask for",
        "123 launchers state no resources; a quota for CPU or memory then refuses their pod. Those who state some "
        "write 50m to 100m of CPU and 100Mi to 1Gi.",
        "`launcher-resources` injects as much where a quota or LimitRange needs it. What workers need nobody can "
        "guess: `resource-quota` names what is missing.",
    ),
    "cpu-only": Subject(
        "Jobs without accelerators",
        "36 jobs; 8 of them have more than 4 slots: 36, 64, 96 or 192, a rank for each core.",
        "`slots` allows 1 to 8 by default, and says in the refusal what else there is. For a rank on each core an "
        "administrator sets `slots.maxCpu`, as `manifests/policies/hpc-cpu.yaml` does: the column *policy*.",
    ),
    "accelerators": Subject(
        "Accelerators",
        "`nvidia.com/gpu`, `amd.com/gpu`, `habana.ai/gaudi`, `aws.amazon.com/neuron`, `aws.amazon.com/neuroncore` "
        "(16 for each worker); 20 jobs use claims of dynamic resource allocation.",
        "All of these count as accelerators. `gpu-nodes` and `shared-memory` see to their nodes and their "
        "`/dev/shm`. How many devices a claim gives is in its template, so nothing is rejected for it.",
    ),
    "one-rank-per-node": Subject(
        "One rank for each node",
        "torchrun or deepspeed, started by mpirun once on each node: `-np` is the number of workers, or `-N 1`, "
        "`-npernode 1`, `--map-by ppr:1:node`. One slot beside eight GPUs is right there.",
        "`slots` reads the command line, and says nothing where the ranks fit.",
    ),
    "waiting": Subject(
        "Waiting for the workers",
        "42 write a loop by hand, with ssh, nslookup or `until`; 40 set `backoffLimit`, up to 2,000; 20 use "
        "`launcherCreationPolicy: WaitForWorkersReady`, 10 a probe of sshd's port.",
        "`launcher-wait` does it for every launcher that certainly has a shell, elsewhere by the annotation"
        " `worker-readiness`; `mpi-env` lets ssh try for longer. A launcher that fails more often than `backoffLimit`"
        " is deleted with its log, and the line of injections says so.",
    ),
    "shared-memory": Subject(
        "Shared memory",
        "102 mount a memory volume at `/dev/shm`, of 1Gi to 512Gi or without a size; 34 the node's own by hostPath.",
        "`shared-memory` injects the volume where workers with accelerators mount nothing there. A hostPath is "
        "rejected where Pod Security rejects it.",
    ),
    "rdma-resources": Subject(
        "Resources for RDMA",
        "`vpc.amazonaws.com/efa` (1 to 32), `rdma/ib` (1 to 8), `rdma/hca_shared_devices_a`, "
        "`rdma/rdma_shared_device_a`, `nvidia.com/hostdev` (4, 8), `nvidia.com/rdma-vf` (8, 16), "
        "`nvidia.com/sriov_rdma_vf` (16), `amd.com/nic`, `amd.com/vnic`: often one for each GPU, not one for each "
        "pod.",
        "What the user states stays. A resource that no node has is named by `accelerator-available`.",
    ),
    "rdma-besides": Subject(
        "What goes with RDMA",
        "`IPC_LOCK` in 68, `/dev/infiniband` by hostPath in 29, privileged workers in 43, the host network in 26, "
        "there with sshd on port 2222, declared so that the scheduler keeps workers apart.",
        "None of it is ever injected. It is admitted where the namespace's Pod Security level allows it. "
        "`host-network`, by policy, declares the port where nobody did.",
    ),
    "pod-security": Subject(
        "Pod Security",
        "101 of 204 break the level baseline: by `IPC_LOCK`, hostPath, privileged containers or the host network.",
        "`pod-security` judges both templates by the labels of the namespace, and says what would do instead: a "
        "device resource needs none of these.",
    ),
    "rank-environment": Subject(
        "Variables for the ranks",
        "`-x NAME` on the command line, above all `-x LD_LIBRARY_PATH` in more than 100; `NCCL_SOCKET_IFNAME` in "
        "71, `NCCL_IB_HCA` in 64, `NCCL_DEBUG` in most.",
        "`rank-environment` warns about variables that the ranks would never see.",
    ),
    "open-mpi-5": Subject(
        "Open MPI 5",
        "13 set `PRTE_MCA_*` by hand; 43 use `plm_rsh_args`, and 31 of these have no other form of it, so Open "
        "MPI 5 ignores it.",
        "`mpi-env` injects what Open MPI 5 reads, with the options that the job states.",
    ),
    "placement": Subject(
        "Placement",
        "A nodeSelector in 65, tolerations in 33, required affinity in 12, anti-affinity in 13, spreading in 4.",
        "`gpu-nodes` and `topology` add what is missing; whatever the user wrote about a subject stays alone. "
        "Nodes that do not exist are named by `accelerator-available`, and queues that cannot hold the job by "
        "`ever-fits` and `volcano-queue`.",
    ),
    "end-of-job": Subject(
        "The end of the job",
        "194 set `cleanPodPolicy` to Running or All; one sets `activeDeadlineSeconds`; two are meant to run for ever.",
        "`clean-pod-policy` and `job-timeout` inject what is missing. A service that runs for ever annotates "
        "`training.openshift.io/timeout: 3650d`, which takes the right to exempt jobs from the rule `job-timeout`.",
    ),
    "istio": Subject(
        "Istio",
        "4 refuse the sidecar by hand.",
        "`istio` does it for all.",
    ),
    "api-access": Subject(
        "Access to the Kubernetes API",
        "One launcher calls kubectl. It names its service account.",
        "`api-access` leaves pods with a service account of their own alone, and takes the token from all others.",
    ),
    "operator-volumes": Subject(
        "The operator's own volumes",
        "3 mount the volumes `ssh-auth` and `mpi-job-config` of the operator in init containers.",
        "The operator adds these volumes later, so they are not missing: such a job is admitted.",
    ),
    "unknown-fields": Subject(
        "Fields that do not exist",
        "`spec.cleanPodPolicy`, `runPolicy.schedulerName`, `runPolicy.cleanUpPolicy`: of older versions, or mistaken.",
        "The API server takes them out before any webhook is asked. `clean-pod-policy` injects what was meant.",
    ),
    "mpirun-lines": Subject(
        "Command lines",
        "121 can be read; 70 use variables, `$(...)` or here-documents; 13 have no mpirun at all.",
        "What cannot be read leads to no warning and no refusal.",
    ),
    "sizes": Subject(
        "Sizes",
        "From one worker to hundreds; elastic jobs; launchers that are workers too.",
        "`worker-count` allows 2 to 100 by default.",
    ),
}
