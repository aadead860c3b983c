"""A TrainJob and its runtime are small enough to be put together: what that takes is bounded before rules are asked.

The rule `job-size` counts what comes of it, and only the first of many replicated jobs are looked at at all.
"""

from dataclasses import dataclass
from typing import Any, Final

from webhook.api.untyped import at, mappings

JOB_SET: Final = "spec.template.spec"
"""Where the JobSet's spec stands in a runtime."""
PATCHES: Final = "spec.runtimePatches"
"""Where a TrainJob has its patches."""
MOST_REPLICATED_JOBS: Final = 100
"""Of a runtime. Trainer's own have four at most."""
MOST_PATCHED: Final = 100
"""Patches of a TrainJob, and replicated jobs in these. The API server takes 16 patches."""
MOST_CONTAINERS: Final = 400
"""Of all templates of a runtime, or all patches of a TrainJob: as many as an MPIJob of two templates may have."""
MOST_OF_OTHERS: Final = 256 * 1024
"""Bytes of the templates of all other pods than launcher and nodes. No larger runtime is kept (`MOST_OF_ONE`)."""
MOST_WORK: Final = 50_000
"""Values that are looked at where a TrainJob's are merged into a runtime's. An ordinary one has a few hundred."""
# Of the path to a value: so many characters are as much work as a value.
_CHARACTERS: Final = 256
FIX: Final = "Stay within that: no policy allows more."


@dataclass
class TooLarge(Exception):
    """There is too much of something."""

    path: str
    message: str
    of_others: bool = False
    """Whether it is the runtime of a TrainJob that is too large: then it is as one that is not known."""


class Work:
    """What may still be merged."""

    def __init__(self) -> None:
        self._left = MOST_WORK

    def take(self, values: int, characters: int = 0) -> None:
        """So many values are looked at, each by a path of so many characters; TooLarge beyond `MOST_WORK`."""
        self._left -= values + values * characters // _CHARACTERS
        if self._left < 0:
            raise TooLarge("spec", f"too large to judge: more than {MOST_WORK:,} values to merge into the runtime")


def check_runtime(spec: dict[str, Any], *, of_job: bool) -> None:
    """TooLarge for the spec of a runtime, which may be that of a TrainJob, with too many pods or containers."""
    jobs = at(spec, "template", "spec").get("replicatedJobs")
    path = f"{JOB_SET}.replicatedJobs"
    _check(path, _length(jobs), "replicatedJobs", MOST_REPLICATED_JOBS, of_others=of_job)
    _check(path, sum(map(_containers, mappings(jobs))), "containers", MOST_CONTAINERS, of_others=of_job)


def check_patches(job: dict[str, Any]) -> None:
    """TooLarge for the spec of a TrainJob that patches too much, or adds too many containers."""
    patches = job.get("runtimePatches")
    what = "patches and replicatedJobs in these"
    _check(PATCHES, _length(patches), what, MOST_PATCHED)
    patched = [
        at(patch, "trainingRuntimeSpec", "template", "spec").get("replicatedJobs") for patch in mappings(patches)
    ]
    _check(PATCHES, len(patched) + sum(map(_length, patched)), what, MOST_PATCHED)
    containers = sum(_containers(each) for jobs in patched for each in mappings(jobs))
    _check(PATCHES, containers, "containers", MOST_CONTAINERS)


def check_others(size: int, *, of_job: bool) -> None:
    """TooLarge for other pods than launcher and nodes with so many bytes in all: of a TrainJob, by its patches."""
    path = PATCHES if of_job else f"{JOB_SET}.replicatedJobs"
    _check(path, size, "bytes of other pods than launcher and nodes", MOST_OF_OTHERS)


def _containers(job: dict[str, Any]) -> int:
    pod = at(job, "template", "spec", "template", "spec")
    return _length(pod.get("containers")) + _length(pod.get("initContainers"))


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


def _check(path: str, count: int, what: str, most: int, *, of_others: bool = False) -> None:
    if count > most:
        raise TooLarge(path, f"too large to judge: {count:,} {what}, at most {most:,}", of_others)
