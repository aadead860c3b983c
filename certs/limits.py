"""Limits of certificates and their rotation."""

from typing import Final

MAX_COMMON_NAME_CHARACTERS: Final = 64
"""Characters of a common name: X.520 allows no more."""
MAX_ROTATION_STEPS: Final = 20
"""Steps of one call of `SelfManaged.reconcile`. A rotation takes five steps, and one more for each conflict."""
MAX_OLD_AUTHORITIES: Final = 10
"""Old CA certificates in a caBundle. The API server reads the whole caBundle for every connection."""
MAX_PEER_SECONDS: Final = 5.0
"""Seconds to read the certificate that another replica serves."""
