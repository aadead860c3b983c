"""The limits that a policy's rules set on numbers in a job.

A rule declares its limits when it registers (`admits`). `Context` has the intersection for all rejecting rules, so the
advice of one rule stays within the limits of the others.
"""

import msgspec
from msgspec.structs import replace

from webhook.api.accelerators import DEFAULT_ACCELERATORS


class Span(msgspec.Struct, frozen=True):
    """The numbers from `least` to `most`, both included. Without `most` there is no maximum."""

    least: int = 0
    most: int | None = None

    def __and__(self, other: "Span") -> "Span":
        ends = [end for end in (self.most, other.most) if end is not None]
        return Span(max(self.least, other.least), min(ends, default=None))

    def __contains__(self, number: int) -> bool:
        return self.least <= number and (self.most is None or number <= self.most)

    @property
    def empty(self) -> bool:
        return self.most is not None and self.most < self.least


class Admitted(msgspec.Struct, frozen=True):
    """The values that no rule rejects. Each limit applies independently of the others."""

    workers: Span = Span()
    """The number of computing pods: workers, and the launcher if it also computes."""
    gpus: Span = Span()
    """Accelerators of each computing pod."""
    job_gpus: Span = Span()
    """Accelerators of the whole job."""
    slots: Span = Span()
    """`slotsPerWorker`."""
    seconds: Span = Span()
    """`activeDeadlineSeconds`."""
    restricted_since: int | None = None
    """The version (1.x) of the Pod Security level `restricted` if every pod must meet this level; otherwise None."""
    accelerators: tuple[str, ...] = DEFAULT_ACCELERATORS

    def __and__(self, other: "Admitted") -> "Admitted":
        """The accelerators are those of `other`, unless `other` has the default."""
        return replace(
            self,
            workers=self.workers & other.workers,
            gpus=self.gpus & other.gpus,
            job_gpus=self.job_gpus & other.job_gpus,
            slots=self.slots & other.slots,
            seconds=self.seconds & other.seconds,
            restricted_since=self.restricted_since if other.restricted_since is None else other.restricted_since,
            accelerators=self.accelerators if other.accelerators == DEFAULT_ACCELERATORS else other.accelerators,
        )


ANYTHING = Admitted()
