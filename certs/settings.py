"""How long the self-managed certificates live, and how carefully they change."""

from dataclasses import dataclass
from datetime import timedelta

# The last leaf of a CA decides how long that CA has to stay trusted.
LONGEST_LEAF = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationSettings:
    """The same in every replica; ValueError for times that cannot work together."""

    name: str
    """Common name of the CAs; also how a caBundle's certificates are known to be ours after the Secret was lost."""
    ca_lifetime: timedelta = timedelta(days=365)
    """A CA is replaced when a third of this is left."""
    leaf_lifetime: timedelta = timedelta(days=14)
    """A serving certificate is replaced when about a third of its life is left."""
    grace: timedelta = timedelta(minutes=2)
    """From the moment that every caBundle holds a new CA to its first signature: API servers hear of it late."""
    backdate: timedelta = timedelta(hours=1)
    """How far the clock of a client may be behind."""
    interval: timedelta = timedelta(minutes=1)
    """From one look at the Secret, the caBundles and the clock to the next."""

    def __post_init__(self) -> None:
        for field in ("ca_lifetime", "leaf_lifetime", "interval"):
            if getattr(self, field) <= timedelta(0):
                raise ValueError(f"{field} must be more than 0")
        for field in ("grace", "backdate"):
            if getattr(self, field) < timedelta(0):
                raise ValueError(f"{field} must not be negative")
        if self.leaf_lifetime > LONGEST_LEAF:
            raise ValueError(f"leaf_lifetime must be at most {LONGEST_LEAF.days} days")
        if self.ca_lifetime < 3 * (self.leaf_lifetime + self.grace):
            raise ValueError("ca_lifetime must be at least three times leaf_lifetime and grace together")
