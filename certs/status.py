"""The certificates as plain data, with problems and fixes: for `certs status` and `doctor`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

from certs import state as secret
from certs.pem import (
    chains_to,
    common_name,
    covers,
    fingerprint,
    fingerprints,
    hosts,
    readable_certificates,
)
from certs.rotation import Phase, RotationSettings, lacking, phase_of
from certs.store import Bundle

# If a smaller part of a certificate's lifetime is left, the renewal is overdue: every issuer renews earlier.
OVERDUE = 0.25
# A successor is added to the caBundles within seconds, and signs after the grace time.
STUCK = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Issue:
    """A problem of the certificates."""

    severity: str
    """`error` if calls fail or will fail, else `warning`."""
    text: str
    advice: str


@dataclass(frozen=True, slots=True)
class Described:
    """A certificate with its role."""

    role: str
    """`signing CA`, `next CA`, `old CA`, `served`, or `caBundle` for a CA that is only in a caBundle."""
    subject: str
    issuer: str
    hosts: tuple[str, ...]
    fingerprint: str
    not_before: datetime
    not_after: datetime
    remaining: timedelta
    """The remaining lifetime; negative after the expiry."""


@dataclass(frozen=True, slots=True)
class DescribedBundle:
    """The caBundles of one object."""

    name: str
    fingerprints: tuple[str, ...]
    """The CAs in the object's caBundles."""
    trusts_served: bool | None
    """Whether every caBundle trusts the served certificate; None if unknown."""


@dataclass(frozen=True, slots=True)
class TrustStatus:
    """The certificates, the caBundles, and their problems."""

    phase: Phase | None
    """None unless the certificates are self-managed."""
    certificates: tuple[Described, ...]
    bundles: tuple[DescribedBundle, ...]
    issues: tuple[Issue, ...]


def describe(
    bundles: Sequence[Bundle],
    *,
    now: datetime,
    served: Sequence[x509.Certificate] = (),
    server_names: Sequence[str] = (),
) -> TrustStatus:
    """The status of the caBundles and, if it was fetched, of the served chain (leaf first).

    `server_names` are the host names that the API server uses.
    """
    certificates = [_described("served", certificate, now) for certificate in served]
    listed = {certificate.fingerprint for certificate in certificates}
    for pem in (pem for bundle in bundles for pem in bundle.ca_bundles):
        for certificate in readable_certificates(pem):
            if fingerprint(certificate) not in listed:
                listed.add(fingerprint(certificate))
                certificates.append(_described("caBundle", certificate, now))
    issues = [*_served_issues(served, server_names, now)]
    for bundle in bundles:
        issues += _bundle_issues(bundle, served, now)
    return TrustStatus(
        None, tuple(certificates), tuple(_described_bundle(bundle, served) for bundle in bundles), tuple(issues)
    )


def describe_self_managed(
    data: Mapping[str, bytes] | None,
    bundles: Sequence[Bundle],
    *,
    now: datetime,
    settings: RotationSettings,
    served: Sequence[x509.Certificate] = (),
    server_names: Sequence[str] = (),
) -> TrustStatus:
    """Like `describe`, with the CA Secret's `data` (None if the Secret does not exist)."""
    general = describe(bundles, now=now, served=served, server_names=server_names)
    state = secret.load(data or {})
    roles = [("signing CA", state.current), ("next CA", state.successor)]
    ours = [_described(role, authority.certificate, now) for role, authority in roles if authority]
    ours += [_described("old CA", certificate, now) for certificate in state.old]
    own_fingerprints = {own.fingerprint for own in ours}
    return TrustStatus(
        Phase.MISSING if data is None else phase_of(state),
        (*ours, *(foreign for foreign in general.certificates if foreign.fingerprint not in own_fingerprints)),
        general.bundles,
        (*_secret_issues(data, state, bundles, now, settings), *general.issues),
    )


def _described(role: str, certificate: x509.Certificate, now: datetime) -> Described:
    return Described(
        role=role,
        subject=common_name(certificate.subject),
        issuer=common_name(certificate.issuer),
        hosts=hosts(certificate),
        fingerprint=fingerprint(certificate),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        remaining=certificate.not_valid_after_utc - now,
    )


def _described_bundle(bundle: Bundle, served: Sequence[x509.Certificate]) -> DescribedBundle:
    common = frozenset.intersection(*map(fingerprints, bundle.ca_bundles)) if bundle.ca_bundles else frozenset()
    trusts = all(chains_to(served, readable_certificates(pem)) for pem in bundle.ca_bundles) if served else None
    return DescribedBundle(bundle.name, tuple(sorted(common)), trusts)


def _secret_issues(
    data: Mapping[str, bytes] | None,
    state: secret.State,
    bundles: Sequence[Bundle],
    now: datetime,
    settings: RotationSettings,
) -> Iterator[Issue]:
    running = "look into the log of the service: is it running, and may it update the CA Secret and the caBundles?"
    if data is None:
        yield Issue("error", "the CA Secret does not exist", "apply the manifests again: they ship it empty")
        return
    for damage in state.damage:
        yield Issue(
            "error", f"the CA Secret is damaged: {damage}", f"the service repairs it within a minute; else {running}"
        )
    if state.key_removed and not state.successor:
        text = "the CA is being renewed: its key was removed from the CA Secret"
        yield Issue("warning", text, f"the service makes a new CA within a minute; else {running}")
    elif not state.current and not state.successor:
        yield Issue("error", "the CA Secret holds no CA", f"the service makes one when it starts; else {running}")
    if state.current and (fault := _fault(state.current.certificate, now)):
        yield Issue("error", f"the signing CA {fault}", f"the service replaces it within a minute; else {running}")
    elif state.current and state.current.not_after - now < settings.ca_lifetime * OVERDUE and not state.successor:
        yield Issue("warning", "the signing CA should have been replaced by now", running)
    if state.successor and state.published_at and now - state.published_at > settings.grace + STUCK:
        yield Issue("warning", "the next CA is in every caBundle, but does not sign", running)
    if state.successor and not state.published_at:
        made = state.successor.certificate.not_valid_before_utc + settings.backdate
        names = ", ".join(bundle.name for bundle in lacking(bundles, state.successor.fingerprint))
        if now - made > STUCK and names:
            yield Issue("warning", f"the next CA cannot sign: it is not in the caBundle of {names}", running)


def _served_issues(served: Sequence[x509.Certificate], server_names: Sequence[str], now: datetime) -> Iterator[Issue]:
    if not served:
        return
    leaf = served[0]
    renew = "the issuer does not renew the certificate: see the log of the service, or of cert-manager"
    if fault := _fault(leaf, now):
        yield Issue("error", f"the served certificate {fault}", renew)
    elif leaf.not_valid_after_utc - now < (leaf.not_valid_after_utc - leaf.not_valid_before_utc) * OVERDUE:
        yield Issue("warning", f"the served certificate expires at {_text(leaf.not_valid_after_utc)}", renew)
    for name in server_names:
        if not covers(leaf, name):
            names = ", ".join(hosts(leaf)) or "no host"
            text = f"the served certificate is for {names}, but the API server calls {name}"
            yield Issue("error", text, f"issue a certificate for {name}")


def _bundle_issues(bundle: Bundle, served: Sequence[x509.Certificate], now: datetime) -> Iterator[Issue]:
    injected = "nothing adds the CA: the service must do it, or the annotations for cert-manager or service-ca"
    for pem in dict.fromkeys(bundle.ca_bundles):
        cas = readable_certificates(pem)
        if not pem.strip():
            yield Issue("error", f"{bundle.name} has an empty caBundle", injected)
        elif not cas:
            yield Issue("error", f"{bundle.name} has a damaged caBundle", injected)
        elif all(_fault(ca, now) for ca in cas):
            yield Issue("error", f"the CA in the caBundle of {bundle.name} {_fault(cas[0], now)}", injected)
        if cas and served and not chains_to(served, cas):
            text = f"the caBundle of {bundle.name} does not trust the served certificate"
            yield Issue(
                "error",
                text,
                "the certificate and the caBundle come from different CAs: use the same source for both",
            )


def _fault(certificate: x509.Certificate, now: datetime) -> str:
    """The reason why the certificate is invalid at this time, as the end of a sentence."""
    if certificate.not_valid_after_utc <= now:
        return f"expired at {_text(certificate.not_valid_after_utc)}"
    if certificate.not_valid_before_utc > now:
        return f"is not valid before {_text(certificate.not_valid_before_utc)}"
    return ""


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
