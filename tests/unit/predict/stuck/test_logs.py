"""What launchers and sshd write when the ranks cannot be started: as the real releases wrote it, cut to what counts."""

import pytest

from webhook.predict.stuck.causes import logs

TABLE = {
    "Open MPI 4, no hostfile": (
        """\
--------------------------------------------------------------------------
Open RTE was unable to open the hostfile:
    /nope/hostfile
Check to make sure the path and filename are correct.
--------------------------------------------------------------------------
An internal error has occurred in ORTE:
""",
        "wrong-hostfile",
        "mpirun cannot open the hostfile /nope/hostfile",
    ),
    "Open MPI 5, no hostfile": (
        "-----\nPRTE was unable to open the hostfile:\n\n   /nope/hostfile\n\nCheck to make sure the path\n",
        "wrong-hostfile",
        "mpirun cannot open the hostfile /nope/hostfile",
    ),
    "MPICH, no hostfile": (
        "[mpiexec@vm] HYDU_parse_hostfile (/mpich-5.0.2/src/pm/hydra/lib/utils/args.c:324): unable to open host file: "
        "/nope/hostfile\n[mpiexec@vm] mfile_fn (/mpich-5.0.2/x.c:315): error parsing hostfile\n",
        "wrong-hostfile",
        "mpirun cannot open the hostfile /nope/hostfile",
    ),
    "Intel MPI, no hostfile": (
        "[mpiexec@vm] HYD_hostfile_unique_parse (../../src/hostfile/hydra_hostfile.c:157): /nope/hostfile no such "
        "file, or not a regular file\n[mpiexec@vm] match_arg (../hydra_arg.c:75): match handler returned error\n",
        "wrong-hostfile",
        "mpirun cannot open the hostfile /nope/hostfile",
    ),
    "Open MPI 4, slots": (
        """\
There are not enough slots available in the system to satisfy the 4
slots that were requested by the application:

  hostname
""",
        "slots",
        "mpirun is to start 4 ranks, and the hostfile has fewer slots",
    ),
    "key": (
        """\
mpiuser@train-worker-0.train.team-a.svc: Permission denied (publickey,password).
------------------------------------------------------------
A daemon failed to report back after being spawned. This could
be due to several factors, including inability to find the
""",
        "wrong-key",
        "the key of the launcher is not accepted: mpiuser@train-worker-0.train.team-a.svc: Permission denied "
        "(publickey,password)",
    ),
    "key, without a host": (
        "Permission denied (publickey).\n",
        "wrong-key",
        "the key of the launcher is not accepted: Permission denied (publickey)",
    ),
    "key that others may read": (
        """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Permissions 0640 for '/root/.ssh/id_rsa' are too open.
This private key will be ignored.
root@train-worker-0: Permission denied (publickey).
""",
        "key-permissions",
        "ssh does not use the key, since others may read it",
    ),
    "host key": (
        "No ED25519 host key is known for train-worker-0.train.team-a.svc and you have requested strict checking.\n"
        "Host key verification failed.\n",
        "host-key",
        "ssh does not know the workers' host keys (Host key verification failed)",
    ),
    "no name": (
        "ssh: Could not resolve hostname train-worker-1.train.team-a.svc: Name or service not known\n",
        "no-name",
        "the launcher found no address for train-worker-1.train.team-a.svc",
    ),
    "no sshd": (
        "ssh: connect to host train-worker-0.train.team-a.svc port 22: Connection refused\n",
        "no-sshd",
        "nobody listens on port 22 of train-worker-0.train.team-a.svc",
    ),
    "no route": (
        "ssh: connect to host train-worker-0 port 2222: Connection timed out\n",
        "no-route",
        "train-worker-0 cannot be reached on port 2222: Connection timed out",
    ),
    "Open MPI 4, no ssh": (
        'The value of the MCA parameter "plm_rsh_agent" was set to a path\nthat could not be found:\n\n'
        "  plm_rsh_agent: ssh : rsh\n",
        "no-ssh",
        "the launcher's image has no ssh",
    ),
    "Open MPI 5, no ssh": (
        "No available launching agents were found.\n",
        "no-ssh",
        "the launcher's image has no ssh",
    ),
    "MPICH, no ssh": (
        "[mpiexec@vm] HYDU_create_process (/mpich/launch.c:73): execvp error on file ssh (No such file or directory)\n",
        "no-ssh",
        "the launcher's image has no ssh",
    ),
    "as root": (
        "mpirun has detected an attempt to run as root.\n\nRunning as root is *strongly* discouraged\n",
        "as-root",
        "mpirun does not run as root unless it is told to",
    ),
    "Open MPI 4, no program": (
        """\
mpirun was unable to launch the specified application as it could not access
or execute an executable:

Executable: /nope/prog
Node: vm
""",
        "no-program",
        "the program /nope/prog is not there, or cannot be executed, on a worker",
    ),
    "Open MPI 5, no program": (
        "prterun was unable to launch the specified application as it could not\naccess an executable:\n\n"
        "   Executable: /nope/prog\n   Node: vm\n",
        "no-program",
        "the program /nope/prog is not there, or cannot be executed, on a worker",
    ),
    "MPICH, no program": (
        "[proxy:0@vm] HYDU_create_process (/mpich/launch.c:73): execvp error on file /nope/prog (No such file)\n",
        "no-program",
        "the program /nope/prog is not there, or cannot be executed, on a worker",
    ),
    "sshd, no host keys": ("sshd: no hostkeys available -- exiting.\n", "no-host-keys", "sshd has no host keys"),
    "sshd, no directory": (
        "Missing privilege separation directory: /run/sshd\n",
        "sshd-directory",
        "sshd lacks the directory /run/sshd",
    ),
    "Intel MPI, anything of ssh": (
        "[mpiexec@vm] Error: Unable to run bstrap_proxy on h1 (pid 27774, exit code 65280)\n",
        "no-proxy",
        "Intel MPI could not start anything on h1",
    ),
    "the GPU's memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        "gpu-memory",
        "the GPU's memory is too small (CUDA out of memory)",
    ),
    "shared memory": (
        "ERROR: Unexpected bus error encountered in worker. Bus error (core dumped)\n",
        "shared-memory",
        "/dev/shm is too small",
    ),
    "a daemon, for no reason that is said": (
        "ORTE was unable to reliably start one or more daemons.\n",
        "no-daemon",
        "mpirun could not start its daemon on a worker",
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_is_known(case: str) -> None:
    log, cause, text = TABLE[case]
    found = logs.known(f"starting\n{log}")
    assert found is not None
    assert (found.id, found.text) == (cause, text)
    assert found.fix


def test_every_known_message_is_in_the_table() -> None:
    assert {known.id for known in logs.KNOWN} == {cause for _, cause, _ in TABLE.values()}


@pytest.mark.parametrize(
    "log",
    [
        "",
        "epoch 1\n",
        "Permission denied: '/data'\n",
        "no space left on device\n",
        "Permission denied (\npublickey\n)\n",
    ],
)
def test_other_logs(log: str) -> None:
    assert logs.known(log) is None


def test_the_last_line() -> None:
    assert logs.last("a\nValueError: b\n-----\n\n") == "ValueError: b"
    assert logs.last("---\n\n") == ""
    assert logs.last("") == ""


def test_a_log_of_one_long_line_is_no_work() -> None:
    """The patterns look at no more of a line than its beginning."""
    assert logs.known("x" * 20_000 + ": Permission denied (publickey)") is None
