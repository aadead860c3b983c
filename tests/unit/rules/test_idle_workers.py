"""The rule `idle-workers` reports jobs that seem to run although their workers do nothing."""

from typing import Any

import pytest

from tests.support.jobs import REMOVE
from tests.support.rule_checks import as_texts, fits_a_warning, violations
from webhook.admission.messages import Finding

ID = "idle-workers"
LAUNCHER = "Launcher.template.spec.containers.0"
WORKER = "Worker.template.spec.containers.0"
USE = "--hostfile /etc/mpi/hostfile"
INSTEAD = f"Use {USE} instead."


def script(text: str) -> list[str]:
    return ["bash", "-c", text]


def launcher(command: Any, **more: Any) -> dict[str, Any]:
    return {f"{LAUNCHER}.command": command.split() if isinstance(command, str) else command} | {
        f"{LAUNCHER}.{field}": value for field, value in more.items()
    }


IDLE = "workers stay idle unless python calls mpirun"
TORCHRUN = "torchrun runs on the launcher alone"


@pytest.mark.parametrize(
    ("command", "message", "fix"),
    [
        ("horovodrun -np 4 python t.py", "horovodrun runs on the launcher alone", f"Add {USE}."),
        (script("horovodrun -np $NP python t.py"), "horovodrun runs on the launcher alone", f"Add {USE}."),
        (
            "horovodrun -np 4 -H $(OMPI_MCA_orte_default_hostfile) python t.py",
            "-H takes hosts, not a file",
            f"Write {USE}.",
        ),
        (
            script("horovodrun -np 4 -H $(OMPI_MCA_orte_default_hostfile) python t.py"),
            "-H takes hosts, not a file",
            f"Write {USE}.",
        ),
        ("deepspeed train.py --deepspeed", "deepspeed runs on the launcher alone", f"Add {USE}."),
        (script("cd /w && deepspeed --num_gpus 8 t.py"), "deepspeed runs on the launcher alone", f"Add {USE}."),
        ("torchrun --nproc_per_node=8 t.py", TORCHRUN, None),
        ("accelerate launch t.py", "accelerate runs on the launcher alone", None),
        ("python -m accelerate.commands.launch t.py", IDLE, None),
        ("python -m torch.distributed.launch --nproc_per_node 8 t.py", IDLE, None),
        ("python -m deepspeed.launcher.runner t.py", "deepspeed runs on the launcher alone", f"Add {USE}."),
        (script("export HF_HOME=/hf\ntorchrun t.py\n"), TORCHRUN, None),
        (
            script("accelerate launch --num_machines 2 --num_processes 16 t.py"),
            "accelerate runs on the launcher alone",
            None,
        ),
        ("python t.py --compile --data-host db", IDLE, None),
        ("python prerun.py", IDLE, None),
        ("python /w/train.py", IDLE, None),
        ("conda run --no-capture-output -n env python t.py", IDLE, None),
        (script("source /opt/conda/etc/profile.d/conda.sh; conda activate a; torchrun t.py"), TORCHRUN, None),
        (script(". venv/bin/activate && python t.py"), IDLE, None),
        ("python3 bench.py", "workers stay idle unless python3 calls mpirun", None),
        (script("python prepare.py; torchrun t.py"), TORCHRUN, None),
        (script("pip install torch; python t.py"), IDLE, None),
        (script("git clone https://example.com/a; conda run -n a torchrun a/t.py"), TORCHRUN, None),
        (script("date; python3 -u t.py 2>&1 | tee log"), "workers stay idle unless python3 calls mpirun", None),
        ("mpirun --hostfile /job/hosts -np 4 t", "nothing in the job writes /job/hosts", None),
        ("deepspeed --hostfile=/job/hostfile t.py", "nothing in the job writes /job/hostfile", None),
        (script("sleep 5; deepspeed -H /job/hostfile t.py"), "nothing in the job writes /job/hostfile", None),
        (script("sleep 5; mpirun -hostfile hosts -np 4 t"), "nothing in the job writes hosts", None),
        ("mpirun -mca orte_default_hostfile /tmp/hosts -np 4 t", "nothing in the job writes /tmp/hosts", None),
        ("mpirun --host worker-0,worker-1 -np 4 t", "-host: no host worker-0", INSTEAD),
        ("mpirun -H a-worker-0.a.b.svc,a-worker-1:2 -np 4 t", "-H: no host a-worker-1", INSTEAD),
        ("horovodrun -H a-worker-0.a-worker:4 -np 4 t", "-H: no host ...er-0.a-worker", INSTEAD),
        ("mpirun -H train-worker-10,train-worker-11 -np 4 t", "-H: no host train-worker-10", INSTEAD),
        ("horovodrun -H localhost:4 -np 4 t", "-H: all ranks on the launcher", INSTEAD),
        ("mpirun -H node01:4,node02:4 -np 4 t", "-H: no host node01", INSTEAD),
        (f"horovodrun -np 4 -H a-0.a:2 {USE} python t.py", "has both hosts and a hostfile", "Remove -H a-0.a:2."),
        ("mpirun -H localhost:4 -np 4 t", "-H localhost:4 runs all ranks on the launcher", "Remove it."),
        (
            "mpirun -np 4 -x MASTER_ADDR=localhost python t.py",
            "no other worker finds localhost",
            "Write train-worker-0.train.",
        ),
        (
            script("mpirun -np 2 torchrun --nnodes 2 --rdzv-endpoint=pi-worker-0:29500 t.py"),
            "no other worker finds pi-worker-0",
            "Write train-worker-0.train.",
        ),
        (
            "mpirun -np 2 torchrun --nnodes=2 --master_addr=train-0 t.py",
            "no other worker finds train-0",
            "Write train-worker-0.train.",
        ),
        (
            script("mpirun -np 2 torchrun --nnodes 2 --rdzv_endpoint=$(hostname -f):29500 t.py"),
            "$(hostname -f) is not the host of rank 0",
            "Write train-worker-0.train.",
        ),
        (
            script('export MASTER_ADDR="${HOSTNAME}"; mpirun -np 2 -x MASTER_ADDR python t.py'),
            "${HOSTNAME} is not the host of rank 0",
            "Write train-worker-0.train.",
        ),
    ],
)
def test_launcher_that_starts_no_ranks_on_workers_is_reported(command: Any, message: str, fix: str | None) -> None:
    (violation,) = result = violations(ID, launcher(command))
    assert as_texts(result) == [f"spec.mpiReplicaSpecs[Launcher]: {message}"]
    assert fits_a_warning(ID, violation)
    fixes = {"nothing": "Use /etc/mpi/hostfile."}
    assert violation.fix == (fix or fixes.get(message.split(maxsplit=1)[0], "Start it with mpirun."))


@pytest.mark.parametrize(
    "changes",
    [
        launcher(f"horovodrun -np 4 {USE} python t.py"),
        launcher("horovodrun -np 4 -H w-0:2,w-1:2 python t.py"),
        launcher("horovodrun -np 2 --min-np 1 --host-discovery-script /etc/mpi/discover_hosts.sh python t.py"),
        launcher(script("horovodrun -np 4 $HOSTS python t.py")),
        launcher("deepspeed --hostfile /etc/mpi/hostfile t.py"),
        launcher(script("mkdir /job; cp /etc/mpi/hostfile /job; deepspeed t.py")),
        launcher(script("cp /etc/mpi/hostfile /job/h; deepspeed --hostfile /job/h t.py")),
        launcher("deepspeed --hostfile=/job/h t.py", volumeMounts=[{"name": "hosts", "mountPath": "/job"}]),
        launcher("deepspeed t.py", volumeMounts=[{"name": "hosts", "mountPath": "/job"}]),
        launcher("mpirun -np 2 torchrun t.py"),
        launcher("mpirun -np 2 torchrun --rdzv_backend etcd-v2 --rdzv_endpoint etcd-0:2379 t.py"),
        launcher(script("MASTER_ADDR=localhost; export MASTER_ADDR=train-worker-0; mpirun -np 2 -x MASTER_ADDR t")),
        launcher("mpirun -np 2 -x MASTER_ADDR=ip-10-0-0-12 python t.py"),
        launcher("mpirun -np 2 -x MASTER_ADDR=pi-worker-0.pi python t.py"),
        launcher(
            "mpirun -np 2 -x MASTER_ADDR=train-worker-0 python t.py"
        ),  # workers have a search domain for these names
        launcher(
            script("export MASTER_ADDR=$(head -1 /etc/mpi/hostfile); mpirun -np 2 -x MASTER_ADDR python t.py"),
            env=[{"name": "MASTER_ADDR", "value": "localhost"}],
        ),
        launcher("mpirun -np 2 -x MASTER_ADDR=localhost python t.py") | {"Worker.replicas": 1},
        launcher(script("mpirun -np 2 -x MASTER_ADDR=$(hostname) python t.py")) | {"spec.runLauncherAsWorker": True},
        launcher(script("export MASTER_ADDR=$(hostname); MASTER_ADDR=$(cat a); mpirun -np 2 -x MASTER_ADDR t")),
        launcher(script("python prepare.py; mpirun -np 2 python t.py")),
        launcher("accelerate launch --num_machines 2 --machine_rank 0 t.py"),
        launcher("python launch.py"),
        launcher("python run.py"),
        launcher("python3 /opt/bench/run_osu.py --np 4"),
        launcher("python bench.py --nprocs=4"),
        launcher("python -m deepspeed.launcher.runner --hostfile /etc/mpi/hostfile t.py"),
        launcher("python -m deepspeed.launcher.runner t.py", volumeMounts=[{"name": "hosts", "mountPath": "/job"}]),
        launcher("python solver.py", env=[{"name": "WORKERS_FILE", "value": "/etc/mpi/hostfile"}]),
        launcher("python solver.py", env=[{"name": "SSH_PORT", "value": "2222"}]),
        launcher("python t.py --backend openmpi"),
        launcher("python t.py --host w-0"),
        launcher("python -m mpi4py.futures t.py"),
        launcher("python drive.py --hosts /etc/mpi/hostfile"),
        launcher(script("start-cluster; python t.py")),
        launcher(script("source cluster.sh; python t.py")),
        launcher("/opt/run.sh"),
        launcher("sleep infinity"),
        launcher(None),
        launcher("mpirun --hostfile /etc/mpi/hostfile -np 4 t"),
        launcher("mpirun --hostfile /data/hosts -np 4 t", volumeMounts=[{"name": "data", "mountPath": "/data"}]),
        launcher(script("cut -d. -f1 /etc/mpi/hostfile > /tmp/h; mpirun --hostfile /tmp/h -np 4 t")),
        launcher(script("make-hosts; mpirun --hostfile /tmp/h -np 4 t")),
        launcher("mpirun --hostfile $(OMPI_MCA_orte_default_hostfile) -np 4 t"),
        launcher("mpirun -H w-0,w-1 -np 4 t"),
        launcher("mpirun -H a-worker-0.a,a-worker-1.a.default.svc:2 -np 4 t"),
        launcher(script("mpirun -H localhost -np 1 prepare; mpirun -np 4 t")),
        launcher("torchrun t.py") | {"Worker": REMOVE},
        launcher("torchrun --nnodes 2 t.py") | {f"{WORKER}.command": ["torchrun", "t.py"]},
    ],
)
def test_launcher_that_may_start_ranks_on_workers_is_accepted(changes: dict[str, Any]) -> None:
    assert violations(ID, changes) == []


def test_python_launcher_is_reported_despite_a_variable_that_only_mpirun_reads() -> None:
    env = [{"name": "PRTE_MCA_prte_default_hostfile", "value": "/etc/mpi/hostfile"}]
    assert len(violations(ID, launcher("python t.py", env=env))) == 1


@pytest.mark.parametrize(
    ("worker", "program"),
    [
        (["sleep", "infinity"], "sleep"),
        (["/bin/bash"], "bash"),
        (["jupyter", "lab"], "jupyter"),
        (["python", "train.py"], "python"),
        (script("nvidia-smi; python3 t.py; sleep 365d"), "python3"),
        (script("pip install -q -r requirements.txt && sleep infinity"), "sleep"),
        (script("pip install -q -r requirements.txt\nsleep infinity\n"), "sleep"),
        (script("apt-get update; pip3 install torch; python3 t.py"), "python3"),
        (["conda", "run", "-n", "env", "python", "t.py"], "python"),
        (["tail", "-f", "/dev/null"], "tail"),
        (["mpirun", "-np", "2", "t"], "mpirun"),
        ([""], '""'),
        (script("mkdir -p /work; sleep infinity"), "sleep"),
        (script("echo ready"), "bash"),
        (script("ssh-keygen -A && tail -f /dev/null"), "tail"),
    ],
)
def test_worker_without_sshd_is_reported(worker: list[str], program: str) -> None:
    (violation,) = result = violations(ID, {f"{WORKER}.command": worker})
    assert as_texts(result) == [
        f"spec.mpiReplicaSpecs[Worker].template.spec.containers[0].command: runs {program}, no sshd"
    ]
    assert violation.fix == "Remove it, or run /usr/sbin/sshd -De."
    assert violation.fix in Finding(ID, violation).warning


def test_worker_with_its_program_in_args_is_reported() -> None:
    (violation,) = violations(ID, {f"{WORKER}.args": ["python", "train.py"]})
    assert violation.path == "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].args"
    assert violation.message == "runs python, no sshd"


@pytest.mark.parametrize(
    ("command", "message", "fix"),
    [
        (["service", "ssh", "start"], "ends once it has started sshd", "Write [/usr/sbin/sshd, -De]."),
        (script("service ssh start\n"), "ends once it has started sshd", "Add && sleep infinity."),
        (["/etc/init.d/ssh", "start"], "ends once it has started sshd", "Write [/usr/sbin/sshd, -De]."),
        (script("/opt/prepare; /etc/init.d/ssh start"), "ends once it has started sshd", "Add && sleep infinity."),
        (
            script("apt-get update && apt-get install -y openssh-server && service ssh start"),
            "ends once it has started sshd",
            "Add && sleep infinity.",
        ),
        (
            script("apt-get update && apt-get install -y openssh-server"),
            "ends without sshd",
            "Add && mkdir -p /run/sshd; /usr/sbin/sshd -De.",
        ),
        (
            script("yum install -y openssh-server && systemctl start sshd; sleep infinity"),
            "a container has no systemctl",
            "Run /usr/sbin/sshd -De instead.",
        ),
    ],
)
def test_worker_that_does_not_keep_sshd_running_is_reported(command: list[str], message: str, fix: str) -> None:
    (violation,) = result = violations(ID, {f"{WORKER}.command": command})
    assert as_texts(result) == [f"spec.mpiReplicaSpecs[Worker].template.spec.containers[0].command: {message}"]
    assert violation.fix == fix
    assert violation.fix in Finding(ID, violation).warning


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        (
            launcher("horovodrun -np 4 python t.py") | {f"{WORKER}.command": ["sleep", "infinity"]},
            ["runs sleep, no sshd", "horovodrun runs on the launcher alone"],
        ),
        (
            launcher("mpirun --host worker-0,worker-1 -np 4 t") | {f"{WORKER}.command": ["service", "ssh", "start"]},
            ["ends once it has started sshd", "-host: no host worker-0"],
        ),
        (
            launcher("python t.py") | {f"{WORKER}.command": ["sleep", "infinity"]},
            ["runs sleep, no sshd", "workers stay idle unless python calls mpirun"],
        ),
    ],
)
def test_faults_of_worker_and_launcher_are_reported_together(changes: dict[str, Any], messages: list[str]) -> None:
    assert [violation.message for violation in violations(ID, changes)] == messages


@pytest.mark.parametrize(
    "changes",
    [
        {f"{WORKER}.command": ["/usr/sbin/sshd", "-De"]},
        {f"{WORKER}.command": script("service ssh start; sleep infinity")},
        {f"{WORKER}.command": script("/etc/init.d/ssh start; sleep infinity")},
        {f"{WORKER}.command": ["/entrypoint.sh"]},
        {f"{WORKER}.command": script("apt-get install -y openssh-server; sleep infinity")},
        {f"{WORKER}.command": script("pip install -q supervisor; supervisord -n")},
        {f"{WORKER}.command": ["/sbin/init"]},
        {f"{WORKER}.command": script("/opt/start; sleep infinity")},
        {f"{WORKER}.args": ["sleep", "infinity"]},
        {
            f"{WORKER}.command": ["sleep", "infinity"],
            f"{WORKER}.lifecycle": {"postStart": {"exec": {"command": ["/opt/start"]}}},
        },
        {f"{WORKER}.command": ["sleep", "infinity"]} | launcher("mpirun -mca plm_rsh_agent /opt/kubexec -np 4 t"),
        {f"{WORKER}.command": ["sleep", "infinity"]} | launcher("sleep infinity"),
    ],
)
def test_worker_that_may_run_sshd_is_accepted(changes: dict[str, Any]) -> None:
    assert violations(ID, changes) == []


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
@pytest.mark.parametrize(
    ("pod", "reported"),
    [
        ({"dnsPolicy": "Default"}, True),
        ({"dnsPolicy": "ClusterFirst"}, False),
        ({"dnsPolicy": "Default", "hostNetwork": True}, False),
        ({"dnsPolicy": "Default", "dnsConfig": {"nameservers": ["10.96.0.10"]}}, False),
    ],
)
def test_pod_that_uses_the_dns_of_its_node_is_reported(role: str, pod: dict[str, Any], reported: bool) -> None:
    result = violations(ID, {f"{role}.template.spec.{field}": value for field, value in pod.items()})
    path = f"spec.mpiReplicaSpecs[{role}].template.spec.dnsPolicy"
    assert [(each.path, each.fix) for each in result] == ([(path, "Remove it.")] if reported else [])
    assert all(fits_a_warning(ID, each) for each in result)
