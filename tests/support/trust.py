"""Whether a client accepts a leaf, by an independent implementation of RFC 5280 that is at least as strict as Go's."""

from functools import lru_cache

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError


@lru_cache(maxsize=256)
def _certificates(pem):
    return tuple(x509.load_pem_x509_certificates(pem))


def accepts(bundle, leaf, *, host, now):
    """Whether a client that trusts the caBundle `bundle` accepts the leaf, both in PEM."""
    if not bundle:
        return False
    policy = PolicyBuilder().store(Store(list(_certificates(bundle)))).time(now)
    try:
        policy.build_server_verifier(x509.DNSName(host)).verify(_certificates(leaf)[0], [])
    except VerificationError:
        return False
    return True
