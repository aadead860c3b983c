"""Each mistake in each world, in one of a few jobs of the corpus, and the resulting messages."""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from tests.support.bad_jobs.breaks import BREAKS
from tests.support.bad_jobs.worlds import World, worlds
from tests.support.corpus import CORPUS
from tests.support.jobs import changed
from webhook.api.accelerators import DEFAULT_ACCELERATORS, is_accelerator
from webhook.api.review import UserInfo
from webhook.cli import files, job_check
from webhook.cli.files import Manifest
from webhook.cli.job_world import JobWorld

# Jobs of the corpus that differ much.
FEW: Final = (
    "nvidia", "molecular-dynamics", "uid-1000", "intel", "efa", "launcher-works-too", "torchrun", "kueue",
    "memory-volume",
)  # fmt: skip
NVIDIA: Final = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Case:
    """A bad job and the world where it is submitted."""

    world: World
    mistake: str
    job: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule's reason for rejecting a job, or its warning."""

    rule: str
    path: str
    message: str
    fix: str

    @property
    def kind(self) -> tuple[str, str, str]:
        """Equal for the same message with other names and numbers."""
        return self.rule, self.path, re.sub(r'"[^"]*"|\([^)]*\)|\d+', "", self.message)


def cases() -> Iterator[Case]:
    """Every mistake in every world, each time in another of the jobs."""
    jobs = corpus()
    for offset, world in enumerate(worlds()):
        for index, mistake in enumerate(BREAKS):
            job = jobs[FEW[(index + offset) % len(FEW)]]
            yield Case(world, mistake, broken(mistake, job))


def broken(mistake: str, job: dict[str, Any]) -> dict[str, Any]:
    """The job with one mistake; GPUs keep the job's kind."""
    (container, *_) = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    limits = container.get("resources", {}).get("limits", {})
    kind = next((name for name in limits if is_accelerator(name, DEFAULT_ACCELERATORS)), NVIDIA)
    escaped = [name.replace(".", "\\.") for name in (NVIDIA, kind)]
    return changed({path.replace(*escaped): value for path, value in BREAKS[mistake].items()}, job)


def causes(case: Case) -> Iterator[Cause]:
    """All messages about the job, which is mutated, then validated, as by the API server."""
    world = case.world
    validation = job_check.check(
        Manifest("job.yaml", copy.deepcopy(case.job)),
        JobWorld(world.cluster, schema=world.schema, instead=world.policy, user=UserInfo("alice")),
        namespace=world.namespace,
    ).validation
    for finding in (*validation.denied, *validation.warned):
        violation = finding.violation
        yield Cause(finding.rule, violation.path, violation.message, violation.fix)


@cache
def corpus() -> dict[str, dict[str, Any]]:
    """Each job by the name of its file."""
    return {path.stem: files.load([str(path)])[0][0].document for path in sorted(CORPUS.glob("*/*.yaml"))}
