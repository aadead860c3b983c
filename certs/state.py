"""The content of the CA Secret: the only state that the replicas share.

| key | content |
|---|---|
| `ca.crt`, `ca.key` | the CA that signs |
| `next-ca.crt`, `next-ca.key` | the CA that will sign, while it is being published |
| `next-ca.published-at` | the time when every caBundle first had the next CA |
| `old-ca.crt` | CAs that no longer sign, but whose leaves may still be served |
| `old-ca.retired-at` | the time when the last of these CAs stopped signing |

Times are RFC 3339. Other keys are not changed: the type of a Secret may require other keys.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cryptography import x509

from certs.authority import Authority
from certs.limits import MAX_OLD_AUTHORITIES
from certs.pem import CertificateError, fingerprint, readable_certificates, to_pem

KEYS = frozenset(
    {"ca.crt", "ca.key", "next-ca.crt", "next-ca.key", "next-ca.published-at", "old-ca.crt", "old-ca.retired-at"}
)


@dataclass(frozen=True, slots=True)
class State:
    """The usable part of the Secret's content."""

    current: Authority | None = None
    successor: Authority | None = None
    published_at: datetime | None = None
    old: tuple[x509.Certificate, ...] = ()
    retired_at: datetime | None = None
    damage: tuple[str, ...] = ()
    key_removed: bool = False
    """The signing CA's certificate has no key: an administrator removes the key to request a new CA."""
    other: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def bundle(self) -> tuple[x509.Certificate, ...]:
        """The exact content that every caBundle must have."""
        signers = (authority.certificate for authority in (self.current, self.successor) if authority)
        return (*signers, *self.old)

    def with_old(self, certificates: Iterable[x509.Certificate], now: datetime) -> "State":
        """The state after these CAs have stopped signing at `now`. They stay trusted."""
        old = {fingerprint(certificate): certificate for certificate in (*self.old, *certificates)}
        newest = sorted(old.values(), key=lambda certificate: certificate.not_valid_before_utc)[-MAX_OLD_AUTHORITIES:]
        return replace(self, old=tuple(newest), retired_at=now)

    def with_successor(self, authority: Authority, now: datetime) -> "State":
        """The state in which `authority` is being published. `authority` replaces an earlier successor."""
        state = self.with_old([self.successor.certificate], now) if self.successor else self
        return replace(state, successor=authority, published_at=None, damage=(), key_removed=False)

    def promoted(self, now: datetime) -> "State":
        """The state in which the successor signs."""
        state = self.with_old([self.current.certificate], now) if self.current else self
        return replace(state, current=self.successor, successor=None, published_at=None)

    def to_data(self) -> dict[str, bytes]:
        data = dict(self.other)
        for prefix, authority in (("ca", self.current), ("next-ca", self.successor)):
            if authority:
                data |= {f"{prefix}.crt": authority.certificate_pem, f"{prefix}.key": authority.key_pem}
        if self.old:
            data["old-ca.crt"] = to_pem(self.old)
        for key, time in (("next-ca.published-at", self.published_at), ("old-ca.retired-at", self.retired_at)):
            if time:
                data[key] = time.astimezone(UTC).isoformat(timespec="seconds").encode()
        return data


def load(data: Mapping[str, bytes]) -> State:
    """The state in `data`. Never raises: damaged parts are left out and named in `damage`.

    A CA whose key is lost is treated as old, because leaves that it signed may still be served.
    """
    damage: list[str] = []
    lost: list[x509.Certificate] = []
    removed: list[str] = []

    def authority(prefix: str) -> Authority | None:
        certificate, key = data.get(f"{prefix}.crt", b""), data.get(f"{prefix}.key", b"")
        if not certificate and not key:
            return None
        try:
            return Authority.load(certificate, key)
        except CertificateError as error:
            readable = readable_certificates(certificate)
            if readable and not key and prefix == "ca":
                removed.append(prefix)
            else:
                damage.append(f"{prefix}.crt and {prefix}.key: {error}")
            lost.extend(readable)
            return None

    def time(key: str) -> datetime | None:
        if not (text := data.get(key, b"")):
            return None
        try:
            return datetime.fromisoformat(text.decode()).astimezone(UTC)
        except (ValueError, OverflowError):
            damage.append(f"{key}: not a time")
            return None

    current, successor = authority("ca"), authority("next-ca")
    if successor and current and successor.fingerprint == current.fingerprint:
        damage.append("next-ca.crt: the same as ca.crt")
        successor = None
    old = readable_certificates(data.get("old-ca.crt", b""))
    if data.get("old-ca.crt") and not old:
        damage.append("old-ca.crt: the certificate is not PEM, or damaged")
    signing = {authority.fingerprint for authority in (current, successor) if authority}
    return State(
        current=current,
        successor=successor,
        published_at=time("next-ca.published-at") if successor else None,
        old=tuple(certificate for certificate in (*old, *lost) if fingerprint(certificate) not in signing),
        # A CA whose key is lost may have signed until now. The stored time belongs to CAs that retired earlier.
        retired_at=None if lost else time("old-ca.retired-at"),
        damage=tuple(damage),
        key_removed=bool(removed),
        other={key: value for key, value in data.items() if key not in KEYS},
    )
