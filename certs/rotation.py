"""The rotation of a CA without failed calls. The next step depends only on the Secret, the caBundles and the time.

Every CA starts as the successor. It is added to every caBundle next to the current CA. It signs after it has been read
back from all caBundles and a grace time has passed. The replaced CA stays trusted until its last leaf has expired. Any
replica can take any step; a replica that is late gets a Conflict.

The caBundles must be read before the Secret. In the other order, a replica could see another replica's new CA in a
caBundle but not in the Secret, and take it for a foreign CA.

In other projects a new CA signs at once, which has caused outages (gatekeeper#1045, kueue#622, cert-manager#6624).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography import x509

from certs.authority import CLOCK_SKEW, Authority
from certs.notice import Notice
from certs.pem import CertificateError, common_name, fingerprint, fingerprints, load_certificates, to_pem
from certs.state import State
from certs.store import Bundle

# A replaced CA stays trusted until its last serving certificate (leaf) expires, so a leaf must not live long.
LONGEST_LEAF = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationSettings:
    """All replicas must have equal settings. ValueError if the times contradict each other."""

    name: str
    """The common name of the CAs. It identifies the service's CAs in caBundles if the Secret is lost."""
    ca_lifetime: timedelta = timedelta(days=365)
    """A CA is replaced when a third of its lifetime is left."""
    leaf_lifetime: timedelta = timedelta(days=14)
    """A serving certificate is replaced when about a third of its lifetime is left."""
    grace: timedelta = timedelta(minutes=2)
    """Time between the publication of a new CA and its first signature: API servers notice the CA late."""
    backdate: timedelta = timedelta(hours=1)
    """The largest expected error of a slow client's clock."""
    interval: timedelta = timedelta(minutes=1)
    """Time between two reads of the Secret, the caBundles and the clock."""

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


# A CA may still sign for this long after `retired_at`: a replica signs some moments after it has read the Secret, and
# clocks differ.
LATE_LEAF = 2 * CLOCK_SKEW


class Phase(StrEnum):
    """The progress of a rotation."""

    MISSING = "missing"
    """The Secret does not exist."""
    PUBLISHING = "publishing"
    """The successor (or the first CA) is being added to the caBundles."""
    WAITING = "waiting"
    """The successor is in every caBundle, and the grace time runs."""
    RETIRING = "retiring"
    """A new CA signs. The old CA is still trusted."""
    STEADY = "steady"
    """There is one CA, and it signs."""


@dataclass(frozen=True, slots=True)
class MakeSuccessor:
    """Store `state` with a new CA as the successor."""

    state: State
    notice: Notice


@dataclass(frozen=True, slots=True)
class Save:
    """Store this state."""

    state: State
    notice: Notice | None = None


@dataclass(frozen=True, slots=True)
class Publish:
    """Set these caBundles to `pem`."""

    bundles: tuple[Bundle, ...]
    pem: bytes


Step = MakeSuccessor | Save | Publish


def phase_of(state: State) -> Phase:
    if state.successor:
        return Phase.WAITING if state.published_at else Phase.PUBLISHING
    if not state.current:
        return Phase.PUBLISHING
    return Phase.RETIRING if state.old else Phase.STEADY


def lacking(bundles: Sequence[Bundle], fingerprint: str) -> tuple[Bundle, ...]:
    """The objects with a caBundle that lacks this CA."""
    return tuple(bundle for bundle in bundles if any(fingerprint not in fingerprints(pem) for pem in bundle.ca_bundles))


def signer(state: State, bundles: Sequence[Bundle], now: datetime) -> Authority | None:
    """The CA whose leaves every caBundle trusts now."""
    for authority in (state.current, state.successor):
        if authority and authority.usable(now) and not lacking(bundles, authority.fingerprint):
            return authority
    return None


def plan(state: State, bundles: Sequence[Bundle], now: datetime, settings: RotationSettings) -> Step | None:
    """The next step; None if nothing is to be done now."""
    if step := _repair(state, bundles, now, settings) or _publication(state, bundles):
        return step
    return _promotion(state, now, settings) if state.successor else _retirement(state, now, settings)


def _repair(state: State, bundles: Sequence[Bundle], now: datetime, settings: RotationSettings) -> Step | None:
    if survivors := _survivors(state, bundles, settings.name):
        state = state.with_old(survivors, now)
    if reason := _successor_is_due(state, now, settings):
        return MakeSuccessor(state, Notice("CACreated", f"new CA: {reason}", warning=bool(state.damage)))
    if state.damage:
        message = f"removed damaged entries from the CA Secret: {'; '.join(state.damage)}"
        return Save(replace(state, damage=()), Notice("CARepaired", message, warning=True))
    if survivors:
        message = "the caBundles have CAs that are not in the CA Secret; they stay trusted for the lifetime of a leaf"
        return Save(state, Notice("CARepaired", message, warning=True))
    return None


def _publication(state: State, bundles: Sequence[Bundle]) -> Step | None:
    """The step that makes all caBundles equal to the state. The service owns their whole content."""
    if state.successor and state.published_at and lacking(bundles, state.successor.fingerprint):
        return Save(replace(state, published_at=None))
    expected = frozenset(map(fingerprint, state.bundle))
    outdated = tuple(bundle for bundle in bundles if any(fingerprints(pem) != expected for pem in bundle.ca_bundles))
    return Publish(outdated, to_pem(state.bundle)) if outdated else None


def _successor_is_due(state: State, now: datetime, settings: RotationSettings) -> str:
    """The reason to create a successor; empty if none is due."""
    if state.successor:
        return "" if state.successor.usable(now) else f"the next CA is {_fault(state.successor, now)}"
    if not state.current:
        none = "the key of the current CA was removed" if state.key_removed else "the CA Secret has none"
        return "; ".join(state.damage) or none
    if not state.current.usable(now):
        return f"the current CA is {_fault(state.current, now)}"
    if state.current.not_after - now <= settings.ca_lifetime / 3:
        return f"the current CA expires at {state.current.not_after:%Y-%m-%dT%H:%M:%SZ}"
    return ""


def _promotion(state: State, now: datetime, settings: RotationSettings) -> Step | None:
    serving = state.old or (state.current and state.current.usable(now))
    if serving:
        # A time in the future is from a clock that was later set back.
        if state.published_at is None or state.published_at > now + CLOCK_SKEW:
            message = f"every caBundle has the new CA; it signs in {settings.grace.total_seconds():.0f} s"
            return Save(replace(state, published_at=now), Notice("CAPublished", message))
        if now - state.published_at < settings.grace:
            return None
    return Save(state.promoted(now), Notice("CAPromoted", "the new CA signs from now on"))


def _retirement(state: State, now: datetime, settings: RotationSettings) -> Step | None:
    if not state.old:
        return None
    if state.retired_at is None or state.retired_at > now + CLOCK_SKEW:
        return Save(replace(state, retired_at=now))
    if now - state.retired_at < settings.leaf_lifetime + LATE_LEAF:
        return None
    return Save(
        replace(state, old=(), retired_at=None), Notice("CARetired", "the last leaf of the old CA expired: removed")
    )


def _survivors(state: State, bundles: Sequence[Bundle], name: str) -> list[x509.Certificate]:
    """The service's CAs that are in caBundles but not in the Secret. Replicas may still serve their leaves.

    A CA that was just retired is also in caBundles and not in the Secret. So there are survivors only if the Secret is
    damaged, or if no caBundle has a CA of the Secret, for example because the Secret was emptied or restored.
    """
    trusted = {fingerprint(certificate) for certificate in state.bundle}
    live: dict[str, x509.Certificate] = {}
    for pem in (pem for bundle in bundles for pem in bundle.ca_bundles):
        try:
            live |= {fingerprint(certificate): certificate for certificate in load_certificates(pem)}
        except CertificateError:
            continue
    if trusted & live.keys() and not state.damage:
        return []
    return [
        certificate
        for key, certificate in live.items()
        if key not in trusted and common_name(certificate.subject) == name
    ]


def _fault(authority: Authority, now: datetime) -> str:
    return "expired" if authority.not_after <= now else "not valid yet"
