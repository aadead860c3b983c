"""The CA of the clients that may send reviews, from a file that may change."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from certs.serving import CertificateError, ServingCertificate

INTERVAL: Final = 5.0  # seconds
CONCERN: Final = "client-ca"


class ClientCaFile:
    """Makes `certificate` require client certificates from the CAs in the file `path`.

    A damaged file never replaces a valid CA. A file that is being written looks damaged, so a fault is reported only if
    it occurs twice in a row.
    """

    def __init__(self, path: Path, certificate: ServingCertificate, *, log: Any) -> None:
        """CertificateError if the file cannot be used."""
        self._path = path
        self._certificate = certificate
        self._log = log
        self._used = b""
        self._suspected = self._problem = ""
        self._use(self._read())

    def concerns(self) -> Mapping[str, str]:
        return {CONCERN: f"{self._problem}; the CAs read earlier are still used"} if self._problem else {}

    async def run(self) -> NoReturn:
        while True:
            await asyncio.sleep(INTERVAL)
            await self.poll()

    async def poll(self) -> None:
        problem = ""
        try:
            # reading blocks if the file system hangs
            if self._use(await asyncio.to_thread(self._read)):
                self._log.info("client CA", reloaded=str(self._path))
        except CertificateError as error:
            problem = str(error)
        if problem and problem == self._suspected and problem != self._problem:
            self._log.warning("client CA", problem=problem)
        self._problem = problem if problem == self._suspected else ""
        self._suspected = problem

    def _read(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError as error:
            raise CertificateError(f"cannot read {self._path}: {error.strerror}") from None

    def _use(self, ca_pem: bytes) -> bool:
        if ca_pem == self._used:
            return False
        try:
            self._certificate.require_clients(ca_pem)
        except CertificateError as error:
            raise CertificateError(f"{self._path}: {error}") from None
        self._used = ca_pem
        return True
