"""The cluster access that self-managed certificates need.

All reads are live: a write after an outdated read could revert another replica's new CA. Every write contains the
version of the object that was read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


class StoreError(Exception):
    """The message is one line for a human."""


class Conflict(StoreError):
    """The object changed since it was read (HTTP 409, or 404 on a write)."""


@dataclass(frozen=True, slots=True)
class Secret:
    """`data` is decoded, and empty if the Secret has none."""

    data: Mapping[str, bytes] = field(repr=False)
    resource_version: str
    server_time: datetime | None = None
    """The `Date` of the API server's response, with a time zone. The API server verifies certificates by this clock."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """An object with caBundles: a webhook configuration, or a CRD with a conversion webhook."""

    name: str
    """The name in messages, such as `ValidatingWebhookConfiguration/admission.example.com`."""
    ca_bundles: tuple[bytes, ...]
    """The PEM of each client configuration that calls the service, in the object's order; b"" for no caBundle."""
    resource_version: str


class Store(Protocol):
    """Every method raises only StoreError on failure."""

    async def read_secret(self) -> Secret | None:
        """The CA Secret; None if it does not exist."""

    async def write_secret(self, data: Mapping[str, bytes], resource_version: str) -> None:
        """Replace all data of the Secret; Conflict if it is no longer at `resource_version`."""

    async def read_bundles(self) -> Sequence[Bundle]:
        """Every object with a caBundle for the service."""

    async def write_bundle(self, bundle: Bundle, pem: bytes) -> None:
        """Set all caBundles of the object to `pem`; Conflict if it is no longer at `bundle.resource_version`."""
