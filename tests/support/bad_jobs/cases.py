"""Combines each mistake with each world (policy and cluster) and a job of tests/corpus, and returns the messages."""

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

# A few jobs of tests/corpus that differ widely.
FEW: Final = (
    "nvidia", "molecular-dynamics", "uid-1000", "intel", "efa", "launcher-works-too", "torchrun", "kueue",
    "memory-volume",
)  # fmt: skip
NVIDIA: Final = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Case:
    world: World
    mistake: str
    job: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule's reason for rejecting a job, or the rule's warning."""

    rule: str
    path: str
    message: str
    fix: str

    @property
    def kind(self) -> tuple[str, str, str]:
        """Equal for messages that differ only in names and numbers."""
        return self.rule, self.path, re.sub(r'"[^"]*"|\([^)]*\)|\d+', "", self.message)


def cases() -> Iterator[Case]:
    """Every mistake in every world. The jobs take turns."""
    jobs = corpus()
    for offset, world in enumerate(worlds()):
        for index, mistake in enumerate(BREAKS):
            job = jobs[FEW[(index + offset) % len(FEW)]]
            yield Case(world, mistake, broken(mistake, job))


def broken(mistake: str, job: dict[str, Any]) -> dict[str, Any]:
    """The job with a mistake. A mistake in GPUs uses the job's own kind of GPU."""
    (container, *_) = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    limits = container.get("resources", {}).get("limits", {})
    kind = next((name for name in limits if is_accelerator(name, DEFAULT_ACCELERATORS)), NVIDIA)
    escaped = [name.replace(".", "\\.") for name in (NVIDIA, kind)]
    return changed({path.replace(*escaped): value for path, value in BREAKS[mistake].items()}, job)


def causes(case: Case) -> Iterator[Cause]:
    """All messages of the validation, which follows the mutation, as in a cluster."""
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
    return {path.stem: files.load([str(path)])[0][0].document for path in sorted(CORPUS.glob("*/*.yaml"))}
