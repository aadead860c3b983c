"""How workers start sshd, and on which port. The image and the job decide both; the operator sets neither."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from webhook.api import mca, operator_env, shell
from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.api.pod import Container

# The default port of sshd, and the port in upstream's base image (mpi-operator `build/base/Dockerfile`).
USUAL: Final = frozenset((22, 2222))
NAMES: Final = frozenset(("ssh", "sshd"))
WAIT_CONTAINER: Final = "wait-for-workers"
"""The launcher's init container that waits until sshd answers on every worker."""
# Variables of the launcher that contain options of ssh.
SSH_OPTIONS: Final = frozenset(
    (
        "OMPI_MCA_plm_rsh_args",
        "PRTE_MCA_plm_ssh_args",
        "HYDRA_LAUNCHER_EXTRA_ARGS",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
        "PDSH_SSH_ARGS_APPEND",
    )
)
_PORT_OF_TOOL: Final = re.compile(r"--ssh[-_]port[= ](\d{1,5})\b")  # an option of horovodrun and of deepspeed
_PARAMETERS: Final = frozenset(("plm_rsh_args", "plm_ssh_args"))

# Options of sshd and ssh without a value. They may share a word with an option that has a value.
_FLAGS: Final = "-[46DdeGiqTtVv]*"
_OPTION: Final = re.compile(rf"(?:^|\s)(?:{_FLAGS}p|-o\s*(?i:Port)\s?[= ])\s*(\d{{1,5}})(?=\s|\Z)")
_CALL: Final = re.compile(
    r"(?:^|[\s;&|(/'\"])(?:sshd(?=[\s;&|)'\"]|\Z)|(?:service\s+|init\.d/)sshd?\s+(?:re)?start\b)([^\n;&|]*)"
)
# A script with this word may write a port into a configuration file.
_CONFIGURED: Final = re.compile(r"\bPort\b")
# Options of sshd for a configuration file, or for a port that is a shell variable.
_UNCLEAR: Final = re.compile(rf"\s{_FLAGS}[fp]")
# A command of a script, and its end. The & of a redirection does not end a command.
_COMMAND: Final = re.compile(r"((?>(?:[^\n;&|()]|(?<=[<>])&|&(?=>))+))(&&|\|\||[\n;&|()]|\Z)")
# sshd as a command; the group is its folder.
_SSHD: Final = re.compile(
    rf"\s*+(?>(?:(?:{'|'.join(map(re.escape, shell.KEYWORDS))})\s++)*){shell.STARTS}([^\s'\"=]*/)?sshd(?=\s|\Z)"
)
_QUOTED: Final = re.compile(r""""[^"]*+"|'[^']*+'""")
_GROUP_INSTEAD: Final = re.compile(r"\|\|\s*+\{[^{}]*+\}")
SHORT: Final = frozenset(
    ("chmod", "chown", "cp", "echo", "exit", "export", "ln", "mkdir", "rm", "sed", "set", "ssh-keygen", "touch", "true")
)
"""Programs that end immediately."""
# Options that keep sshd in the foreground, and options with which sshd does not listen.
_STAYS: Final = re.compile(r"\s-[46eqr]*[Dd]")
_TELLS: Final = re.compile(r"\s-[46DdeqrR]*[GQTVit]|[$`]")


def port(job: MPIJob, default: int | None) -> int | None:
    """The port of sshd: `default` if sshd runs with its usual configuration, None if the port is unknown.

    sshd's options, the worker's `ports` or the launcher's options for ssh set the port.
    """
    if job.worker is None or not job.worker.template.containers:
        return None
    container = job.worker.template.containers[0]
    script = text(container).replace("\\\n", " ")
    calls = _CALL.findall(script)
    for number in (*map(_in_options, calls), _declared(container), *map(_in_options, _options_of_ssh(job))):
        if number is not None:
            return number
    usual = calls and not _CONFIGURED.search(script) and not any(map(_UNCLEAR.search, calls))
    return default if usual or not script else None


def starts(container: Container) -> bool:
    """Whether the container starts sshd. If the job sets no command, the image is assumed to start sshd."""
    return not container.argv or _CALL.search(text(container)) is not None


def listened(container: Container) -> Sequence[int] | None:
    """The ports in sshd's options; None if the container may run more than sshd.

    A container without command and arguments is assumed to run sshd alone.
    """
    by_name = container.command and shell.command(container.argv).program == "sshd"
    return [*map(int, _OPTION.findall(text(container)))] if by_name or not container.argv else None


class Call(NamedTuple):
    """A command that starts sshd. It is in a shell script, or is the command of a container."""

    by_path: bool
    options: str
    in_background: bool = False

    @property
    def in_foreground(self) -> bool:
        return _STAYS.search(self.options) is not None


def calls(container: Container) -> tuple[Sequence[Call], Call | None]:
    """All starts of sshd in the container's command or shell script, and the last command if it starts sshd.

    The second value is None if the last command may be another program. Without a command the image decides how `args`
    are used, so only a shell script in `args` is read.
    """
    command = shell.command(container.argv)
    if command.program == "sshd" and container.command:
        call = _call(" ".join(command.words), "")
        return [call] if call else [], call
    script = command.script
    if "sshd" not in script or shell.has_here_document(script):
        return [], None
    script = _GROUP_INSTEAD.sub("|| false", _QUOTED.sub("''", shell.plain(script)))
    commands = [match for match in _COMMAND.finditer(script) if match[1].strip()]
    sshd_calls = [_call(*match.groups()) for match in commands]
    last, instead = None, False
    for call, match in zip(sshd_calls, commands, strict=True):
        # The command after || runs only if sshd fails.
        if call or not (instead or match[1].split()[0] in SHORT):
            last = call
        instead = call is not None and match[2] == "||"
    return [call for call in sshd_calls if call], last


def ends_in(container: Container) -> bool:
    return calls(container)[1] is not None


def _call(command: str, end: str) -> Call | None:
    """None if the command does not start sshd, is in parentheses or a pipe, or makes sshd print something and end."""
    match = _SSHD.match(command)
    if match is None or end in {"(", ")", "|"}:
        return None
    options = command[match.end() :]
    if "<" in options or ">" in options:
        options = shell.REDIRECTION.sub(" ", options)
    return None if _TELLS.search(options) else Call((match[1] or "")[:1] in {"/", "$", "~"}, options, end == "&")


def text(container: Container) -> str:
    return " ".join(container.argv)


def _in_options(text: str) -> int | None:
    match = _OPTION.search(text)
    return _valid(int(match[1])) if match else None


def _declared(container: Container) -> int | None:
    ports = [port for port in container.ports or () if port.protocol in {None, "TCP"}]
    numbers = [port.container_port for port in ports if port.name in NAMES or port.container_port in USUAL]
    return _valid(numbers[0]) if len(numbers) == 1 and numbers[0] is not None else None


def _options_of_ssh(job: MPIJob) -> Iterator[str]:
    for container in job.launcher.template.containers[:1] if job.launcher else ():
        command_line = text(container)
        yield from (f"-p {number}" for number in _PORT_OF_TOOL.findall(command_line))
        if any(name in command_line for name in _PARAMETERS):
            for call in job.mpirun_calls:
                yield from (value for name, value in mca.parameters(call.words) if name in _PARAMETERS)
        own = [variable for variable in container.env or () if variable.name in SSH_OPTIONS]
        overwritten = operator_env.values(LAUNCHER, job) if own else ()
        yield from (variable.value or "" for variable in own if variable.name not in overwritten)


def _valid(number: int) -> int | None:
    return number if 0 < number < 65536 else None
