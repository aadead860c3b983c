"""A TrainJob and its runtime are small enough to be put together: that may take memory many times."""

from dataclasses import dataclass
from typing import Final

from webhook.predict.limits import MAX_MERGED_VALUES, MAX_OTHER_PODS_BYTES, PATH_CHARACTERS_PER_VALUE

JOB_SET: Final = "spec.template.spec"
"""Where the JobSet's spec stands in a runtime."""
PATCHES: Final = "spec.runtimePatches"
"""Where a TrainJob has its patches."""
FIX: Final = "Stay within that: no policy allows more."


@dataclass
class TooLarge(Exception):
    """There is too much of something."""

    path: str
    message: str


class Work:
    """What may still be merged."""

    def __init__(self) -> None:
        self._left = MAX_MERGED_VALUES

    def take(self, values: int, characters: int = 0) -> None:
        """So many values are looked at, each by a path of so many characters; TooLarge beyond `MAX_MERGED_VALUES`."""
        self._left -= values + values * characters // PATH_CHARACTERS_PER_VALUE
        if self._left < 0:
            message = f"too large to judge: more than {MAX_MERGED_VALUES:,} values to merge into the runtime"
            raise TooLarge("spec", message)


def check_others(size: int, *, of_job: bool) -> None:
    """TooLarge for other pods than launcher and nodes with so many bytes in all: of a TrainJob, by its patches."""
    if size > MAX_OTHER_PODS_BYTES:
        what = "bytes of other pods than launcher and nodes"
        message = f"too large to judge: {size:,} {what}, at most {MAX_OTHER_PODS_BYTES:,}"
        raise TooLarge(PATCHES if of_job else f"{JOB_SET}.replicatedJobs", message)
