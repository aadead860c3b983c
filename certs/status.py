"""The certificates as plain data, with problems and fixes, for `certs status` and `doctor`."""

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

Chain = Sequence[x509.Certificate]

# The renewal is overdue when a smaller part of the lifetime is left. Every issuer renews before that.
OVERDUE = 0.25
# Usually the next CA is in the caBundles within seconds, and signs after the grace time. The next CA is stuck if one of
# these steps is late by more than this time.
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
    """Negative after the expiry."""


@dataclass(frozen=True, slots=True)
class DescribedBundle:
    """The caBundles of one object."""

    name: str
    fingerprints: tuple[str, ...]
    """The CAs that are in all caBundles of the object."""
    trusts_served: bool | None
    """Whether every caBundle trusts the served certificate; None if unknown."""


@dataclass(frozen=True, slots=True)
class TrustStatus:
    """The certificates, the caBundles, and their problems."""

    phase: Phase | None
    """None if the certificates are not self-managed."""
    certificates: tuple[Described, ...]
    bundles: tuple[DescribedBundle, ...]
    issues: tuple[Issue, ...]


def describe(
    bundles: Sequence[Bundle],
    *,
    now: datetime,
    served: Sequence[Chain] = (),
    server_name: str = "",
    settings: RotationSettings | None = None,
    data: Mapping[str, bytes] | None = None,
) -> TrustStatus:
    """`served` has the fetched chains, leaf first. The API server calls the service by `server_name`.

    `settings` is for self-managed certificates only. `data` is then the content of the CA Secret, or None if the Secret
    does not exist.
    """
    state = secret.load(data or {})
    signers = (("signing CA", state.current), ("next CA", state.successor))
    roles = [(role, authority.certificate) for role, authority in signers if authority]
    roles += [("old CA", certificate) for certificate in state.old]
    roles += [("served", certificate) for chain in served for certificate in chain]
    pems = [pem for bundle in bundles for pem in bundle.ca_bundles]
    roles += [("caBundle", certificate) for pem in pems for certificate in readable_certificates(pem)]
    certificates: dict[str, Described] = {}
    for role, certificate in roles:
        certificates.setdefault(fingerprint(certificate), _described(role, certificate, now))
    issues = [*_secret_issues(data, state, bundles, now, settings)] if settings else []
    issues += [issue for chain in served for issue in _served_issues(chain, server_name, now)]
    issues += [issue for bundle in bundles for issue in _bundle_issues(bundle, served, now)]
    phase = Phase.MISSING if data is None else phase_of(state)
    return TrustStatus(
        phase if settings else None,
        tuple(certificates.values()),
        tuple(_described_bundle(bundle, served) for bundle in bundles),
        tuple(dict.fromkeys(issues)),
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


def _described_bundle(bundle: Bundle, served: Sequence[Chain]) -> DescribedBundle:
    common = frozenset.intersection(*map(fingerprints, bundle.ca_bundles)) if bundle.ca_bundles else frozenset()
    trusts = all(chains_to(chain, readable_certificates(pem)) for chain in served for pem in bundle.ca_bundles)
    return DescribedBundle(bundle.name, tuple(sorted(common)), trusts if served else None)


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


def _served_issues(served: Chain, server_name: str, now: datetime) -> Iterator[Issue]:
    leaf = served[0]
    renew = "the issuer does not renew the certificate: see the log of the service, or of cert-manager"
    if fault := _fault(leaf, now):
        yield Issue("error", f"the served certificate {fault}", renew)
    elif leaf.not_valid_after_utc - now < (leaf.not_valid_after_utc - leaf.not_valid_before_utc) * OVERDUE:
        yield Issue("warning", f"the served certificate expires at {_text(leaf.not_valid_after_utc)}", renew)
    if not covers(leaf, server_name):
        names = ", ".join(hosts(leaf)) or "no host"
        text = f"the served certificate is for {names}, but the API server calls {server_name}"
        yield Issue("error", text, f"issue a certificate for {server_name}")


def _bundle_issues(bundle: Bundle, served: Sequence[Chain], now: datetime) -> Iterator[Issue]:
    injected = "nothing adds the CA: the service must do it, or the annotations for cert-manager or service-ca"
    for pem in dict.fromkeys(bundle.ca_bundles):
        cas = readable_certificates(pem)
        if not pem.strip():
            yield Issue("error", f"{bundle.name} has an empty caBundle", injected)
        elif not cas:
            yield Issue("error", f"{bundle.name} has a damaged caBundle", injected)
        elif all(_fault(ca, now) for ca in cas):
            yield Issue("error", f"the CA in the caBundle of {bundle.name} {_fault(cas[0], now)}", injected)
        if cas and not all(chains_to(chain, cas) for chain in served):
            text = f"the caBundle of {bundle.name} does not trust the served certificate"
            yield Issue(
                "error",
                text,
                "the certificate and the caBundle come from different CAs: use the same source for both",
            )


def _fault(certificate: x509.Certificate, now: datetime) -> str:
    """The certificate's fault as the end of a sentence; empty if the certificate is valid."""
    if certificate.not_valid_after_utc <= now:
        return f"expired at {_text(certificate.not_valid_after_utc)}"
    if certificate.not_valid_before_utc > now:
        return f"is not valid before {_text(certificate.not_valid_before_utc)}"
    return ""


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
