import asyncio
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta

import pytest

from certs.authority import Authority
from certs.pem import CertificateError
from certs.reload import FileCertificate
from tests.support.tls import connected, listener, serial, served, strict_client

DAY = timedelta(days=1)
NOW = datetime.now(UTC).replace(microsecond=0)
HOST = "localhost"
CA = Authority("test CA", lifetime=90 * DAY)
OTHER_CA = Authority("other CA", lifetime=90 * DAY)


def issue(ca=CA, hosts=(HOST,), **kwargs):
    return ca.issue(list(hosts), **({"lifetime": 10 * DAY} | kwargs))


class Mounted:
    """A Secret as the kubelet mounts it: the files are behind the link `..data`, which is replaced atomically."""

    def __init__(self, folder):
        self.folder = folder
        self.versions = 0
        self.now = datetime.now(UTC)
        self.notices = []

    def write(self, pair, ca_pem=CA.certificate_pem):
        self.put(pair.certificate_pem, pair.key_pem, ca_pem)

    def put(self, chain_pem, key_pem, ca_pem=CA.certificate_pem):
        """Write a new version of the files. A file whose content is None is left out."""
        self.versions += 1
        version = self.folder / f"..version-{self.versions}"
        version.mkdir()
        for name, pem in (("tls.crt", chain_pem), ("tls.key", key_pem), ("ca.crt", ca_pem)):
            if pem is not None:
                (version / name).write_bytes(pem)
            with suppress(FileExistsError):
                (self.folder / name).symlink_to(f"..data/{name}")
        (self.folder / "..new").symlink_to(version.name)
        (self.folder / "..new").rename(self.folder / "..data")

    def watched(self, **kwargs):
        options = {"ca": self.folder / "ca.crt", "hosts": [HOST], "clock": lambda: self.now}
        options |= {"listener": self.notices.append} | kwargs
        return FileCertificate(self.folder / "tls.crt", self.folder / "tls.key", **options)

    def reasons(self):
        """The reasons of the notices since the last call."""
        reasons = [notice.reason for notice in self.notices]
        self.notices.clear()
        return reasons


@pytest.fixture
def mounted(tmp_path):
    return Mounted(tmp_path)


async def served_on(port, ca=CA):
    async with connected(port, context=strict_client(ca.certificate_pem)) as (_, writer):
        return served(writer)


async def test_new_pair_is_served_from_the_next_handshake_on(mounted):
    first, second = issue(), issue(OTHER_CA)
    mounted.write(first)
    files = mounted.watched()
    async with listener(files.serving) as port:
        assert await served_on(port) == serial(first.certificate_pem)
        await files.poll()
        assert mounted.notices == []
        mounted.write(second, OTHER_CA.certificate_pem)
        await files.poll()
        await files.poll()
        assert await served_on(port, OTHER_CA) == serial(second.certificate_pem)
    assert (mounted.reasons(), files.problem) == (["CertificateReloaded"], None)
    assert files.serving.not_after == second.not_after


def content(pair, ca=CA.certificate_pem):
    return pair.certificate_pem, pair.key_pem, ca


GOOD = issue()
EXPIRED = issue(Authority("test CA", lifetime=90 * DAY, now=NOW - 80 * DAY), now=NOW - 11 * DAY)
DAMAGED = {
    "another key": (
        (GOOD.certificate_pem, issue().key_pem, CA.certificate_pem),
        "the private key does not belong to the certificate",
    ),
    "no key": (
        (GOOD.certificate_pem, None, CA.certificate_pem),
        "cannot read {folder}/tls.key: No such file or directory",
    ),
    "another name": (
        content(issue(hosts=["a.example", "192.0.2.1"])),
        "the certificate is not for localhost, only for a.example, 192.0.2.1",
    ),
    "another CA": (content(issue(OTHER_CA)), "the certificate was not issued by the CA in {folder}/ca.crt"),
    "a damaged CA": (content(GOOD, b"nonsense"), "{folder}/ca.crt is not PEM, or damaged"),
    "expired": (content(EXPIRED, b""), f"the certificate expired at {NOW - DAY:%Y-%m-%dT%H:%M:%SZ}"),
    "not yet valid": (
        content(issue(now=NOW + DAY)),
        f"the certificate is not valid before {NOW + DAY - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}",
    ),
}


@pytest.mark.parametrize(("contents", "fault"), DAMAGED.values(), ids=DAMAGED)
async def test_last_valid_certificate_stays_in_use_if_the_new_files_are_invalid(mounted, contents, fault):
    first = issue()
    mounted.write(first)
    files = mounted.watched()
    fault = fault.format(folder=mounted.folder)
    mounted.put(*contents)
    await files.poll()
    # A fault is reported after the second read, because the first read may happen while the files are replaced.
    assert (mounted.notices, files.problem) == ([], None)
    for _ in range(3):
        await files.poll()
    (notice,) = mounted.notices
    assert files.problem == fault
    assert notice.message == f"{mounted.folder}/tls.crt: {fault}; the last good certificate is still served"
    assert (notice.reason, notice.warning) == ("CertificateProblem", True)
    async with listener(files.serving) as port:
        assert await served_on(port) == serial(first.certificate_pem)
    mounted.notices.clear()
    mounted.write(issue())
    await files.poll()
    assert mounted.reasons() == ["CertificateReloaded", "CertificatesRecovered"]
    assert files.problem is None


@pytest.mark.parametrize(("contents", "fault"), DAMAGED.values(), ids=DAMAGED)
def test_start_without_a_valid_certificate_is_an_error(mounted, contents, fault):
    mounted.put(*contents)
    with pytest.raises(CertificateError) as error:
        mounted.watched()
    assert str(error.value) == fault.format(folder=mounted.folder)


async def test_certificate_is_used_from_the_start_of_its_validity(mounted):
    mounted.write(issue())
    files = mounted.watched()
    mounted.write(issue(now=NOW + DAY))
    await files.poll()
    assert mounted.notices == []
    mounted.now += DAY
    await files.poll()
    assert mounted.reasons() == ["CertificateReloaded"]


async def test_expiry_of_the_served_certificate_is_reported(mounted):
    mounted.write(issue())
    files = mounted.watched()
    mounted.now += 11 * DAY
    await files.poll()
    await files.poll()
    expired = f"the served certificate expired at {files.serving.not_after:%Y-%m-%dT%H:%M:%SZ}"
    assert files.problem == expired
    mounted.put(b"", b"")
    await files.poll()
    await files.poll()
    assert files.problem == f"the certificate is not PEM, or damaged; {expired}"
    assert mounted.reasons() == ["CertificateProblem"] * 2


async def test_files_written_one_after_the_other_are_not_a_problem(tmp_path):
    notices, certificate, key = [], tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(GOOD.certificate_pem)
    key.write_bytes(GOOD.key_pem)
    files = FileCertificate(certificate, key, listener=notices.append)
    second = issue()
    certificate.write_bytes(second.certificate_pem)
    await files.poll()
    key.write_bytes(second.key_pem)
    await files.poll()
    assert [notice.reason for notice in notices] == ["CertificateReloaded"]


@pytest.mark.parametrize("ca_pem", [None, b"", b"\n"])
def test_issuer_is_not_checked_without_a_ca(mounted, ca_pem):
    mounted.write(issue(OTHER_CA), ca_pem)
    mounted.watched()


def test_unreadable_ca_is_reported(mounted):
    mounted.write(issue())
    (mounted.folder / "folder").mkdir()
    with pytest.raises(CertificateError, match=r"^cannot read .*/folder: Is a directory$"):
        mounted.watched(ca=mounted.folder / "folder")


@pytest.mark.parametrize(
    ("names", "host", "fits"),
    [
        (["*.training.svc"], "webhook.training.svc", True),
        (["*.training.svc"], "a.b.training.svc", False),
        (["Webhook.Training.svc"], "webhook.training.svc", True),
        (["webhook.training.svc.cluster.local"], "webhook.training.svc", False),
        (["127.0.0.1"], "127.0.0.1", True),
    ],
)
def test_certificate_is_rejected_if_its_names_do_not_fit_the_host(mounted, names, host, fits):
    mounted.write(issue(hosts=names))
    with nullcontext() if fits else pytest.raises(CertificateError, match=r"^the certificate is not for "):
        mounted.watched(hosts=[host])


async def test_loop_polls_the_files(mounted):
    mounted.write(issue())
    notices = asyncio.Queue()
    files = mounted.watched(interval=timedelta(milliseconds=1), listener=notices.put_nowait)
    task = asyncio.create_task(files.run())
    mounted.write(issue())
    assert (await notices.get()).reason == "CertificateReloaded"
    task.cancel()
