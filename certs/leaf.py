"""The serving certificate of one replica, which lives in its memory alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from cryptography import x509

from certs.authority import Authority
from certs.pem import load_certificates
from certs.rotation import lacking, signer
from certs.settings import RotationSettings
from certs.state import State
from certs.store import Bundle

# Of a leaf's life: renewal falls into this stretch, so that replicas that started together do not renew together.
RENEWAL = (0.57, 0.67)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A certificate and its key, and when to replace it."""

    certificate: x509.Certificate
    key_pem: bytes = field(repr=False)
    certificate_pem: bytes = field(repr=False)
    issuer: str
    """The fingerprint of the CA that signed it."""
    renew_at: datetime

    @property
    def not_after(self) -> datetime:
        """When it stops being valid (UTC)."""
        return self.certificate.not_valid_after_utc

    def valid(self, now: datetime) -> bool:
        """Whether a client whose clock shows `now` accepts its times."""
        return self.certificate.not_valid_before_utc <= now < self.not_after


def issue(
    authority: Authority, hosts: Sequence[str], *, now: datetime, settings: RotationSettings, random: Random
) -> Leaf:
    """A new leaf of `authority` for `hosts`."""
    pair = authority.issue(hosts, lifetime=settings.leaf_lifetime, now=now, backdate=settings.backdate)
    return Leaf(
        certificate=load_certificates(pair.certificate_pem)[0],
        key_pem=pair.key_pem,
        certificate_pem=pair.certificate_pem,
        issuer=authority.fingerprint,
        renew_at=now + (pair.not_after - now) * random.uniform(*RENEWAL),
    )


def new_signer(leaf: Leaf | None, state: State, bundles: Sequence[Bundle], now: datetime) -> Authority | None:
    """The CA to sign a new leaf now; None when `leaf` stays, because it is good or because none would be better."""
    authority = signer(state, bundles, now)
    if authority is None or leaf is None or not leaf.valid(now) or lacking(bundles, leaf.issuer):
        return authority
    if leaf.issuer != authority.fingerprint:
        # The successor signs only where no caBundle trusts anything else; otherwise not before its promotion.
        return authority if authority is state.current else None
    # A leaf cannot outlive its CA, so near the CA's end a new leaf gains nothing.
    return authority if now >= leaf.renew_at and authority.not_after > leaf.not_after else None
