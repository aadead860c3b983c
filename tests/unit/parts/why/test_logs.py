"""The causes that are found in the logs of launchers and of sshd.

The files in LOGS were recorded from real programs. The texts in TABLE are from issue threads.
"""

import pytest

from tests.support.stuck.real_logs import ALL, LOGS, SCENARIOS
from webhook.parts.why.causes import logs


def test_each_message_has_a_different_name() -> None:
    names = [message.id for message in logs.messages()]
    assert len(names) == len({*names})


def box(code: int, ended: str) -> str:
    """MPICH's report of a rank that ended."""
    return (
        f"\n{'=' * 83}\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 31 RUNNING AT w-0\n"
        f"=   EXIT CODE: {code}\n=   CLEANING UP REMAINING PROCESSES\n=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n"
        f"{'=' * 83}\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: {ended}\n"
        "This typically refers to a problem with your application.\nPlease see the FAQ page for debugging suggestions\n"
    )


KILLED = "mpirun noticed that process rank 0 with PID 31 on node w-0 exited on signal 9 (Killed).\n"
ABORTED = KILLED.replace("9 (Killed)", "6 (Aborted)")
TORCHRUN = "E1126 10:00:00.0 1 api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 30) of binary: /usr/bin/python3\n"
LOCAL_ONLY = (
    "[WARNING] [runner.py:202:fetch_hostfile] Unable to find hostfile, will proceed with training with local resources "
    "only.\n"
)
# Messages of ranks that lost the connection to a different rank.
PEER_OF_NCCL = (
    "w-1:31:99 [0] misc/socket.cc:47 NCCL WARN socketProgress: Connection closed by remote peer w-0<41234>\n"
    "w-1: Test NCCL failure common.cu:1005 'remote process exited or there was a network error'\n"
)
PEER_OF_PYTORCH = (
    "w-1:31:99 [0] NCCL WARN socketStartConnect: Connect to 10.0.0.7<4123> failed : Connection refused\n"
    "[rank1]: Traceback (most recent call last):\n[rank1]:   x\n"
    "[rank1]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error\n"
    "[rank1]: ncclSystemError: System call or external library call failed or device error.\n"
)
PEER_OF_GLOO = (
    "[1,1]<stderr>:terminate called after throwing an instance of 'gloo::IoException'\n[1,1]<stderr>:  what():  "
    "[gloo/transport/tcp/pair.cc:589] Read error [10.0.0.7]:41: Connection reset by peer\n"
)
PEERS = {
    "NCCL": PEER_OF_NCCL,
    "PyTorch": PEER_OF_PYTORCH,
    "PyTorch's store": "[rank1]: Traceback (most recent call last):\n[rank1]:   x\n[rank1]: torch.distributed."
    "DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed.\n",
    "gloo": PEER_OF_GLOO,
    "a C++ exception": "terminate called after throwing an instance of 'E'\n  what():  Connection closed\n",
    "Open MPI": "[w-1:57] *** An error occurred in MPI_Allreduce\n[w-1:57] *** reported by process [1,1]\n"
    "[w-1:57] *** on communicator MPI_COMM_WORLD\n[w-1:57] *** MPI_ERR_PROC_FAILED: Process Failure\n",
    "MPICH": "Abort(1) on node 1: Fatal error in internal_Allreduce: Unknown error class, error stack:\n"
    "internal_Allreduce(61)....: MPI_Allreduce(count=1) failed\nMPIDI_progress(1): Communication error with rank 0\n",
}
SURVIVED = {
    "the GPU's memory": "CUDA out of memory, retrying with batch 8\nstep 1\n",
    "ssh": "ssh: Could not resolve hostname w-0: Name or service not known\nepoch 1\n",
    "ssh in git": "Host key verification failed.\nfatal: Could not read from remote repository.\n",
    "the GPU's memory without output": "CUDA out of memory, halving the batch\nepoch 1\n",
    "NCCL, which connects after retries": (
        "w-0:3:3 [0] NCCL WARN socketStartConnect: Connect to 10.0.0.2<4000> failed : Connection refused, retrying\n"
        "w-0:3:3 NCCL INFO Init COMPLETE\n"
        "epoch 1\n"
    ),
    "output of ulimit -a": "max locked memory           (kbytes, -l) unlimited\nepoch 1\n",
    "a tool without a library": (
        "nvidia-smi: error while loading shared libraries: libnvidia-ml.so.1: cannot open\nepoch 1\n"
    ),
}
"""Messages after which the program continued. TABLE appends the report of a killed rank to each of them."""
SEVERAL: dict[tuple[str, str], dict[str, str]] = {
    ("ssh-closed", "sshd ended the connection before the login"): {
        "ssh, connection reset": (
            "kex_exchange_identification: read: Connection reset by peer\nConnection reset by 10.1.2.3 port 22\n"
        ),
        "OpenSSH 7, connection reset": "ssh_exchange_identification: read: Connection reset by peer\n",
    },
    ("local-only", "deepspeed found no hostfile, so it starts ranks only in the launcher"): {
        "DeepSpeed without a hostfile": LOCAL_ONLY,
        "DeepSpeed without a hostfile, and without GPUs in the launcher": (
            f"{LOCAL_ONLY}Traceback (most recent call last):\n  x\n"
            "RuntimeError: Unable to proceed, no GPU resources available\n"
        ),
        "DeepSpeed without a hostfile, then a program that finds no GPU": (
            f"{LOCAL_ONLY}Traceback (most recent call last):\n  x\n"
            "RuntimeError: Found no NVIDIA driver on your system.\n"
        ),
    },
    ("gpu-memory", "the GPU's memory is too small (CUDA out of memory)"): {
        "the GPU's memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        "the GPU's memory, in C++": (
            "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: out of memory\n"
        ),
        "the GPU's memory of a rank, after the message of a different rank": (
            f"{PEER_OF_NCCL}[rank0]: Traceback (most recent call last):\n[rank0]:   x\n"
            "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried\n"
        ),
    },
    ("shared-memory", "/dev/shm is too small"): {
        "NCCL, shared memory": (
            "NCCL WARN Call to posix_fallocate failed : No space left on device\n"
            "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)\n"
        ),
        "PyTorch, no space for shared memory": (
            "Traceback (most recent call last):\n  x\n"
            "RuntimeError: unable to write to file </torch_123_3412>: No space left on device (28)\n"
        ),
        "PyTorch, shared memory": (
            "ERROR: Unexpected bus error encountered in worker. Bus error (core dumped)\n"
            "Traceback (most recent call last):\n  x\nRuntimeError: DataLoader worker (pid(s) 3) exited unexpectedly\n"
        ),
        "MPICH, a bus error with a core": box(135, "Terminated (signal 15)"),
    },
    ("nccl-network", "NCCL cannot connect the ranks"): {
        "NCCL, several interfaces": (
            "w-0:115:301 [0] misc/socket.cc:456 NCCL WARN socketStartConnect: Connect to 172.17.0.1<45683> failed : "
            "Connection refused\n"
        ),
        "NCCL, out of retries": (
            "w-0:115:301 [0] NCCL INFO Call to connect returned Connection refused, retrying\n"
            "w-0:115:301 [0] misc/socket.cc:452 NCCL WARN socketStartConnect: exceeded retries (20000)\n"
        ),
        "NCCL, a refused connection and PyTorch's exception": PEER_OF_PYTORCH,
        "NCCL, no interface": (
            "w-0:115:115 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth1\n"
            "w-0:115:115 [0] bootstrap.cc:84 NCCL WARN "
            "Bootstrap : no socket interface found\n"
        ),
    },
    ("program-aborted", "the program ended itself: train: solver.cpp:12: int main(): Assertion `n > 0' failed."): {
        "an assertion, and its signal": f"train: solver.cpp:12: int main(): Assertion `n > 0' failed.\n{ABORTED}",
        "the program's message after mpirun's report": (
            f"{ABORTED}train: solver.cpp:12: int main(): Assertion `n > 0' failed.\n"
        ),
    },
    ("rank-killed", "a rank was killed on a worker (signal 9), most likely for memory"): {
        "torchrun, a killed rank": (f"{TORCHRUN}Traceback (most recent call last):\n  x\nerrors.ChildFailedError: \n"),
        "bash, a killed rank": (
            "run.sh: line 2:    31 Killed\nmpirun detected that one or more processes exited with non-zero status:\n\n"
            "  Process name: [[1,1],1]\n  Exit code:    137\n"
        ),
        "DeepSpeed, a killed rank": (
            "[ERROR] [launch.py:322:sigkill_handler] ['python3', 't.py'] exits with return code = -9\n"
        ),
        "Horovod, a killed rank": "Process 1 exit with status code 137.\n",
    },
    ("no-name", "the launcher found no address for w-0"): {
        "horovodrun, which tests ssh": (
            "ssh: Could not resolve hostname w-0: Name or service not known\nTraceback (most recent call last):\n  x\n"
            "RuntimeError: SSH was not successful on:\nw-0\n"
        ),
        "ssh, then an exception of horovodrun": (
            "ssh: Could not resolve hostname w-0: Name or service not known\nTraceback (most recent call last):\n  x\n"
            "RuntimeError: Horovod detected that one or more processes exited with non-zero status\n"
        ),
        "ssh, then a script's message that mpirun failed": (
            "ssh: Could not resolve hostname w-0: no name\n"
            "Warning: Permanently added 'w-1' (ED25519) to the list of known "
            f"hosts.\n{'-' * 74}\nORTE was unable to reliably start one or more "
            f"daemons.\n{'-' * 74}\ntraining failed\n"
        ),
    },
    ("rank-crashed", "a rank crashed on w-0: Segmentation fault (signal 11)"): {
        "MPICH, a crash, and the named rank was killed by mpirun": box(9, "Segmentation fault (signal 11)"),
        "MPICH, a crash with a core dump": box(139, "Segmentation fault (signal 11)"),
    },
}
"""Several logs for each cause. A cause has an id and a text."""
TABLE = {
    **{case: (log, *cause) for cause, logs_of_cause in SEVERAL.items() for case, log in logs_of_cause.items()},
    **{
        f"{case}, survived, then a killed rank": (
            f"{output}{KILLED}",
            "rank-killed",
            "a rank was killed on w-0 (signal 9), most likely for memory",
        )
        for case, output in SURVIVED.items()
    },
    "Open MPI 5, a program without execute permission": (
        "prterun was unable to launch the specified application as it lacked permissions to execute an executable:\n\n"
        "   Executable: /data/run.sh\n   Node: vm\n",
        "no-program",
        "the program /data/run.sh does not exist on a worker, or cannot be executed",
    ),
    "rejected key, without a host name": (
        "Permission denied (publickey).\n",
        "wrong-key",
        "the key of the launcher is not accepted: Permission denied (publickey)",
    ),
    "no route": (
        "ssh: connect to host train-worker-0 port 2222: Connection timed out\n",
        "no-route",
        "train-worker-0 cannot be reached on port 2222: Connection timed out",
    ),
    "sshd, PAM": (
        "fatal: Access denied for user root by PAM account configuration [preauth]\n",
        "sshd-pam",
        "PAM in the worker's image refuses the login (root)",
    ),
    "a rank's library": (
        "python3: error while loading shared libraries: libcudart.so.12: cannot open shared object file\n",
        "no-library",
        "python3 lacks the library libcudart.so.12: a login by ssh sets no LD_LIBRARY_PATH on workers",
    ),
    "Open MPI 4, binding": (
        "A request was made to bind to that would result in binding more\nprocesses than cpus on a resource:\n\n"
        "   Bind to:     CORE\n   Node:        w-0\n   #processes:  2\n   #cpus:       1\n",
        "binding",
        "there are more ranks than CPUs to bind them to",
    ),
    "Open MPI, ranks that cannot connect": (
        "WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\nshould not happen.\n",
        "no-tcp",
        "the pods cannot connect to each other over TCP beyond ssh",
    ),
    "NCCL's watchdog, and its signal": (
        "[rank0]:[E1112 10:00:01 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: "
        f"WorkNCCL()\n{ABORTED}",
        "nccl-timeout",
        "a rank waited too long for the others in a collective operation, and NCCL's watchdog ended it",
    ),
    "a C++ exception without a text": (
        "terminate called after throwing an instance of 'std::bad_alloc'\nnext\n",
        "program-aborted",
        "the program ended itself: 'std::bad_alloc'",
    ),
    "glibc's checks": (
        "double free or corruption (!prev)\n",
        "program-aborted",
        "the program ended itself: double free or corruption (!prev)",
    ),
    "a C++ exception after a Python exception that was caught": (
        "Traceback (most recent call last):\n  x\nKeyError: 'a'\nno cache\n"
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no such model\n",
        "program-aborted",
        "the program ended itself: no such model; before that Python raised: KeyError: 'a'",
    ),
    "SIGTERM after a Python exception that was caught": (
        "Traceback (most recent call last):\n  x\nKeyError: 'a'\nepoch 1\n"
        "mpirun noticed that process rank 2 with PID 31 on node w-0 exited on signal 15 (Terminated).\n",
        "rank-terminated",
        "a rank on w-0 got SIGTERM from outside (signal 15): its pod was deleted, evicted or preempted, or its time "
        "was over; before that Python raised: KeyError: 'a'",
    ),
    "torchrun, a crashed rank": (
        "[0]:\n  time      : 2026\n  host      : w-1\n  rank      : 3 (local_rank: 3)\n  exitcode  : -11 (pid: 3)\n"
        "  error_file: <N/A>\n  traceback : Signal 11 (SIGSEGV) received by PID 3\n",
        "rank-crashed",
        "a rank crashed on w-1: Signal 11 (SIGSEGV)",
    ),
    "UCX, which cannot lock memory": (
        "ib_md.c:379 UCX ERROR ibv_reg_mr(address=0x7f) failed: Cannot allocate memory : Please set max locked memory "
        "(ulimit -l) to 'unlimited'\nmpirun noticed that process rank 0 with PID 31 on node w-0 exited on signal 11 "
        "(Segmentation fault).\n",
        "locked-memory",
        "the RDMA adapter cannot lock memory (ulimit -l)",
    ),
    "NCCL's tests": (
        "w-0:1:3 [0] init.cc:1786 NCCL WARN Cuda failure 'CUDA driver version is insufficient'\n"
        "all_reduce_perf: Test NCCL failure common.cu:1012 'unhandled cuda error'\n .. w-0 pid 1: Test failure\n",
        "nccl-failed",
        "NCCL failed: Cuda failure 'CUDA driver version is insufficient'",
    ),
    "NCCL, the last warning before the failure": (
        "w-0:1:1 [0] ibvwrap.cc:66 NCCL WARN Cuda failure 3 'initialization error'\n"
        "w-0:1:1 [0] ibvwrap.cc:66 NCCL WARN Failed to open libibverbs.so[.1]\n"
        "w-0:1:1 [0] enqueue.cc:1 NCCL WARN Cuda failure 'out of memory'\n"
        "w-1:1:1 [0] socket.cc:47 NCCL WARN socketProgress: Connection closed by remote peer w-0<41234>\n"
        "w-0:1:1 [0] ibvwrap.cc:66 NCCL WARN Failed to open libibverbs.so[.1]\n"
        "w-0: Test NCCL failure x 'unhandled cuda error'\n",
        "nccl-failed",
        "NCCL failed: Cuda failure 'out of memory'",
    ),
    "NCCL, a lost connection and no other message": (
        PEER_OF_NCCL,
        "nccl-failed",
        "NCCL failed: socketProgress: Connection closed by remote peer w-0<41234>",
    ),
    "gloo, a lost connection, and the signal with which that rank ended": (
        f"{PEER_OF_GLOO}{ABORTED}",
        "program-aborted",
        "the program ended itself: [gloo/transport/tcp/pair.cc:589] Read error [10.0.0.7]:41: Connection reset by peer",
    ),
    "an exception of the program about a lost connection, and its signal": (
        f"terminate called after throwing an instance of 'E'\n  what():  database: Connection closed\n{ABORTED}",
        "program-aborted",
        "the program ended itself: database: Connection closed",
    ),
    "sshd, a port that is in use": (
        "error: Bind to port 22 on 0.0.0.0 failed: Address already in use.\nfatal: Cannot bind any address.\n",
        "sshd-port",
        "port 22 of sshd is in use",
    ),
    "Open MPI 4, a daemon that fails": (
        "An ORTE daemon has unexpectedly failed after launch and before\ncommunicating back to mpirun.\n",
        "no-daemon",
        "mpirun could not start its daemon on a worker",
    ),
    "mpirun's own library": (
        "mpirun: error while loading shared libraries: libopen-rte.so.40: cannot open shared object file: No such file "
        "or directory\n",
        "no-launcher-library",
        "mpirun in the launcher lacks the library libopen-rte.so.40",
    ),
    "two messages, of which the first is lower in the table of messages": (
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no mesh\n"
        "train: Unexpected bus error encountered in worker.\n",
        "program-aborted",
        "the program ended itself: no mesh",
    ),
    "Horovod, elastic": (
        "Traceback (most recent call last):\n  x\nRuntimeError: Failed to execute discovery script: "
        "/etc/mpi/discover_hosts.sh. Exit code: 127\n",
        "no-discovery",
        "horovodrun lists the workers by /etc/mpi/discover_hosts.sh, which ended with exit code 127",
    ),
    "MPICH, an abort, and the named rank was killed by mpirun": (
        box(9, "Terminated (signal 15)"),
        "rank-crashed",
        "a rank crashed on w-0: Terminated (signal 15)",
    ),
    "MPICH, an abort, and other ranks were killed by mpirun": (
        box(6, "Terminated (signal 15)"),
        "rank-crashed",
        "a rank crashed on w-0: EXIT CODE: 6",
    ),
    "MPI without a network": (
        "Abort(673858447) on node 0 (rank 0 in comm 0): Fatal error in internal_Init: Other MPI error, error stack:\n"
        "internal_Init(43633).........: MPI_Init(argc=(nil), argv=(nil)) failed\n"
        "find_provider(3064)..........: OFI fi_getinfo() failed (ofi_init.c:3064:find_provider:No data available)\n",
        "no-fabric",
        "MPI finds no network device for its provider (OFI fi_getinfo() failed)",
    ),
    "pdsh, a worker without an address": (
        "w-1: ssh: Could not resolve hostname w-1: Name or service not known\n"
        "pdsh@train-launcher: w-1: ssh exited with exit code 255\n",
        "no-name",
        "the launcher found no address for w-1",
    ),
    "pdsh, a rejected key": (
        "w-1: root@w-1: Permission denied (publickey).\npdsh@train-launcher: w-1: ssh exited with exit code 255\n",
        "wrong-key",
        "the key of the launcher is not accepted: root@w-1: Permission denied (publickey)",
    ),
    "a Python exception that was caught, then a killed rank": (
        f"Traceback (most recent call last):\n  x\nKeyError: 'a'\nepoch 1\n{KILLED}",
        "rank-killed",
        "a rank was killed on w-0 (signal 9), most likely for memory; before that Python raised: KeyError: 'a'",
    ),
    "a lost daemon without a host name": (
        "ORTE has lost communication with a remote daemon.\n",
        "worker-lost",
        "the connection to a worker broke while the ranks ran: that worker went away, or its MPI daemon crashed",
    ),
}
RECORDED = [(name, release) for name, scenario in SCENARIOS.items() for release in scenario.releases]


@pytest.mark.parametrize(("name", "release"), RECORDED)
def test_recorded_logs_are_recognised(name: str, release: str) -> None:
    message = logs.find((LOGS / f"{name}.{release}.log").read_text())
    assert (message.id if message else "") == SCENARIOS[name].cause_of(release)


def test_every_recorded_log_belongs_to_a_scenario() -> None:
    assert {path.name for path in LOGS.iterdir()} == {f"{name}.{release}.log" for name, release in RECORDED}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("killed.openmpi-4", "a rank was killed on train-worker-1 (signal 9), most likely for memory"),
        (
            "killed.intel",
            "a rank on train-worker-1.train.team-a.svc was killed (signal 9): for memory, or by mpirun since another "
            "rank or worker failed first",
        ),
        ("sshd-directory.openmpi-4", "sshd lacks the directory /run/sshd"),
        ("mpi-error.openmpi-5", "MPI_Barrier failed: MPI_ERR_COMM: invalid communicator"),
        ("mpi-error.intel", "internal_Barrier failed: Invalid communicator"),
        ("cpp-exception.openmpi-4", "the program ended itself: no such model"),
        (
            "handled-traceback.openmpi-4",
            "a rank crashed on train-worker-1: signal 11 (Segmentation fault); before that Python raised: "
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/cache.bin'",
        ),
        ("segfault.mpich", "a rank crashed on train-worker-1.train.team-a.svc: Segmentation fault (signal 11)"),
        (
            "worker-lost.openmpi-4",
            "the connection to train-worker-1 broke while the ranks ran: that worker went away, or its MPI daemon "
            "crashed",
        ),
        ("no-program.openmpi-4", "the program nosuch does not exist on a worker, or cannot be executed"),
        ("wrong-hostfile-hydra.intel", "mpirun cannot open the hostfile /etc/mpi/hosts"),
        ("option-of-open-mpi.mpich", "mpirun has no option allow-run-as-root"),
        ("option-of-hydra.openmpi-5", "mpirun has no option --genv"),
        ("slots.openmpi-5", "the hostfile has too few slots for 4 ranks, in total or on one worker"),
        (
            "no-daemon-path.openmpi-4",
            "ssh found no orted on a worker, since a login by ssh has a different PATH than the image",
        ),
        (
            "no-daemon-library.openmpi-5",
            "/opt/mpi/bin/prted lacks the library libprrte.so.3: a login by ssh sets no LD_LIBRARY_PATH on workers",
        ),
    ],
)
def test_recorded_log_gives_the_expected_text(name: str, text: str) -> None:
    message = logs.find((LOGS / f"{name}.log").read_text())
    assert message is not None
    assert message.text == text


@pytest.mark.parametrize("case", TABLE)
def test_messages_from_issue_threads_are_recognised(case: str) -> None:
    log, cause, text = TABLE[case]
    message = logs.find(f"starting\n{log}")
    assert message is not None
    assert (message.id, message.text) == (cause, text)
    assert message.fix or message.early


ENDED = {
    **{
        f"{name}.{release}": ((LOGS / f"{name}.{release}.log").read_text(), SCENARIOS[name].cause_of(release))
        for name, release in RECORDED
        if name in {"killed", "worker-lost", "segfault", "shm"}
    },
    "SIGTERM": (KILLED.replace("9 (Killed)", "15 (Terminated)"), "rank-terminated"),
    "torchrun": (TORCHRUN, "rank-killed"),
}


@pytest.mark.parametrize("ended", ENDED)
@pytest.mark.parametrize("peer", PEERS)
def test_messages_of_ranks_that_lost_a_peer_do_not_hide_how_the_peer_ended(peer: str, ended: str) -> None:
    log, cause = ENDED[ended]
    for text in (f"{PEERS[peer]}{log}", f"{log}{PEERS[peer]}"):
        message = logs.find(f"starting\n{text}")
        assert message is not None
        assert message.id == cause


def test_every_message_has_a_recorded_log_or_a_row_in_the_table() -> None:
    recorded = {SCENARIOS[name].cause_of(release) for name, release in RECORDED} - {""}
    assert {message.id for message in logs.messages()} == recorded | {cause for _, cause, _ in TABLE.values()}


RAISES = "Traceback (most recent call last):\nValueError: loss is nan\n"


@pytest.mark.parametrize(
    "log",
    [
        "",
        "epoch 1\n",
        "no space left on device\n",
        "Permission denied (\npublickey\n)\n",
        "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n",
        "Connection closed by 140.82.121.4 port 22\nfatal: Could not read from remote repository.\n",
        "me@data.host: Permission denied (publickey).\nrsync error: unexplained error (code 255)\n",
        "ssh: Could not resolve hostname w-0: no name\nssh: Could not resolve hostname w-1: no name\nepoch 1\n",
        "gcc: error: unrecognized argument in option '-march=foo'\n",
        "sudo: /etc/sudo.conf: bad permissions\n",
        "NCCL INFO Call to connect returned Connection refused, retrying\n",
        f"ssh: Could not resolve hostname w-0: no name\nall workers up\nepoch 1\n{RAISES}",
        f"Connection closed by 10.0.0.3 port 22\nepoch 1\n{RAISES}",
        f"{RAISES}terminate called without an active exception\n",
        f"{RAISES}terminate called after throwing an instance of 'c10::Error'\n  what():  no\n",
        f"{RAISES}{box(9, 'Killed (signal 9)')}",
        f"{RAISES}{PEER_OF_NCCL}",
        f"{RAISES}{PEER_OF_PYTORCH}",
        "nvidia-smi: error while loading shared libraries: libnvidia-ml.so.1: cannot open\nno GPU\nERROR: no mesh\n",
        "max locked memory       (kbytes, -l) unlimited\nERROR: cannot read mesh\n",
        f"{RAISES}[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)\n",
        "ssh: Could not resolve hostname w-0: no name\nno data\nPrimary job  terminated normally, but 1 process "
        "returned\n",
    ],
)
def test_log_without_a_cause_is_not_recognised(log: str) -> None:
    assert logs.find(log) is None


RAISED = {
    "plain": ("Traceback (most recent call last):\n  File 'a'\nKeyError: 'a'\n", "KeyError: 'a'"),
    "after the tag of a rank": (
        "[rank3]: Traceback (most recent call last):\n[rank3]:   File 'a'\nother\n"
        "[rank3]: torch.cuda.Error: no\n[rank3]:\n",
        "[rank3]: torch.cuda.Error: no",
    ),
    "after mpirun's tag": (
        "[1,0]<stderr>:Traceback (most recent call last):\n[1,0]<stderr>:  File 'a'\n[1,0]<stderr>:KeyError: 'a'\n",
        "[1,0]<stderr>: KeyError: 'a'",
    ),
    "chained": (
        "Traceback (most recent call last):\n  x\nKeyError: 'a'\n\nDuring handling of the above exception, another "
        "exception occurred:\n\nTraceback (most recent call last):\n  x\nValueError: b\n---\n",
        "ValueError: b",
    ),
    "a rank, then torchrun": (
        "Traceback (most recent call last):\n  x\nKeyError: 'a'\nTraceback (most recent call last):\n  x\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n====\n",
        "KeyError: 'a'",
    ),
    "without a message": ("Traceback (most recent call last):\n  x\nKeyboardInterrupt\n", "KeyboardInterrupt"),
    "a line of a different process within the traceback": (
        "Traceback (most recent call last):\n  x\nepoch 1 of 2\nKeyError: 'a'\n",
        "KeyError: 'a'",
    ),
    "first exception caught, second not": (
        "Traceback (most recent call last):\n  x\nKeyError: 'a'\nepoch 1\nTraceback (most recent call last):\n  x\n"
        "ValueError: loss is nan\n",
        "ValueError: loss is nan",
    ),
    "first exception caught, then exceptions of two ranks": (
        "Traceback (most recent call last):\n  x\nKeyError: 'a'\nepoch 1\nTraceback (most recent call last):\n  x\n"
        "ValueError: loss is nan\nTraceback (most recent call last):\n  x\nIndexError: 1\n",
        "ValueError: loss is nan",
    ),
    "a rank, then a rank that lost the connection": (
        "Traceback (most recent call last):\n  x\nKeyError: 'a'\nepoch 1\nTraceback (most recent call last):\n  x\n"
        "RuntimeError: Connection closed by peer\n",
        "KeyError: 'a'",
    ),
    "two ranks of PyTorch": (
        "[rank3]: Traceback (most recent call last):\n[rank3]:   x\n[rank3]: KeyError: 'a'\nepoch 1\n"
        "[rank0]: Traceback (most recent call last):\n[rank0]:   x\n[rank0]: ValueError: no shards\n",
        "[rank3]: KeyError: 'a'",
    ),
    "two ranks at the same time": (
        "[1,0]<stderr>:Traceback (most recent call last):\n[1,1]<stderr>:Traceback (most recent call last):\n"
        "[1,1]<stderr>:  x\n[1,0]<stderr>:  x\n[1,1]<stderr>:KeyError: 'a'\n[1,0]<stderr>:ValueError: b\n",
        "[1,0]<stderr>: ValueError: b",
    ),
    "in an exception group": (
        "  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: unhandled\n  +-+---- 1 ----\n"
        "    | Traceback (most recent call last):\n    |   x\n    | ValueError: no shards\n    +-----\n",
        "ValueError: no shards",
    ),
    "no exception": ("epoch 1\n", ""),
    "a traceback without its last line": ("Traceback (most recent call last):\n  x\n", ""),
}


@pytest.mark.parametrize("case", RAISED)
def test_exception_that_ended_the_program_is_found(case: str) -> None:
    log, exception = RAISED[case]
    assert logs.program_output(log).exception == exception


@pytest.mark.parametrize(
    ("rest", "last"),
    [
        ("", ""),
        ("the disk is full\n", "the disk is full"),
        ("Traceback (most recent call last):\n  x\nRuntimeError: NCCL error\n", ""),
        (
            f"{TORCHRUN.replace('-9', '1')}Traceback (most recent call last):\n  x\n"
            f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n{'=' * 60}\ntrain.py FAILED\n"
            f"{'-' * 60}\nFailures:\n  <NO_OTHER_FAILURES>\n{'-' * 60}\nRoot Cause (first observed failure):\n[0]:\n"
            f"  exitcode  : 1 (pid: 31)\n{'=' * 60}\n",
            "",
        ),
    ],
    ids=["no output", "a program that continued", "a second rank", "torchrun"],
)
def test_last_line_is_only_from_output_after_the_exception(rest: str, last: str) -> None:
    assert logs.program_output(f"{RAISES}{rest}") == ("ValueError: loss is nan", last, "")


@pytest.mark.parametrize("release", ALL)
def test_last_line_is_from_the_program_and_not_from_mpiruns_report(release: str) -> None:
    assert logs.last((LOGS / f"exit-status.{release}.log").read_text()) == "no data"


@pytest.mark.parametrize(
    ("log", "last", "error"),
    [
        (
            "LAMMPS\nERROR: Cannot open file data.lj\nLast command: read_data data.lj\n",
            "Last command: read_data data.lj",
            "ERROR: Cannot open file data.lj",
        ),
        (
            "[0] --> FOAM FATAL ERROR: \n[0] 4 directories, 8 processors\n[0] \nFOAM parallel run exiting\n[0] \n",
            "FOAM parallel run exiting",
            "[0] --> FOAM FATAL ERROR: [0] 4 directories, 8 processors",
        ),
        ("NCCL\nLast error:\nno route\n", "no route", ""),
        ("ERROR: no tracking\n" + "step\n" * 10, "step", ""),
        ("step\nERROR: no data\n", "ERROR: no data", ""),
        (
            "[w:7] PML add procs failed\n[w:7] *** An error occurred in MPI_Init\n[w:7] *** reported by process [1,0]\n"
            "[w:7] *** on a NULL communicator\n[w:7] *** Unknown error\n[w:7] *** MPI_ERRORS_ARE_FATAL (processes in "
            "this communicator will now abort,\n[w:7] ***    and MPI will try to terminate your MPI job as well)\n",
            "[w:7] *** An error occurred in MPI_Init",
            "",
        ),
        (
            "*** An error occurred in MPI_Init\n*** on a NULL communicator\n*** MPI_ERRORS_ARE_FATAL (processes in "
            "this communicator will now abort,\n***    and potentially your MPI job)\n",
            "An error occurred in MPI_Init",
            "",
        ),
        (
            "no mesh\n[l:1] PMIX ERROR: UNREACHABLE in file server/pmix_server.c at line 2198\n[l:1] [[2,0],0] "
            "ORTE_ERROR_LOG: Data unpack would read past end of buffer in file show_help.c at line 501\n",
            "no mesh",
            "",
        ),
        (
            "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be "
            "terminated. The first process to do so was:\n\n  Process name: [[1,1],1]\n  Exit code:    3\n",
            "",
            "",
        ),
    ],
    ids=[
        *("LAMMPS", "OpenFOAM", "a heading above the last line", "an early error", "an error in the last line"),
        *("Open MPI 5", "Open MPI 4", "PMIx", "only an exit code"),
    ],
)
def test_error_shortly_before_the_last_line_is_found(log: str, last: str, error: str) -> None:
    assert logs.program_output(log) == ("", last, error)


def test_last_line_is_from_mpi_abort_if_the_program_wrote_no_output() -> None:
    last = logs.last((LOGS / "abort.openmpi-4.log").read_text())
    assert last == "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD"


def test_last_line_is_without_separators() -> None:
    assert logs.last("a\nValueError: b\n-----\n\n") == "ValueError: b"
    assert logs.last("---\n\n") == ""
    assert logs.last("") == ""


def test_patterns_read_only_the_beginning_of_a_long_line() -> None:
    assert logs.find("x" * 20_000 + ": Permission denied (publickey)") is None
