"""The launcher starts ranks on the workers, and the workers run sshd for the launcher's connections.

Without the operator's hostfile, `/etc/mpi/hostfile`, horovodrun and deepspeed run all ranks on the launcher. torchrun,
accelerate and a plain Python program run all ranks on the launcher if mpirun does not start them. The workers and their
GPUs then stay idle. Open MPI, MPICH and Intel MPI get the path of the hostfile from the operator. horovodrun fails if
it gets both hosts and a hostfile.

mpirun connects to workers only by ssh. It cannot use a worker that runs `sleep infinity` or the training itself, or a
worker that ends after it has installed or started sshd.

The ranks on different workers do not find each other if the address of the first rank (`MASTER_ADDR`, `--master-addr`
or `--rdzv-endpoint`) is localhost, the launcher, a name such as `train-0` that no worker has, or `$(hostname)`, which a
shell of the launcher replaces by the launcher's name. A pod with `dnsPolicy: Default` cannot resolve the names of
workers.

A violation is a warning, because a program may start processes on the workers in other ways. Nothing is reported if the
command is a file of the image, or if it mentions ssh, hosts or another program that starts ranks.
"""

import re
from collections.abc import Iterator
from posixpath import join, normpath
from typing import Final

from msgspec.structs import replace

from webhook.api import mca, mpirun, programs, shell, sshd
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, replica_path
from webhook.api.mpirun import HOSTFILE, Invocation
from webhook.api.mpirun_options import HOSTS
from webhook.api.pod import Container
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import WarningRuleSettings
from webhook.rules import Violation, rule, shortened
from webhook.rules.limits import MAX_SHOWN_WORDS_CHARACTERS

_PYTHON: Final = re.compile(r"python[\d.]*")
_ON_ITS_NODE: Final = re.compile(r"(?:accelerate(?: |\.commands\.)|torch\.distributed\.)launch")
# Texts that may name the workers, or start processes on them.
_OTHER_WAYS: Final = re.compile(
    r"ssh|hosts\b|host[-_]?(?:file|list)|\s--?(?:host|np|nprocs)[\s=]|launch|spawn|submit|(?:node|machine)[-_]?rank"
    r"|dask|spark|deepspeed|horovod|(?<![a-z])(?:(?:open|o)?mpi|ray\b"
    r"|(?:driver|entry\w*|job|pipeline|run|runner|start|workflow|wrapper)\.py)",
    re.IGNORECASE,
)
_NAMES_HOSTS: Final = re.compile(
    r"^(?!(?:OMPI|PRTE|PMIX|HYDRA|I_MPI)_).*(?:ssh|host(?!name)|/etc/mpi\b)", re.IGNORECASE | re.MULTILINE
)
_OTHER_AGENT: Final = re.compile(r"[rs]sh_agent|launcher|bootstrap|\bexec-?agent", re.IGNORECASE)
_HERE: Final = re.compile(r"(?:localhost|127\.0\.0\.1)(?::\d+)?(?:,(?:localhost|127\.0\.0\.1)(?::\d+)?)*")
# The name of a machine, or of a worker without the correct name of the Service. The hostfile has `worker.service`.
_UNKNOWN: Final = re.compile(r"(?:^|,)([\w-]*worker-\d+(?:\.[\w-]+-worker)?|(?:host|node)-?\d+)(?=[:,]|\Z)")
_OF_HOSTS: Final = frozenset(("H", "host", "hosts"))
_ADDRESS: Final = re.compile(
    r"(?:MASTER_ADDR=|--master[_-]addr[= ]|--rdzv[_-]endpoint[= ])"
    r'"?(\$\(hostname[^()]*\)|`hostname[^`]*`|\$\{?HOSTNAME\b\}?|[\w.-]*)'
)
# A host that is a different pod for each worker, or the name of a pod that is not a worker of the job.
_NOT_RANK_0: Final = re.compile(r"localhost|127\.0\.0\.1|[\w-]+-(?:worker-\d+|launcher)")
_DEEPSPEED_HOSTFILE: Final = re.compile(r"(?<!\S)(?:-H|--hostfile)[ =](\S+)")
_SERVICE: Final = re.compile(r"(?:\bservice\s+|/init\.d/)sshd?\s+(?:re)?start\s*\Z")
_EMPTY: Final = '""'
_USE: Final = f"--hostfile {HOSTFILE}"
_INSTEAD: Final = f"Use {_USE} instead."
_COMMAND: Final = f"{replica_path(WORKER)}.template.spec.containers[0].command"


@rule("idle-workers", WarningRuleSettings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: WarningRuleSettings, ctx: Context) -> Iterator[Violation]:
    if not job.workers or job.worker is None or job.launcher is None:
        return
    workers, launchers = job.worker.template.containers, job.launcher.template.containers
    if not workers or not launchers:
        return
    launcher, worker = launchers[0], workers[0]
    for _, path, replica in job.replicas:
        pod = replica.template.spec  # with hostNetwork the operator sets dnsPolicy
        if pod and pod.dns_policy == "Default" and not pod.host_network and b'"nameservers"' not in bytes(ctx.document):
            yield Violation(f"{path}.template.spec.dnsPolicy", "the node's DNS knows no workers", "Remove it.")
    faults = [*_launcher(launcher, job.mpirun_calls), *_address(launcher, job)]
    as_command = worker if worker.command else replace(worker, command=worker.args, args=None)
    started = programs.started_by(as_command) or frozenset()
    fault, fix = _end(worker, started)
    if not (fault or "sshd" in started or sshd.starts(worker)):
        in_other_ways = _has_agent(launcher) or b'"postStart"' in bytes(ctx.document)
        if in_other_ways or any("ssh" in sshd.text(sidecar) for sidecar in workers[1:]):
            return
        program = _only(worker, started)
        is_tool = program in programs.TOOLS
        # Without mpirun the workers may run ranks. If only `args` is set, the image's entry point may start sshd.
        if program is None or not (job.mpirun_calls or (is_tool and faults)) or (is_tool and not worker.command):
            return
        fault = f"runs {shortened(program, MAX_SHOWN_WORDS_CHARACTERS) or _EMPTY}, no sshd"
        fix = "Remove it, or run /usr/sbin/sshd -De."
    if fault:
        yield Violation(_COMMAND if worker.command else _COMMAND.replace("command", "args"), fault, fix)
    for fault, fix in faults:
        yield Violation(replica_path(LAUNCHER), fault, fix)


def _end(worker: Container, started: frozenset[str]) -> tuple[str, str]:
    """(fault, fix) of a worker that ends early; empty for any other worker."""
    if "systemctl" in started and "sshd" not in started:
        return "a container has no systemctl", "Run /usr/sbin/sshd -De instead."
    text = sshd.text(worker)
    if "start" in text and _SERVICE.search(text):
        fix = "Add && sleep infinity." if shell.script(worker.argv)[0] else "Write [/usr/sbin/sshd, -De]."
        return "ends once it has started sshd", fix
    installs = started & programs.INSTALLERS and started <= programs.INSTALLERS | sshd.SHORT
    if installs and "ssh" in text and not sshd.starts(worker):
        return "ends without sshd", "Add && mkdir -p /run/sshd; /usr/sbin/sshd -De."
    return "", ""


def _only(worker: Container, started: frozenset[str]) -> str | None:
    """The only program of the worker; None if another program may start sshd."""
    others = programs.TOOLS | programs.INSTALLERS | sshd.SHORT
    without_sshd = others | mpirun.LAUNCHERS | mpirun.ON_EACH_NODE | shell.SHELLS | {"", "jupyter"}
    if not started or not all(name in without_sshd or _PYTHON.fullmatch(name) for name in started):
        return None
    if started & programs.INSTALLERS and "ssh" in sshd.text(worker):  # some packages start sshd when they are installed
        return None
    return max(started, key=lambda name: (name not in others, name in programs.TOOLS, name == "sleep", name))


def _has_agent(launcher: Container) -> bool:
    """Whether the launcher may start daemons by means other than ssh."""
    names = " ".join(variable.name for variable in launcher.env or ())
    return _OTHER_AGENT.search(f"{sshd.text(launcher)} {names}") is not None


def _launcher(launcher: Container, calls: tuple[Invocation, ...]) -> Iterator[tuple[str, str]]:
    for call in calls:
        yield from _call(launcher, call, alone=len(calls) == 1)
    started = None if calls else programs.started_by(launcher)
    if not started:
        return
    text = sshd.text(launcher)
    mounts = [mount.mount_path for mount in launcher.volume_mounts or ()]
    own = sorted(name for name in started if name in mpirun.ON_EACH_NODE - {"deepspeed"} or _PYTHON.fullmatch(name))
    env = "\n".join(f"{variable.name}={variable.value}" for variable in launcher.env or ())
    named = _OTHER_WAYS.search(_ON_ITS_NODE.sub("", text)) or _NAMES_HOSTS.search(env)
    of_others = named or not started <= (programs.TOOLS | programs.INSTALLERS).union(own)
    has_deepspeed = "deepspeed" in started or "-m deepspeed.launcher.runner" in text
    if has_deepspeed and not re.search(r"hostfile|/job\b|no_ssh|node_rank", " ".join((text, *mounts))):
        yield "deepspeed runs on the launcher alone", f"Add {_USE}."
    elif has_deepspeed and (hostfile := _DEEPSPEED_HOSTFILE.search(text)):
        yield from _missing(launcher, hostfile[1])
    elif own and not of_others:
        name = next((program for program in own if not _PYTHON.fullmatch(program)), "")
        fault = f"{name} runs on the launcher alone" if name else f"workers stay idle unless {own[0]} calls mpirun"
        yield fault, "Start it with mpirun."


def _address(launcher: Container, job: MPIJob) -> Iterator[tuple[str, str]]:
    if not job.mpirun_calls or job.workers < 2:
        return
    env = [variable for variable in launcher.env or () if "ADDR" in variable.name or "--" in (variable.value or "")]
    text = "\n".join((sshd.text(launcher), *[f"{variable.name}={variable.value}" for variable in env]))
    if not ("ADDR=" in text or "addr" in text or "endpoint" in text):
        return
    given = _ADDRESS.findall(text)
    by_shell = [address for address in given if address[:1] in {"$", "`"}]
    if by_shell and job.spec.run_launcher_as_worker:  # the launcher has the first rank
        return
    name = job.metadata.name or "<job>"
    if given and all(address in by_shell or _is_no_worker(address, name) for address in given):
        fault = f"no other worker finds {given[0][:30]}"
        if by_shell:
            fault = f"{by_shell[0][:15]} is not the host of rank 0"
        yield fault, f"Write {name}-worker-0.{name}."


def _is_no_worker(address: str, name: str) -> bool:
    """Whether no worker of the job `name` has this address. Workers find each other by their bare names too."""
    number = address.removeprefix(f"{name}-")
    of_other = _NOT_RANK_0.fullmatch(address) and not number.startswith("worker-")
    return bool(of_other) or (number != address and number.isdecimal())


def _call(launcher: Container, call: Invocation, *, alone: bool) -> Iterator[tuple[str, str]]:
    if call.options is None:
        return
    hosts = [(name, values[0]) for name, values in call.options if name in HOSTS and values]
    of_mca = [values for name, values in call.options if name in mca.OPTIONS and "hostfile" in values[0]]
    hosts += [(name, value) for name, value in of_mca if name.endswith("default_hostfile")]
    if call.program == "horovodrun" and not hosts:
        yield "horovodrun runs on the launcher alone", f"Add {_USE}."
    if call.program == "horovodrun" and any(name == "hostfile" for name, _ in hosts):
        for name, value in (each for each in hosts if each[0] in _OF_HOSTS):
            yield "has both hosts and a hostfile", f"Remove {'-' * min(len(name), 2)}{name} {shortened(value, 30)}."
        return
    for name, value in hosts:
        if name in _OF_HOSTS:
            if alone and _HERE.fullmatch(value) and call.program == "horovodrun":
                yield f"-{name}: all ranks on the launcher", _INSTEAD
            elif alone and _HERE.fullmatch(value):
                yield f"-{name} {value[:30]} runs all ranks on the launcher", "Remove it."
            elif unknown := _UNKNOWN.search(value):
                host = unknown[1] if len(unknown[1]) < 17 else f"...{unknown[1][-13:]}"
                yield f"-{name}: no host {host}", _INSTEAD
            elif call.program == "horovodrun" and ("/" in value or "hostfile" in value):
                yield f"-{name} takes hosts, not a file", f"Write {_USE}."
        else:
            yield from _missing(launcher, value)


def _missing(launcher: Container, path: str) -> Iterator[tuple[str, str]]:
    """A fault if no volume contains the file, and no program could write it."""
    if "$" in path or path == HOSTFILE or sshd.text(launcher).count(path) > 1:
        return
    started = programs.started_by(launcher)
    if not started or not started <= programs.TOOLS | mpirun.LAUNCHERS | {"deepspeed"}:
        return
    mounts = [mount.mount_path for mount in launcher.volume_mounts or ()]
    whole = f"{normpath(join('/', path))}/"
    if not any(whole.startswith(f"{normpath(mount)}/") or not path.startswith("/") for mount in mounts):
        yield f"nothing in the job writes {shortened(path, MAX_SHOWN_WORDS_CHARACTERS)}", f"Use {HOSTFILE}."
