"""What OpenSSH, the MPI releases and Python write in a log when a job fails.

The texts are those of OpenSSH 9 and 10, Open MPI 4.1.8 and 5.0.11, MPICH 5.0.2 and Intel MPI 2021.18, which the tests
run. Those of NCCL, CUDA, PyTorch, DeepSpeed and horovodrun are from issue threads.
"""

import re
from functools import cache
from typing import Final, NamedTuple

from webhook.api.mpirun import HOSTFILE
from webhook.parts.why.limits import MAX_LOG_LINE_CHARACTERS


class Known(NamedTuple):
    """A message and what it means."""

    id: str
    pattern: str
    text: str
    """`{0}` is the first group that matched, else `a worker`."""
    fix: str
    rules: frozenset[str] = frozenset()
    early: bool = False
    """The launcher may have started before its workers."""


_SSH: Final = frozenset({"ssh-paths"})
_COMMAND: Final = frozenset({"command-line", "slots"})
_MEMORY: Final = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources.limits.memory"
_INTERFACE: Final = (
    "Name the network of the pods: -mca btl_tcp_if_include eth0 -mca oob_tcp_if_include eth0 (Open MPI 5: --prtemca "
    "oob_tcp_if_include eth0). A NetworkPolicy or a service mesh may also block ranks: kubectl get networkpolicy"
)

# An entry is the cause of those below it.
KNOWN: Final = (
    Known(
        "key-permissions",
        r"UNPROTECTED PRIVATE KEY FILE|Permissions 0\d+ for '?(\S+?)'? are too open|bad permissions",
        "ssh does not use the key, since others may read it",
        "Set sshAuthMountPath to /root/.ssh for root, to .ssh in the home of any other user, and set no fsGroup.",
        _SSH,
    ),
    Known(
        "strict-modes",
        r"Authentication refused: bad ownership or modes for (?:directory|file) (\S+)",
        "sshd does not accept the key, since others may write to {0}",
        "Set StrictModes no in the worker's sshd_config, or start sshd with -o StrictModes=no: the Secret with the "
        "keys is mounted as a directory that all may write to.",
    ),
    Known(
        "sshd-chroot",
        r'chroot\("([^"]*)"\): Operation not permitted',
        'sshd may not chroot to "{0}": it lacks the capability SYS_CHROOT, which CRI-O does not give by default',
        "Add SYS_CHROOT to spec.mpiReplicaSpecs[Worker].template.spec.containers[0].securityContext.capabilities.add, "
        "or run sshd as another user.",
        _SSH,
    ),
    Known(
        "sshd-pam",
        r"fatal: Access denied for user (\S+) by PAM|PAM: (?:pam_open_session|pam_setcred)\(\): (.+)",
        "PAM in the worker's image refuses the login ({0})",
        "Set UsePAM no in the worker's sshd_config.",
    ),
    Known(
        "wrong-key",
        r"((?<!\S)(?!git@)\S+: Permission denied \([^)\n]*publickey[^)\n]*\)"
        r"|(?<!: )Permission denied \([^)\n]*publickey[^)\n]*\))",
        "the key of the launcher is not accepted: {0}",
        "Set StrictModes no in the worker's sshd_config: the Secret's directory is open to all, which sshd refuses by "
        "default. Set sshAuthMountPath to .ssh in the home of the user that runs ssh and sshd, and use no other keys.",
        _SSH,
    ),
    Known(
        "host-key",
        r"Host key verification failed",
        "ssh does not know the workers' host keys (Host key verification failed)",
        "Set StrictHostKeyChecking no and UserKnownHostsFile /dev/null in the image's ssh_config.",
    ),
    Known(
        "no-name",
        r"Could not resolve hostname ([^\s:]+)",
        "the launcher found no address for {0}",
        "",
        early=True,
    ),
    Known(
        "no-sshd",
        r"connect to host (\S+) port (\d+): Connection refused",
        "nothing listens on port {1} of {0}",
        "Start sshd in the worker on that port, or set the port of ssh: -p, or Port in ssh_config.",
        early=True,
    ),
    Known(
        "no-route",
        r"connect to host (\S+) port (\d+): (Connection timed out|No route to host|Network is unreachable)",
        "{0} cannot be reached on port {1}: {2}",
        "A NetworkPolicy (kubectl get networkpolicy) or a service mesh may block it.",
    ),
    Known(
        "no-ssh",
        r'"plm_rsh_agent" was set to a path|No available launching agents were found'
        r"|execvp error on file (?:\S*/)?(?:ssh|rsh) "
        r"|ssh: command not found|ssh: not found|cannot find .{0,40}\bssh\b",
        "the launcher's image has no ssh",
        "Install an ssh client in the image (openssh-client, openssh-clients).",
    ),
    Known(
        "ssh-closed",
        r"kex_exchange_identification: .*|Connection (?:reset|closed) by (\S+) port \d+",
        "sshd ended the connection before the login",
        "The log of the worker says why (kubectl logs). Under CRI-O root lacks SYS_CHROOT: add it to "
        "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].securityContext.capabilities.add. Otherwise create "
        "/run/sshd in the image, set UsePAM no, and raise MaxStartups for many workers.",
        _SSH,
    ),
    Known(
        "no-daemon-program",
        r"(\S*(?:orted|prted|hydra_pmi_proxy|hydra_bstrap_proxy))[\"']?: (?:command not found|not found|No such file)",
        "ssh found no {0} on a worker, since a login by ssh has another PATH than the image",
        "Call mpirun by its full path, as $(which mpirun), or with --prefix and the directory of MPI. Use the same "
        "image for launcher and workers.",
    ),
    Known(
        "no-library",
        r"(\S+): error while loading shared libraries: ([^\s:]+)",
        "{0} lacks the library {1} on a worker, since a login by ssh has no LD_LIBRARY_PATH",
        "For a program of yours add -x LD_LIBRARY_PATH to mpirun. For orted and prted call mpirun by its full path, as "
        "$(which mpirun), or with --prefix and the directory of MPI; or run ldconfig with that directory in the image.",
        frozenset({"rank-environment"}),
    ),
    Known(
        "local-only",
        r"Unable to find hostfile, will proceed with training with local resources only",
        "deepspeed found no hostfile, so it starts ranks only in the launcher",
        f"Add --hostfile {HOSTFILE} to deepspeed, which the operator writes.",
        _COMMAND,
    ),
    Known(
        "wrong-hostfile",
        r"unable to open (?:the )?host ?file:\s*(\S+)|(\S+) no such file, or not a regular file",
        "mpirun cannot open the hostfile {0}",
        f"Use {HOSTFILE}, which the operator writes, or leave --hostfile (-f, -machinefile) out.",
        _COMMAND,
    ),
    Known(
        "slots-per-worker",
        r"more processes than the ppr for\s+this topology can support|more processes per node than",
        "mpirun is to start more ranks than -N, -npernode or ppr allows",
        "Set -np to the number of workers times the number after -N, -npernode or ppr, or leave -np out.",
        _COMMAND,
    ),
    Known(
        "slots",
        r"not enough slots available in the system to satisfy the (\d+)",
        "the hostfile has too few slots for {0} ranks, in all or on one worker",
        "Lower -np, or raise spec.slotsPerWorker or the number of workers. -N, -npernode and ppr may be at most "
        "slotsPerWorker.",
        _COMMAND,
    ),
    Known(
        "binding",
        r"request was made to bind(?s:.{0,90}?)more\s+(?:processes|cpus) than|Mapper result:\s+Out of resource",
        "there are more ranks than CPUs to bind them to",
        "Add --bind-to none to mpirun, or raise the limit of cpu of the workers.",
    ),
    Known(
        "as-root",
        r"(?:mpirun|mpiexec|prterun) has detected an attempt to run as root",
        "mpirun does not run as root without --allow-run-as-root",
        "Add --allow-run-as-root to mpirun, or use an image with a user of its own.",
    ),
    Known(
        "option",
        r"unrecognized argument (\S+)|(?:mpirun|mpiexec): .{0,20}unknown option \"?([\w-]+)"
        r"|An unrecognized option was included(?s:.{0,60}?)Option: (\S+)",
        "mpirun has no option {0}",
        "Remove it, or use the MPI of the image: -x, --mca, -N and --allow-run-as-root are of Open MPI; -genv, -ppn "
        "and -f of MPICH and Intel MPI.",
        _COMMAND,
    ),
    Known(
        "no-interface",
        r"None of the TCP networks specified to be included(?s:.{0,60}?)could be found:\s+Value given: (\S+)",
        "a pod has no network interface {0}",
        _INTERFACE,
    ),
    Known(
        "no-tcp",
        r"daemon was unable to complete a TCP connection|failed to TCP connect to a peer|unable to connect to the peer",
        "the pods cannot connect to each other over TCP beyond ssh",
        _INTERFACE,
    ),
    Known(
        "nccl-network",
        r"no socket interface found|NET/Socket : [Nn]o .{0,20}interface"
        r"|WARN (?:Call to connect returned|socketStartConnect:)|socketStartConnect: exceeded",
        "NCCL cannot connect the ranks",
        "Name the network of the pods on the launcher: NCCL_SOCKET_IFNAME=eth0, and -x NCCL_SOCKET_IFNAME for mpirun.",
        frozenset({"rank-environment"}),
    ),
    Known(
        "no-program",
        r"(?:could not access\s+or execute an|access an|permissions to execute an)\s+executable:\s+Executable: (\S+)"
        r"|specified executable file(?s:.{0,700}?)Executable: (\S+)"
        r'|via the "execve" system call(?s:.{0,700}?)Application name:\s+(\S+)'
        r"|execvp error on file (\S+)",
        "the program {0} is not there, or cannot be executed, on a worker",
        "Correct the path and its mode, and use the same image, for the nodes' architecture, for launcher and workers.",
    ),
    Known(
        "no-host-keys",
        r"(?:sshd: )?no hostkeys available",
        "sshd has no host keys",
        "Create them in the image (ssh-keygen -A), or set HostKey to a file that sshd's user can read.",
        _SSH,
    ),
    Known(
        "sshd-directory",
        r"Missing privilege separation directory: (\S+)",
        "sshd lacks the directory {0}",
        "Create it in the image, or before sshd starts: mkdir -p /run/sshd",
    ),
    Known(
        "gpu-memory",
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|HIP out of memory",
        "the GPU's memory is too small (CUDA out of memory)",
        "Use smaller batches, more workers, or GPUs with more memory.",
    ),
    Known(
        "shared-memory",
        r"dev/shm.{0,300}No space left on device|unable to (?:create|allocate) shared memory|[Bb]us error"
        r"|creating shared memory segment|posix_fallocate failed ?: No space left"
        r"|not enough\s+space for\s+(?:\S*dev/shm|the shared memory)|exited on\s+signal 7|KILLED BY SIGNAL: 7"
        r"|EXIT CODE: 7\n",
        "/dev/shm is too small",  # noqa: S108
        "Mount an emptyDir with medium Memory at /dev/shm in the worker's container.",
    ),
    Known(
        "rank-killed",
        r"process rank \d+ with PID \d+ on node (\S+) exited on\s+signal 9\b"
        r"|BAD TERMINATION(?s:.{0,60}?)PID \d+ RUNNING AT (\S+)\n=\s+EXIT CODE: 9\n",
        "a rank was killed on {0} (signal 9), most likely for memory",
        f"Raise {_MEMORY}, or use less: /dev/shm counts too.",
    ),
    Known(
        "nccl-timeout",
        r"Watchdog caught collective operation timeout",
        "a rank waited too long for the others in a collective operation, and NCCL's watchdog ended it",
        "Look at what the other ranks wrote before: one may have failed or hung, or called other operations.",
    ),
    Known(
        "rank-terminated",
        r"process rank \d+ with PID \d+ on node (\S+) exited on\s+signal 15\b"
        r"|PID \d+ RUNNING AT (\S+)\n=\s+(?:EXIT CODE|KILLED BY SIGNAL): 15\b",
        "a rank on {0} got SIGTERM from outside (signal 15): its pod was deleted, evicted or preempted, or its time "
        "was over",
        "kubectl get events and kubectl describe pod may say which of these it was.",
    ),
    Known(
        "rank-crashed",
        r"process rank \d+ with PID \d+ on node (\S+) exited on\s+signal (\d+ \([^)]*\))"
        r"|PID \d+ RUNNING AT (\S+)\n=\s+(?:EXIT CODE|KILLED BY SIGNAL): ((?:4|6|8|11)\b.*)",
        "a rank crashed on {0}: signal {1}",
        "The program itself fails: run it with fewer ranks, and look at what it wrote before.",
    ),
    Known(
        "worker-lost",
        r"lost communication with a remote daemon(?:(?s:.{0,200}?)Remote daemon: \S+ on node (\S+))?"
        r"|Connection to (\S+) closed by remote host|control_cb .{0,90}assert \(!closed\) failed",
        "the connection to {0} broke while the ranks ran: that worker went away, or its MPI daemon crashed",
        "kubectl get events and kubectl describe pod may say why: eviction, preemption, memory, a lost node.",
    ),
    Known(
        "rank-ended",
        r"RANK (\d+) PID \d+ RUNNING AT (\S+)\n=\s+KILLED BY SIGNAL: 9\b",
        "rank {0} on {1} was killed (signal 9): for memory, or by Intel MPI since another rank or worker failed first",
        f"Look at what the ranks wrote before, and at the workers. For memory raise {_MEMORY}.",
    ),
    Known(
        "no-daemon",
        r"daemon failed to report back(?:(?s:.{0,500}?)Remote host:\s+(\S+))?|Unable to run bstrap_proxy on (\S+)"
        r"|unable to reliably start one or more daemons|Launch proxy failed",
        "mpirun could not start its daemon on {0}",
        "Try it by hand: kubectl exec into the launcher, and ssh to that worker. The log of its sshd may say more. "
        "Both need the same MPI release.",
        _SSH,
        early=True,
    ),
)
OF_SSHD: Final = frozenset({"wrong-key", "ssh-closed", "no-sshd", "no-daemon"})
"""Causes of which the log of the worker's sshd may say more."""
BY_SSHD: Final = frozenset({"strict-modes", "sshd-chroot", "sshd-pam", "no-host-keys", "sshd-directory"})
"""What that log then says."""

# They come before the ranks start, and these may follow from an exception of another rank.
_CONNECTING: Final = OF_SSHD | {"key-permissions", "host-key", "no-name", "no-route"}
_RESULTS: Final = frozenset({"nccl-timeout", "rank-terminated", "rank-ended"})
_RAN: Final = re.compile(
    r"Primary job  terminated|(?:mpirun|mpiexec|prterun|prte) detected that one|noticed that process rank"
    r"|BAD TERMINATION"
)
# Exceptions that only say that something else failed.
_SECOND: Final = re.compile(
    r"ChildFailed|CalledProcess|NCCL|\bMPI|[Hh]orovod|\bssh\b|Connection (?:closed|reset)|DistBackend|killed by signal"
)
_TRACEBACK: Final = "Traceback (most recent call last):"
_EXCEPTION: Final = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
_CHAINED: Final = ("During handling of the above", "The above exception was")
_RULE: Final = re.compile(r"^[-=*]{40,}\s*$", re.MULTILINE)
# What mpirun and its kin write when a rank has failed, whatever that was.
_TRAILER: Final = re.compile(
    r"\s*(?:Primary job|(?:mpirun|mpiexec|prterun|prte) (?:has exited|detected|noticed)|MPI_ABORT was|=\s+BAD TERM"
    r"|YOUR APPLICATION|There are processes|\d+ total process)"
)
_NOISE: Final = re.compile(
    r"\[(?:proxy|mpiexec)\b.*|Connection to \S+ closed.*|.* more process(?:es)? ha(?:s|ve) sent help message.*"
    r"|\[\S+:\d+\] Set MCA parameter.*|.*setpgid\(.*|This typically refers to a problem.*|Please see the FAQ.*"
    r"|Primary job .*|a non-zero exit code\. Per .*"
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def known(log: str) -> Known | None:
    """The first of these that the log has, with what it names filled in; none that the job survived."""
    # Patterns look back within a line, so a long one would take its square.
    lines = "".join(f"{line[:MAX_LOG_LINE_CHARACTERS]}\n" for line in log.splitlines())
    exception = raised(lines)
    own = bool(exception) and not _SECOND.search(exception)
    failed = lines.find(_TRACEBACK) if own else 0
    ran = max((found.end() for found in _RAN.finditer(lines)), default=0)
    for each in KNOWN:
        if own and each.id in _RESULTS:
            continue
        start = max(ran, failed) if each.id in _CONNECTING else failed
        if found := _compiled(each.pattern).search(lines, start):
            named = [group for group in found.groups() if group]
            return each._replace(text=each.text.format(*(shown[:200] for shown in named), *("a worker",) * 2))
    return None


def raised(log: str) -> str:
    """The exception of the first Python traceback, with the rank where the line has one: `[rank3]: KeyError: 'a'`.

    Later tracebacks are of ranks that lost the first, and of torchrun or horovodrun, which only say that it failed.
    """
    lines, found = iter(log.splitlines()), ""
    for line in lines:
        prefix, traceback, _ = line.partition(_TRACEBACK)
        if not traceback:
            continue
        for following in lines:
            rest = following.removeprefix(prefix)
            if not following.startswith(prefix) or not rest.strip() or rest[0].isspace():
                continue
            if found and not rest.startswith(_CHAINED):
                return found
            found = f"{prefix.strip()} {rest}".strip() if _EXCEPTION.match(rest) else ""
    return found


def last(log: str) -> str:
    """The last line of the program itself, else the first of mpirun's report."""
    own = "\n".join(part for part in _RULE.split(log) if not _TRAILER.match(part))
    for lines in (reversed(own.splitlines()), log.splitlines()):
        texts = (line.strip(" -*=\t\r\0") for line in lines)
        if found := next((text for text in texts if text and not _NOISE.fullmatch(text)), ""):
            return found
    return ""
