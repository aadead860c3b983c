"""Checks whether a client accepts a leaf certificate, with an RFC 5280 implementation that is as strict as Go's."""

from functools import lru_cache

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError


@lru_cache(maxsize=256)
def _certificates(pem):
    return tuple(x509.load_pem_x509_certificates(pem))


def accepts(bundle, leaf, *, host, now):
    """Whether a client that trusts the caBundle `bundle` accepts the leaf certificate. Both are PEM."""
    if not bundle:
        return False
    policy = PolicyBuilder().store(Store(list(_certificates(bundle)))).time(now)
    try:
        policy.build_server_verifier(x509.DNSName(host)).verify(_certificates(leaf)[0], [])
    except VerificationError:
        return False
    return True
