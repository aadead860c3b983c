"""A serving certificate from files that cert-manager, OpenShift's service-ca or an administrator renews.

Changes are detected by content. The kubelet changes a mounted Secret by replacing a symbolic link, and inotify does not
report this change for the files. A read during the replacement can get a key that does not match the certificate. So a
problem is reported only if two polls in a row find it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

from certs.notice import Listener, Notice, ignore
from certs.pem import CertificateError, chains_to, covers, hosts, load_certificates, load_pair
from certs.serving import ServingCertificate, read_pair


@dataclass(frozen=True, slots=True)
class Content:
    """The content of the files at one time."""

    chain_pem: bytes
    key_pem: bytes = field(repr=False)
    ca_pem: bytes


class FileCertificate:
    """Serves the pair in two files. An invalid pair never replaces a valid pair."""

    serving: ServingCertificate
    problem: str | None = None
    """The fault of the files or of the served certificate; None if both are valid."""

    def __init__(
        self,
        certificate: Path,
        key: Path,
        *,
        ca: Path | None = None,
        hosts: Sequence[str] = (),
        interval: timedelta = timedelta(seconds=5),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        listener: Listener = ignore,
    ) -> None:
        """CertificateError if the files are invalid.

        The certificate must be valid for each of `hosts`. If the file `ca` exists and is not empty, a CA in this file
        must have issued the certificate, directly or through intermediate CAs.
        """
        self._certificate = certificate
        self._key = key
        self._ca = ca
        self._hosts = tuple(hosts)
        self._interval = interval.total_seconds()
        self._clock = clock
        self._tell = listener
        self._suspected: str | None = None
        content = self._read()
        self._check(content)
        self.serving = ServingCertificate(content.chain_pem, content.key_pem, now=clock())
        self._served = content

    async def run(self) -> NoReturn:
        while True:
            await asyncio.sleep(self._interval)
            await self.poll()

    async def poll(self) -> None:
        problem = None
        try:
            # in a thread, because a file system can hang
            self._use(await asyncio.to_thread(self._read))
        except CertificateError as error:
            problem = str(error)
        if self.serving.not_after <= self._clock():
            expired = f"the served certificate expired at {self.serving.not_after:%Y-%m-%dT%H:%M:%SZ}"
            problem = f"{problem}; {expired}" if problem else expired
        self._note(problem)

    def _use(self, content: Content) -> None:
        if content == self._served:
            return
        self._check(content)
        self.serving.swap(content.chain_pem, content.key_pem, now=self._clock())
        self._served = content
        message = f"serving the new certificate in {self._certificate}, valid until "
        self._tell(Notice("CertificateReloaded", f"{message}{self.serving.not_after:%Y-%m-%dT%H:%M:%SZ}"))

    def _note(self, problem: str | None) -> None:
        if problem is None and self.problem is not None:
            self._tell(Notice("CertificatesRecovered", f"{self._certificate} and {self._key} are valid again"))
            self.problem = None
        elif problem is not None and problem == self._suspected and problem != self.problem:
            self.problem = problem
            message = f"{self._certificate}: {problem}; the last good certificate is still served"
            self._tell(Notice("CertificateProblem", message, warning=True))
        self._suspected = problem

    def _read(self) -> Content:
        chain_pem, key_pem = read_pair(self._certificate, self._key)
        ca_pem = b""
        if self._ca:
            try:
                ca_pem = self._ca.read_bytes()
            except FileNotFoundError:
                pass
            except OSError as error:
                raise CertificateError(f"cannot read {error.filename}: {error.strerror}") from None
        return Content(chain_pem, key_pem, ca_pem)

    def _check(self, content: Content) -> None:
        chain, _ = load_pair(content.chain_pem, content.key_pem)
        for host in self._hosts:
            if not covers(chain[0], host):
                names = ", ".join(hosts(chain[0])) or "no host"
                raise CertificateError(f"the certificate is not for {host}, only for {names}")
        if content.ca_pem.strip():
            try:
                roots = load_certificates(content.ca_pem)
            except CertificateError:
                raise CertificateError(f"{self._ca} is not PEM, or damaged") from None
            if not chains_to(chain, roots):
                raise CertificateError(f"the certificate was not issued by the CA in {self._ca}")
