"""What OpenSSH and the MPI releases say in a log when they cannot start the ranks.

The texts are those of OpenSSH 9 and 10, Open MPI 4.1.8 and 5.0.11, MPICH 5.0.2 and Intel MPI 2021.18.
"""

import re
from typing import Final, NamedTuple

from webhook.predict.limits import MAX_LOG_LINE_CHARACTERS


class Known(NamedTuple):
    """A message and what it means."""

    pattern: re.Pattern[str]
    id: str
    text: str
    fix: str
    rules: frozenset[str] = frozenset()


_SSH: Final = frozenset({"ssh-paths"})
_COMMAND: Final = frozenset({"command-line", "slots"})

# What is first here is the cause of what is below it.
KNOWN: Final = (
    Known(
        re.compile(r"UNPROTECTED PRIVATE KEY FILE|Permissions 0\d+ for '?(\S+?)'? are too open|bad permissions"),
        "key-permissions",
        "ssh does not use the key, since others may read it",
        "Set sshAuthMountPath to /root/.ssh for root, to .ssh in the home of any other user, and set no fsGroup.",
        _SSH,
    ),
    Known(
        re.compile(r"((?:\S+: )?Permission denied \([^)\n]*publickey[^)\n]*\))"),
        "wrong-key",
        "the key of the launcher is not accepted: {0}",
        "Set sshAuthMountPath to .ssh in the home of the user that runs ssh and sshd, and use no keys of your own.",
        _SSH,
    ),
    Known(
        re.compile(r"Host key verification failed"),
        "host-key",
        "ssh does not know the workers' host keys (Host key verification failed)",
        "Set StrictHostKeyChecking no and UserKnownHostsFile /dev/null in the image's ssh_config.",
    ),
    Known(
        re.compile(r"Could not resolve hostname ([^\s:]+)"),
        "no-name",
        "the launcher found no address for {0}",
        "The worker was not ready: set launcherCreationPolicy to WaitForWorkersReady, and the annotation "
        "training.openshift.io/worker-readiness to the port of sshd.",
    ),
    Known(
        re.compile(r"connect to host (\S+) port (\d+): Connection refused"),
        "no-sshd",
        "nobody listens on port {1} of {0}",
        "Start sshd in the worker on that port, or tell ssh the one it uses. Where sshd starts late, set the "
        "annotation training.openshift.io/worker-readiness to that port.",
    ),
    Known(
        re.compile(r"connect to host (\S+) port (\d+): (Connection timed out|No route to host|Network is unreachable)"),
        "no-route",
        "{0} cannot be reached on port {1}: {2}",
        "A NetworkPolicy may be in the way (kubectl get networkpolicy), or a service mesh: ask your administrator.",
    ),
    Known(
        re.compile(
            r'"plm_rsh_agent" was set to a path|No available launching agents were found'
            r"|execvp error on file (?:ssh|rsh)\b"
            r"|ssh: command not found|ssh: not found"
        ),
        "no-ssh",
        "the launcher's image has no ssh",
        "Install an ssh client in the image (openssh-client, openssh-clients).",
    ),
    Known(
        re.compile(r"unable to open (?:the )?host ?file:\s*(\S+)|(\S+) no such file, or not a regular file"),
        "wrong-hostfile",
        "mpirun cannot open the hostfile {0}",
        "Use /etc/mpi/hostfile, which the operator writes, or leave --hostfile (-f, -machinefile) out.",
        _COMMAND,
    ),
    Known(
        re.compile(r"not enough slots available in the system to satisfy the (\d+)"),
        "slots",
        "mpirun is to start {0} ranks, and the hostfile has fewer slots",
        "Lower -np, or raise slotsPerWorker or the number of workers.",
        _COMMAND,
    ),
    Known(
        re.compile(r"(?:mpirun|prterun) has detected an attempt to run as root"),
        "as-root",
        "mpirun does not run as root unless it is told to",
        "Add --allow-run-as-root to mpirun, or use an image with a user of its own.",
    ),
    Known(
        re.compile(
            r"(?:could not access\s+or execute an|access an) executable:\s+Executable: (\S+)|execvp error on file (\S+)"
        ),
        "no-program",
        "the program {0} is not there, or cannot be executed, on a worker",
        "Use the same image for launcher and workers, or correct the path.",
    ),
    Known(
        re.compile(r"(?:sshd: )?no hostkeys available"),
        "no-host-keys",
        "sshd has no host keys",
        "Make them in the image (ssh-keygen -A), or tell sshd of a HostKey that its user can read.",
        _SSH,
    ),
    Known(
        re.compile(r"Missing privilege separation directory: (\S+)"),
        "sshd-directory",
        "sshd lacks the directory {0}",
        "Make it in the image, or before sshd starts.",
    ),
    Known(
        re.compile(r"Unable to run bstrap_proxy on (\S+)"),
        "no-proxy",
        "Intel MPI could not start anything on {0}",
        "Try it by hand: kubectl exec into the launcher, and ssh to that worker.",
        _SSH,
    ),
    Known(
        re.compile(r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY"),
        "gpu-memory",
        "the GPU's memory is too small (CUDA out of memory)",
        "Use smaller batches, more workers, or GPUs with more memory.",
    ),
    Known(
        re.compile(r"/dev/shm.{0,300}No space left on device|unable to (?:create|allocate) shared memory|Bus error"),  # noqa: S108
        "shared-memory",
        "/dev/shm is too small",  # noqa: S108
        "Mount an emptyDir with medium Memory at /dev/shm.",
    ),
    Known(
        re.compile(
            r"daemon failed to report back|unable to reliably start one or more daemons"
            r"|lost communication with a remote daemon|Launch proxy failed"
        ),
        "no-daemon",
        "mpirun could not start its daemon on a worker",
        "Try it by hand: kubectl exec into the launcher, and ssh to that worker; both need the same MPI release.",
        _SSH,
    ),
)


def known(log: str) -> Known | None:
    """The first of these that the log has, with what it names filled in."""
    # Patterns look back within a line, so a long one would take its square.
    lines = "\n".join(line[:MAX_LOG_LINE_CHARACTERS] for line in log.splitlines())
    for each in KNOWN:
        if found := each.pattern.search(lines):
            named = [group for group in found.groups() if group]
            text = each.text.format(*(shown[:200] for shown in named), *("?",) * 3)
            return each._replace(text=text)
    return None


def last(log: str) -> str:
    """The last line that says something."""
    lines = (line.strip(" -*=\t\r") for line in reversed(log.splitlines()))
    return next((line for line in lines if line), "")
