"""The port on which the workers' sshd listens, as far as a job shows it. The operator leaves it to the image."""

import re
from collections.abc import Iterator
from typing import Final

from webhook.api import mca, mpirun, operator_env
from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.api.pod import Container

# The port of plain images, and of those made from upstream's (mpi-operator `build/base/Dockerfile`).
USUAL: Final = frozenset((22, 2222))
NAMES: Final = frozenset(("ssh", "sshd"))
WAIT_CONTAINER: Final = "wait-for-workers"
"""The init container of a launcher that waits until sshd answers on every worker."""
# Variables of the launcher with options of ssh.
SSH_OPTIONS: Final = frozenset(
    (
        "OMPI_MCA_plm_rsh_args",
        "PRTE_MCA_plm_ssh_args",
        "HYDRA_LAUNCHER_EXTRA_ARGS",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
    )
)
_PARAMETERS: Final = frozenset(("plm_rsh_args", "plm_ssh_args"))

# Options without a value, of sshd and of ssh, which may stand before one with a value in the same word.
_FLAGS: Final = "-[46DdeGiqTtVv]*"
_OPTION: Final = re.compile(rf"(?:^|\s)(?:{_FLAGS}p|-o\s*(?i:Port)\s?[= ])\s*(\d{{1,5}})(?=\s|\Z)")
_CALL: Final = re.compile(r"(?:^|[\s;&|(/])sshd(?=[\s;&|)]|\Z)([^\n;&|]*)")
# Its own configuration file, or a port that is written into one.
_CONFIGURED: Final = re.compile(r"\s-f|\bPort\b")
# Options of sshd with a configuration file, or with a port that is a variable of the shell.
_UNCLEAR: Final = re.compile(rf"\s{_FLAGS}[fp]")
# Where a shell expects a command.
_START: Final = r"(?:^|[\n;&|(]|\b(?:then|do|else)[ \t])[ \t]*+(?:[A-Za-z_]\w*+=[^\s;&|()]*+[ \t]++)*+(?:exec[ \t]++)?"
_WITHOUT_PATH: Final = re.compile(rf"{_START}(?:[\w.-]+/)?sshd(?=[ \t\n;&]|\Z)([^\n;&|#]*)")
_LAST: Final = re.compile(rf"{_START}(?:[^\s;&|()'\"]*/)?sshd((?:[ \t][^\n;&|#)]*+)?+)[;\s]*+\Z")
# What is no command in a script.
_NO_COMMAND: Final = re.compile(r""""[^"\n]*+"|'[^'\n]*+'|(?:^|(?<=\s))\#[^\n]*+""", re.MULTILINE)
# Options by which it stays in the foreground, and by which it does something else than to listen.
_STAYS: Final = re.compile(r"\s-[46eqr]*[Dd]")
_TELLS: Final = re.compile(r"\s-[46DdeqrR]*[GQTVit]|[$`]")


def port(job: MPIJob, default: int | None) -> int | None:
    """The port; `default` where sshd runs with its usual configuration, None where it may be any.

    It is in sshd's own options, in the worker's `ports`, or in the options of ssh that the launcher uses.
    """
    if job.worker is None or not job.worker.template.containers:
        return None
    container = job.worker.template.containers[0]
    script = text(container).replace("\\\n", " ")
    calls = _CALL.findall(script)
    for found in (*map(_in_options, calls), _declared(container), *map(_in_options, _options_of_ssh(job))):
        if found is not None:
            return found
    usual = calls and not _CONFIGURED.search(script) and not any(map(_UNCLEAR.search, calls))
    return default if usual or not script else None


def starts(container: Container) -> bool:
    """Whether the container's command is sshd, or a script in a shell that starts it."""
    program = container.argv[0].rpartition("/")[2] if container.argv else ""
    return program == "sshd" or (program in mpirun.SHELLS and bool(_CALL.search(text(container))))


def without_path(container: Container) -> bool:
    """Whether sshd is started by its name alone: it starts itself again, and refuses without an absolute path."""
    if _is_program(container):
        return not container.argv[0].startswith("/") and not _TELLS.search(f" {text(container)}")
    found = _WITHOUT_PATH.search(plain_script(container))
    return found is not None and not _TELLS.search(found[1])


def last_options(container: Container) -> str | None:
    """The options of the sshd that is the last thing that the container runs; None where that is something else."""
    if _is_program(container):
        options = " ".join(("", *container.argv[1:]))
    elif found := _LAST.search(plain_script(container)):
        options = found[1]
    else:
        return None
    return None if _TELLS.search(options) else options


def ends_in(container: Container) -> bool:
    """Whether sshd is the last thing that the container runs."""
    return last_options(container) is not None


def stays(options: str) -> bool:
    """Whether an sshd with these options goes on running where it was started."""
    return _STAYS.search(options) is not None


def ports(options: str) -> list[int]:
    """Those that the options of sshd name, in place of its configuration's."""
    return [int(found) for found in _OPTION.findall(options)]


def _is_program(container: Container) -> bool:
    return bool(container.argv) and container.argv[0].rpartition("/")[2] == "sshd"


def plain_script(container: Container) -> str:
    """What a shell runs, without comments and quoted words; empty for none, and for one with a here-document."""
    argv = container.argv
    found = mpirun.script(argv)[0] if argv and argv[0].rpartition("/")[2] in mpirun.SHELLS else ""
    return "" if "<<" in found else _NO_COMMAND.sub("''", found.replace("\\\n", " "))


def text(container: Container) -> str:
    """What the container runs."""
    return " ".join(container.argv)


def _in_options(text: str) -> int | None:
    match = _OPTION.search(text)
    return _valid(int(match[1])) if match else None


def _declared(container: Container) -> int | None:
    ports = [one for one in container.ports or () if one.protocol in {None, "TCP"}]
    found = [one.container_port for one in ports if one.name in NAMES or one.container_port in USUAL]
    return _valid(found[0]) if len(found) == 1 and found[0] is not None else None


def _options_of_ssh(job: MPIJob) -> Iterator[str]:
    for container in job.launcher.template.containers[:1] if job.launcher else ():
        if any(name in word for word in container.argv for name in _PARAMETERS):
            for call in mpirun.find(container.command, container.args, job.spec.mpi_implementation):
                yield from (value for name, value in mca.parameters(call.words) if name in _PARAMETERS)
        own = [one for one in container.env or () if one.name in SSH_OPTIONS]
        overwritten = operator_env.values(LAUNCHER, job) if own else ()
        yield from (one.value or "" for one in own if one.name not in overwritten)


def _valid(number: int) -> int | None:
    return number if 0 < number < 65536 else None
