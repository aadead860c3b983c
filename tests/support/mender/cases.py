"""Bad jobs: those of the corpus, made good where they are submitted, and then broken one field at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from tests.support.corpus import CORPUS
from tests.support.jobs import changed
from tests.support.mender import places
from tests.support.mender.breaks import BREAKS
from tests.support.mender.places import Json
from tests.support.mender.rounds import mend
from tests.support.mender.worlds import World, worlds
from webhook.api.resources import DEFAULT_ACCELERATORS, is_accelerator
from webhook.cli import files

# Jobs of the corpus that differ much, for the quick run.
FEW: Final = (
    "nvidia", "molecular-dynamics", "uid-1000", "intel", "efa", "launcher-works-too", "torchrun", "kueue",
    "memory-volume",
)  # fmt: skip


NVIDIA: Final = "nvidia.com/gpu"
GPU_KEY: Final = NVIDIA.replace(".", "\\.")
WORKER_LIMITS: Final = places.parse("spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources.limits")


@dataclass(frozen=True, slots=True)
class Case:
    """One bad job where it is submitted."""

    world: World
    broken: str
    name: str
    job: Json = field(repr=False)

    def __str__(self) -> str:
        return f"{self.broken}, in {self.name}, {self.world.title}"


def quick() -> Iterator[Case]:
    """Everything that can be wrong, everywhere, each time in another of a few jobs."""
    for offset, world in enumerate(worlds()):
        jobs = _good(world, FEW)
        for index, what in enumerate(BREAKS):
            yield _case(world, what, *jobs[(index + offset) % len(jobs)])


def whole() -> Iterator[Case]:
    """Everything that can be wrong, in every job, everywhere."""
    for world in worlds():
        for name, job in _good(world, tuple(corpus())):
            for what in BREAKS:
                yield _case(world, what, name, job)


def broken(what: str, job: Json) -> Json:
    """The job with one thing wrong; GPUs are of the kind that it has."""
    asked = places.get(job, WORKER_LIMITS) or {}
    own = next((name for name in asked if is_accelerator(name, DEFAULT_ACCELERATORS)), NVIDIA)
    kind = own.replace(".", "\\.")
    return changed({path.replace(GPU_KEY, kind): value for path, value in BREAKS[what].items()}, job)


def _case(world: World, what: str, name: str, job: Json) -> Case:
    return Case(world, what, name, broken(what, job))


def _good(world: World, names: Sequence[str]) -> list[tuple[str, Json]]:
    """(name, job) of those that the mender gets admitted."""
    found = []
    for name in names:
        last = mend(corpus()[name], world)[-1]
        if not last.followed and not any(cause.denies for cause in last.causes):
            found.append((name, last.job))
    return found


@cache
def corpus() -> dict[str, Json]:
    """Each job by the name of its file."""
    return {path.stem: files.load([str(path)])[0][0].document for path in sorted(CORPUS.glob("*/*.yaml"))}
