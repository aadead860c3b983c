"""A CA and a certificate for development: made at every start and never renewed."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from certs.authority import Authority
from certs.serving import ServingCertificate
from webhook import PROGRAM
from webhook.server.certificates import CertificateSource
from webhook.server.ports import EVERY_ADDRESS
from webhook.server.settings import ServeSettings, StartError
from webhook.server.telemetry import Telemetry

LIFETIME: Final = timedelta(days=365)


class InMemorySource(CertificateSource):
    """Keeps the keys in memory. Only the CA's certificate may be written to a file."""

    def __init__(self, settings: ServeSettings, telemetry: Telemetry) -> None:
        self._host = settings.listen[0]
        self._ca_file = settings.ca_file
        self._telemetry = telemetry

    @asynccontextmanager
    async def start(self) -> AsyncIterator[ServingCertificate]:
        """StartError if the CA file cannot be written."""
        authority = Authority(PROGRAM, lifetime=LIFETIME)
        every_address = ["localhost", "127.0.0.1", "::1", socket.gethostname()]
        hosts = every_address if self._host in EVERY_ADDRESS else [self._host]
        pair = authority.issue(hosts, lifetime=LIFETIME)
        for name, moment in (("ca", authority.not_after), ("serving", pair.not_after)):
            self._telemetry.metrics.set("cert_expiry_timestamp_seconds", moment.timestamp(), name)
        if self._ca_file is not None:
            try:
                self._ca_file.write_bytes(authority.certificate_pem)
            except OSError as error:
                raise StartError(f"cannot write {self._ca_file}: {error.strerror}") from None
        hint = str(self._ca_file) if self._ca_file else "give --ca-file FILE to have it written"
        self._telemetry.log.info("certificate made in memory", hosts=hosts, ca=hint)
        self.ca_pem = authority.certificate_pem
        self.problem = ""
        yield ServingCertificate(pair.certificate_pem, pair.key_pem)
