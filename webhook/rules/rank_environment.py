"""Environment variables for the ranks reach the ranks.

sshd gives the ranks on a worker a new environment, without the variables in the `env` of the worker's container. MPICH,
Intel MPI and horovodrun pass on the launcher's variables. Open MPI passes on only variables that `-x NAME` or `-x
NAME=VALUE` names, and variables that begin with `OMPI_`.

A warning names variables for ranks, such as `NCCL_DEBUG` and `PYTHONPATH`, that have no effect. These are variables of
an Open MPI launcher that no `-x` names, even if the launcher's script exports them, and variables that only the worker
has. If a container starts only mpirun or sshd, the warning also names other variables that only ranks could read, such
as `HF_HOME`, and `PATH` if the container's command is a path. Variables `PATH` and `LD_LIBRARY_PATH` with only folders
of Open MPI are left out if mpirun is started by its path or with `--prefix`: mpirun then sets these folders on the
workers.

A warning also names an interface of nodes in `NCCL_SOCKET_IFNAME` or `GLOO_SOCKET_IFNAME`, such as `ib0`. A pod has
such an interface only with `hostNetwork`, an annotation for more networks, or a resource claim.

No variable is reported if the launcher's command line cannot be read, if the ranks' command sources a file, or if the
worker runs more than sshd. Nothing is reported either if `OMPI_MCA_mca_base_env_list` is set, because Open MPI 4 fails
with both this list and `-x`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from webhook.api import mca, mpirun, programs, shell, sshd
from webhook.api.exports import Exports
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, replica_path
from webhook.api.mpirun import Invocation
from webhook.api.pod import Container, EnvVar, PodTemplate
from webhook.kit.context import Context
from webhook.kit.settings import WarningRuleSettings
from webhook.rules import Violation, rule
from webhook.rules.limits import MAX_SHOWN_VARIABLES

DEFAULT_NAMES: Final = (
    *("NCCL_*", "RCCL_*", "UCX_*", "FI_*", "HCOLL_*", "SHARP_*", "GLOO_*", "OMP_NUM_THREADS"),
    *("LD_LIBRARY_PATH", "PYTHONPATH"),
)
# Variables that mpirun, ssh, a shell or the container runtime may read.
_NOT_OF_RANKS_ALONE: Final = re.compile(
    r"(?:ASCEND|HWLOC|HYDRA|I_MPI|K_MPI|KUBERNETES|LC|MELLANOX|MPIEXEC|MY|NODE|NVIDIA|OMPI|OPAL|ORTE|PMIX|POD|PRTE|SSH)"
    r".*|.*_VISIBLE_DEVICES|DEBIAN_FRONTEND|HOME|HOSTNAME|LANG|LD_PRELOAD|LOGNAME|SHELL|TERM|TMPDIR|TZ|USER"
)
# Variables that the launcher's image may set itself.
_OF_IMAGES: Final = frozenset(("LD_LIBRARY_PATH", "PATH", "PYTHONPATH"))
# Other ways to pass variables on.
_OTHER_WAYS: Final = (mca.ENV_LIST, "/proc/1/environ", "SendEnv")
# With one of these texts, the command of a worker may read or store the environment.
_USES_ENVIRONMENT: Final = ("env", "export", "declare", "profile", "bashrc", "/proc/")
# With this text, the command of a rank sources a file, which may set variables.
_SOURCES: Final = re.compile(r"(?:\A|[\s;&|])(?:source|\.)[ \t]+\S")
_PREFIX: Final = re.compile(r"(?<![^\s;&|(])(/[^\s;&|()]*)/bin/(?:mpirun|mpiexec|orterun|prterun)(?!\S)")
# Parts of PATH and LD_LIBRARY_PATH that add nothing to the default values on a worker.
_ADDING_NOTHING: Final = frozenset(
    (
        *("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", ""),
        *("$LD_LIBRARY_PATH", "${LD_LIBRARY_PATH}", "$PATH", "${PATH}"),
    )
)
_ENV_LIST: Final = f"{mca.ENV_PREFIX}{mca.ENV_LIST}"
_RUNS_ONLY_MPIRUN: Final = programs.TOOLS | mpirun.LAUNCHERS
_PATTERN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_NOTHING: Final = "(?!)"
_SET: Final = re.compile(r"(?<!\w)(\w++)=", re.ASCII)
# The literal start of the pattern makes the search fast.
_OF_NODES: Final = re.compile(
    r"_SOCKET_IFNAME(?<=\b((?:GLOO|NCCL)_SOCKET_IFNAME))[= ][\"'=]*((?:bond|en[ops]|ib)\w*)(?![\w,])"
)
_COMMAND: Final = re.compile(r"\A|[\n;&|({]")
_WORD: Final = re.compile(r"\w+", re.ASCII)
_NOT_SET: Final = re.compile(r"\w++(?!=)", re.ASCII)


def _patterns(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not _PATTERN.fullmatch(name):
            raise ValueError(f'"{name}" is not the name of a variable, nor its start and *')
    return names


class Settings(WarningRuleSettings):
    """The variables for ranks."""

    names: Annotated[tuple[str, ...], AfterValidator(_patterns)] = Field(
        DEFAULT_NAMES, description="Names of variables for ranks; `*` at the end matches any text."
    )
    others: bool = Field(
        True,
        description="Also report variables with other names if a container starts only mpirun or sshd.",
    )

    @cached_property
    def for_ranks(self) -> re.Pattern[str]:
        names = (f"{name[:-1]}[A-Za-z0-9_]*" if name.endswith("*") else name for name in self.names)
        return re.compile("|".join(names) or _NOTHING)


@rule("rank-environment", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    yield from _interfaces(job)
    calls = job.mpirun_calls
    if not calls or job.launcher is None:
        return
    launcher = job.launcher.template.containers[0]
    workers = job.worker.template.containers if job.worker else ()
    worker = workers[0] if workers else Container()
    env = [*(launcher.env or ()), *(() if calls[0].without_shell else _exported(launcher))]
    if not env and not worker.env:
        return
    script, exports = sshd.text(launcher), Exports.of(job)
    words = "\n".join(["\n".join(call.words) for call in calls])
    own = [variable.name for variable in launcher.env or ()]
    if not exports.certain or _ENV_LIST in own:
        return
    for way in _OTHER_WAYS:
        if way in script:
            return
    if (" " in words or "\t" in words) and _SOURCES.search(words):
        return
    if exports.selective:
        started = programs.started_by(launcher)
        alone = started is not None and started <= _RUNS_ONLY_MPIRUN
        names = _names(launcher, env, exports.named, settings, alone=alone, script=script, word=_NOT_SET)
        lost = [name for name in names if not exports.names(name)]
        if lost:  # the worker may pass them on, and the command of the ranks may set them
            carried = _of_prefix(env, script, calls)
            if _uses_environment(worker):
                carried.update([variable.name for variable in worker.env or ()])
            if any(f"{name}=" in words for name in lost):
                carried.update(_SET.findall(words))
            lost = [name for name in lost if name not in carried]
            fix = f"Add -x {' -x '.join(lost[:MAX_SHOWN_VARIABLES])} to mpirun."
            yield from _violation(LAUNCHER, launcher, lost, fix)
    passed_on = {*own, *exports.assigned, *(exports.named & _OF_IMAGES)}
    env = [variable for variable in worker.env or () if variable.name not in passed_on]
    if env and not launcher.env_from and _only_sshd(worker):
        # The launcher's script may pass on a variable that it sets.
        names = _names(worker, worker.env or (), passed_on, settings, alone=True, script=script, word=_WORD)
        missing = [name for name in names if f"{name}=" not in script]
        how = ", with -x for mpirun" if exports.selective else ""
        fix = f"Set {'it' if len(missing) == 1 else 'them'} on the launcher{how}."
        yield from _violation(WORKER, worker, missing, fix)


def _interfaces(job: MPIJob) -> Iterator[Violation]:
    """Reports interfaces that only nodes have. A pod has them only with hostNetwork, Multus or a resource claim."""
    pod = job.worker.template if job.worker else PodTemplate()
    if pod.spec is None or pod.spec.host_network or pod.spec.resource_claims or "network" in " ".join(pod.annotations):
        return
    for _, path, replica in job.replicas:
        for container in replica.template.containers[:1]:
            where = f"{path}.template.spec.containers[0]"
            if found := _OF_NODES.search(sshd.text(container)):
                fix = f"Write {found[1]}=eth0."
                yield _no_interface(f"{where}.{'args' if container.args else 'command'}", found[2], fix)
            for index, one in enumerate(container.env or ()):
                if "_SOCKET_IFNAME" in one.name and (found := _OF_NODES.search(f"{one.name}={one.value}")):
                    yield _no_interface(f"{where}.env[{index}]", found[2], "Set value to eth0.")


def _no_interface(path: str, interface: str, fix: str) -> Violation:
    return Violation(path, f"a pod has no interface {interface[:15]}", fix, advisory=True)


def _violation(role: str, container: Container, names: Sequence[str], fix: str) -> Iterator[Violation]:
    if names:
        more = f" and {len(names) - MAX_SHOWN_VARIABLES} more" if len(names) > MAX_SHOWN_VARIABLES else ""
        verb = "does" if len(names) == 1 else "do"
        fault = f"{', '.join(names[:MAX_SHOWN_VARIABLES])}{more} {verb} not reach the ranks on workers"
        env = (f"env[{index}]" for index, variable in enumerate(container.env or ()) if variable.name == names[0])
        field = next(env, "args" if container.args else "command")
        path = f"{replica_path(role)}.template.spec.containers[0].{field}"
        yield Violation(path, fault, fix=fix, advisory=True)


def _exported(container: Container) -> Iterator[EnvVar]:
    """Variables that the script sets for mpirun: by `export NAME=value`, or in front of mpirun."""
    script = shell.plain(shell.script(shell.unwrapped(container.argv))[0])
    for start in _COMMAND.finditer(script) if "=" in script else ():
        words, _ = shell.words(script, start.end(), len(script))
        names = [word.rpartition("/")[2] for word in words]
        end = next((index for index, name in enumerate(names) if name in mpirun.LAUNCHERS), 0)
        given = words if "export" in words[:2] else words[:end]
        yield from (EnvVar(set_by[1], word[set_by.end() :]) for word in given if (set_by := _SET.match(word)))


def _names(
    container: Container,
    env: Sequence[EnvVar],
    passed_on: set[str],
    settings: Settings,
    *,
    alone: bool,
    script: str,
    word: re.Pattern[str],
) -> list[str]:
    """The names of the variables in `env` that are for ranks, without the names in `passed_on`.

    `alone` is True if the container starts only mpirun or sshd. Other variables than the settings' `names` are then for
    ranks too, except variables with a `fieldRef` and variables whose name is a word of the script or of another
    variable's value. `word` matches such words in the script.
    """
    others, by_path = alone and settings.others, "/" in (container.command or ("",))[0]
    is_for_ranks = settings.for_ranks.fullmatch
    names: dict[str, bool] = {}
    for variable in env:
        name = variable.name
        if name in passed_on:
            continue
        by_field = variable.value_from and variable.value_from.field_ref
        if is_for_ranks(name):
            names[name] = True
        elif others and not by_field and (by_path or name != "PATH") and not _NOT_OF_RANKS_ALONE.fullmatch(name):
            names[name] = False
    if False in names.values():
        values = " ".join([variable.value or "" for variable in env])
        if any(name in script or name in values for name, certain in names.items() if not certain):
            words = {*word.findall(script), *_WORD.findall(values)}
            return [name for name, certain in names.items() if certain or name not in words]
    return [*names]


def _of_prefix(env: Sequence[EnvVar], script: str, calls: Sequence[Invocation]) -> set[str]:
    """PATH and LD_LIBRARY_PATH if Open MPI sets all their folders on workers: by --prefix, or by mpirun's path."""
    paths = [variable for variable in env if variable.name in {"LD_LIBRARY_PATH", "PATH"} and variable.value]
    if not paths:
        return set()
    given = (values[0] for call in calls for name, values in call.options or () if name == "prefix" and values)
    prefixes = {prefix.rstrip("/") for prefix in (*given, *_PREFIX.findall(script))}
    own = {f"{prefix}/{folder}" for prefix in prefixes for folder in ("bin", "lib", "lib64")} | _ADDING_NOTHING
    return {variable.name for variable in paths if own.issuperset((variable.value or "").split(":"))}


def _only_sshd(container: Container) -> bool:
    starts_sshd = not container.argv or bool(sshd.calls(container)[0])
    return starts_sshd and not _uses_environment(container)


def _uses_environment(container: Container) -> bool:
    text = sshd.text(container).casefold()
    return any(word in text for word in _USES_ENVIRONMENT)
