"""What the service asks of every source of certificates, as cert-manager's `pkg/server/tls` has it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final

from certs.serving import ServingCertificate
from webhook.client import wire
from webhook.server.telemetry import Telemetry

RESTART_SECONDS: Final = 5.0


class CertificateSource(ABC):
    """Provides the certificate to serve, and replaces it in time."""

    problem: str = "not yet"
    """Why clients would refuse the certificate, on one line; empty when they would not."""
    ca_pem: bytes | None = None
    """The certificate of a CA that was made for this process alone; whoever calls the service has to be given it."""

    @abstractmethod
    def start(self) -> AbstractAsyncContextManager[ServingCertificate]:
        """The certificate, kept up to date until the block ends.

        StartError when there can be none, ClusterError when a cluster is needed and cannot be used.
        """

    def concerns(self) -> dict[str, str]:
        """By its name in the runbook, what is wrong that does not keep the certificate from being served."""
        return {}

    def healthy(self) -> bool:
        """Whether clients accept the certificate."""
        return not self.problem


@asynccontextmanager
async def in_background(work: Callable[[], Coroutine[Any, Any, object]], telemetry: Telemetry) -> AsyncIterator[None]:
    """Run `work` until the block ends; begin again if it fails."""

    async def again_and_again() -> None:
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - without it certificates would expire, and nobody would know why
                telemetry.log.error("certificates", fault=wire.place(error))  # noqa: TRY400 - no text of objects
            await asyncio.sleep(RESTART_SECONDS)

    task = asyncio.create_task(again_and_again())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
