"""Environment variables for the ranks are where mpirun passes them on.

mpirun starts the ranks on a worker through sshd, which gives them a new environment: the `env` of the worker's
container does not reach them. The launcher's `env` does, with MPICH, Intel MPI and horovodrun. Open MPI passes on only
what `-x NAME` or `-x NAME=VALUE` names, and variables that begin with `OMPI_`.

A warning names variables that only ranks read, such as `NCCL_DEBUG`, where they have no effect: on the launcher of an
Open MPI job without `-x`, or on the worker alone. Nothing is said where the launcher's command line cannot be read, or
the worker runs more than sshd: a script may pass variables on in ways of its own.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from webhook.api import mpirun, sshd
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, replica_path
from webhook.api.mpirun import Invocation
from webhook.api.mpirun_options import OPEN_MPI, PAIRS
from webhook.api.pod import Container, EnvVar
from webhook.kit.context import Context
from webhook.kit.mpirun_calls import mpirun_calls
from webhook.kit.settings import WarningRuleSettings
from webhook.rules import Violation, rule

DEFAULT_NAMES: Final = ("NCCL_*", "RCCL_*", "UCX_*", "FI_*", "HCOLL_*", "SHARP_*", "GLOO_*", "OMP_NUM_THREADS")
# How many names a message has, and how many variables of a container are looked at.
SHOWN: Final = 3
MAX_VARIABLES: Final = 1000
# What also passes variables on, and what passes on fewer than all.
_OTHER_WAYS: Final = ("mca_base_env_list", "/proc/1/environ")
_ONLY_SOME: Final = frozenset(("envlist", "envnone", "genvlist", "genvnone"))
# A worker that may do more with its environment than start sshd.
_USES_ENVIRONMENT: Final = re.compile(r"env|export|declare|profile|bashrc|/proc/", re.IGNORECASE)
_PATTERN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _patterns(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not _PATTERN.fullmatch(name):
            raise ValueError(f'"{name}" is not the name of a variable, nor its start and *')
    return names


class Settings(WarningRuleSettings):
    """Which variables are for ranks."""

    names: Annotated[tuple[str, ...], AfterValidator(_patterns)] = Field(
        DEFAULT_NAMES, description="Names of variables that only ranks read; `*` at the end stands for any text."
    )

    @cached_property
    def for_ranks(self) -> "Matcher":
        """Which variables are for ranks."""
        return Matcher(self.names)


@rule("rank-environment", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """What the launcher has and does not pass on; then what only the worker has."""
    launcher, worker = (replica.template.containers[:1] if replica else [] for replica in (job.launcher, job.worker))
    calls = mpirun_calls(job, ctx)
    if not calls or any(_unclear(call) for call in calls):
        return
    script = sshd.text(launcher[0])
    if any(way in script for way in _OTHER_WAYS):
        return
    selective = all(mpirun.dialect(call.program, job.spec.mpi_implementation) is OPEN_MPI for call in calls)
    own = _names(launcher[0], settings)
    if selective:
        exported = Matcher({name for call in calls for name in _exported(call)})
        lost = [name for name in own if not exported(name)]
        yield from _violation(LAUNCHER, lost, f"Add -x {' -x '.join(lost[:SHOWN])} to mpirun.")
    if worker and not launcher[0].env_from and _only_sshd(worker[0]):
        known = {*own, *(name for call in calls for name in _assigned(call))}
        # A name to which the launcher's script assigns may be passed on from there.
        alone = [name for name in _names(worker[0], settings) if name not in known and f"{name}=" not in script]
        fix = f"Set {'it' if len(alone) == 1 else 'them'} on the launcher{', with -x for mpirun' if selective else ''}."
        yield from _violation(WORKER, alone, fix)


def _violation(role: str, names: Sequence[str], fix: str) -> Iterator[Violation]:
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        fault = f"{', '.join(names[:SHOWN])}{more} {'does' if len(names) == 1 else 'do'} not reach the ranks on workers"
        yield Violation(f"{replica_path(role)}.template.spec.containers[0].env", fault, fix=fix, advisory=True)


def _unclear(call: Invocation) -> bool:
    return call.options is None or any(name in _ONLY_SOME for name, _ in call.options)


def _names(container: Container, settings: Settings) -> list[str]:
    """The variables of the container that are for ranks."""
    return [name for name in settings.for_ranks.among(container.env or ()) if _NAME.fullmatch(name)]


class Matcher:
    """Names of variables; `*` at the end of a pattern stands for any text."""

    def __init__(self, patterns: Collection[str]) -> None:
        self._names = frozenset(patterns)
        self._starts = tuple({pattern[:-1] for pattern in patterns if pattern.endswith("*")})

    def __call__(self, name: str) -> bool:
        """Whether `name` is one of these."""
        return name in self._names or name.startswith(self._starts)

    def among(self, env: Sequence[EnvVar]) -> list[str]:
        """Those of the variables."""
        names, starts = self._names, self._starts
        return [one.name for one in env[:MAX_VARIABLES] if one.name in names or one.name.startswith(starts)]


def _exported(call: Invocation) -> Iterator[str]:
    """The names after `-x`; `*` for those that are unknown."""
    for option, values in call.options or ():
        if option == "x":
            name = "".join(values).partition("=")[0]
            yield "*" if "$" in name else name


def _assigned(call: Invocation) -> Iterator[str]:
    """The names that the call itself gives a value."""
    for option, values in call.options or ():
        if option == "x" or option in PAIRS:
            name, equals, _ = "".join(values[:1]).partition("=")
            if equals or option in PAIRS:
                yield name


def _only_sshd(container: Container) -> bool:
    """Whether the container starts sshd, as the operator does, and nothing that might read its environment."""
    return not container.argv or (sshd.starts(container) and not _USES_ENVIRONMENT.search(sshd.text(container)))
