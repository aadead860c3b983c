"""What the rules of a policy together admit of what a user changes to make a job fit.

A rule that bounds one of them says so when it registers (`admits`), and all that refuse are put together for `Context`.
So what one rule suggests stays within the bounds of the others.
"""

import msgspec
from msgspec.structs import replace

from webhook.api.resources import DEFAULT_ACCELERATORS


class Span(msgspec.Struct, frozen=True):
    """From `least` to `most`, both included; None is without end."""

    least: int = 0
    most: int | None = None

    def __and__(self, other: "Span") -> "Span":
        """What is in both; nothing where its `most` is below its `least`."""
        ends = [end for end in (self.most, other.most) if end is not None]
        return Span(max(self.least, other.least), min(ends, default=None))

    def __contains__(self, number: int) -> bool:
        return self.least <= number and (self.most is None or number <= self.most)

    @property
    def empty(self) -> bool:
        """Whether no number is in it."""
        return self.most is not None and self.most < self.least


class Admitted(msgspec.Struct, frozen=True):
    """What no rule refuses, each by itself."""

    workers: Span = Span()
    """Pods that compute: the workers, and the launcher where it is one."""
    gpus: Span = Span()
    """Accelerators of each of these."""
    job_gpus: Span = Span()
    """Accelerators of the whole job."""
    slots: Span = Span()
    """`slotsPerWorker`."""
    seconds: Span = Span()
    """`activeDeadlineSeconds`."""
    restricted_since: int | None = None
    """The minor version of the Pod Security level `restricted` that every pod keeps; None where another level does."""
    accelerators: tuple[str, ...] = DEFAULT_ACCELERATORS
    """Names of resources that count as accelerators."""

    def __and__(self, other: "Admitted") -> "Admitted":
        """What both admit; the names are those of `other` unless these are the default."""
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
"""No rule bounds any of them."""
