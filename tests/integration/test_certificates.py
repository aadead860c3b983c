"""Certificates that the service manages, with two replicas behind a Service and continuous creation of jobs."""

import base64
import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from certs.authority import Authority
from certs.pem import load_certificates
from certs.state import load as load_state
from tests.controlplane.cluster import Cluster
from tests.support.installation.balancer import Backend, Balancer
from tests.support.installation.deployment import HOST, SECRET, SELF_MANAGED, SERVICE, SPACE, Deployment
from tests.support.installation.load import ADMITTED, Load
from tests.support.jobs import GOOD, changed
from tests.support.paths import ROOT
from tests.support.rare import rare
from webhook.installation import registration

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

# Certificates are replaced after two thirds of their lifetime: leaf certificates every 4 seconds, CAs every 16 seconds.
QUICK = ("--leaf-lifetime", "6s", "--ca-grace", "1s", "--ca-lifetime", "24s")
# A leaf certificate that expires within seconds, and a CA that lasts an hour.
LASTING = ("--leaf-lifetime", "6s", "--ca-grace", "1s", "--ca-lifetime", "1h")
# The API server's messages when the machine was too busy for a reply in time.
LATE = ("deadline exceeded", "time allotted")
JOBS = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"
JOB = changed({"metadata.namespace": "default"})
KINDS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A separate cluster, because its API server is restarted."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(log_dir=tmp_path_factory.mktemp("certificates")))
        made = Deployment(cluster, stack.enter_context(Balancer()))
        made.install()
        yield made


@pytest.fixture
def replicas(deployment: Deployment) -> list[Backend]:
    """Two replicas whose certificates expire within seconds. Replicas of the previous test are used again."""
    backends = deployment.balancer.backends
    while len(backends) < 2:
        deployment.start(*SELF_MANAGED, *QUICK)
    return list(backends)


def report(what: str, load: Load) -> None:
    failed = sum(load.failed.values())
    print(f"{what}: {load.first[ADMITTED]:,} admitted at once, {failed} not, {len(load.lost)} lost")  # noqa: T201


@rare
def test_no_job_is_lost_while_certificates_and_cas_rotate(deployment: Deployment, replicas: list[Backend]) -> None:
    cas: set[int] = set()
    with Load(deployment.cluster.kubeconfig, JOBS, JOB) as load:
        end = time.monotonic() + 60
        while time.monotonic() < end and len(cas) < 3:
            cas |= deployment.serials()
            time.sleep(0.5)
    report(f"leaf and CA rotation, {len(cas)} CAs", load)
    assert len(cas) >= 3
    assert (load.failed, load.lost) == ({}, [])
    assert load.first[ADMITTED] > 100


def test_no_job_is_lost_during_a_rolling_restart(deployment: Deployment, replicas: list[Backend]) -> None:
    with Load(deployment.cluster.kubeconfig, JOBS, JOB) as load:
        for backend in replicas:
            deployment.start(*SELF_MANAGED, *QUICK)
            deployment.stop(backend)
    report("rolling restart", load)
    assert (load.failed, load.lost) == ({}, [])


@rare
def test_no_job_is_lost_while_the_first_release_is_upgraded(
    deployment: Deployment, replicas: list[Backend], tmp_path: Path
) -> None:
    deployment.under = ("/usr/bin/env", f"PYTHONPATH={first_release(tmp_path)}", "PYTHONSAFEPATH=1")
    older = [deployment.start(*SELF_MANAGED, *QUICK) for _ in replicas]
    deployment.under = ()
    for backend in replicas:
        deployment.stop(backend)
    with Load(deployment.cluster.kubeconfig, JOBS, JOB) as load:
        for backend in older:
            deployment.start(*SELF_MANAGED, *QUICK)
            deployment.stop(backend)
    report("upgrade from 0.1.0", load)
    assert load.first[ADMITTED] > 0
    assert (load.failed, load.lost) == ({}, [])


def first_release(folder: Path) -> Path:
    """The code of version 0.1.0: from its tag, or from the first commit with a changelog for 0.1.0."""
    cut = ("git", "log", "--reverse", "--format=%H", "-S## 0.1.0 - ", "--", "CHANGELOG.md")
    for command in (("git", "tag", "-l", "v0.1.0"), cut):
        if found := subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split():
            archive = ("git", "archive", found[0], "webhook", "certs")
            packed = subprocess.run(archive, cwd=ROOT, capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
            return folder
    pytest.skip("the checkout has no history")


def test_only_requests_in_progress_fail_when_a_replica_is_killed(
    deployment: Deployment, replicas: list[Backend]
) -> None:
    with Load(deployment.cluster.kubeconfig, JOBS, JOB) as load:
        time.sleep(1)
        deployment.stop(replicas[0], kill=True)
        time.sleep(3)
    report("one of two replicas killed", load)
    assert load.lost == []
    # At most one request of each client was in progress at the killed replica.
    assert sum(load.failed.values()) <= 2 * load.threads


def test_changed_certificates_are_repaired(deployment: Deployment, replicas: list[Backend]) -> None:
    """Jobs are blocked until the certificates are repaired, so the repair must be quick."""
    cluster = deployment.cluster
    foreign = base64.b64encode(Authority("foreign", lifetime=timedelta(days=1)).certificate_pem).decode()
    breaks: list[list[Any]] = [
        [kind, registration.NAME, "--type=json", "-p", _patch("/webhooks/0/clientConfig/caBundle", foreign)]
        for kind in KINDS
    ]
    breaks.append(["secret", SECRET, "-n", SPACE, "--type=json", "-p", _patch("/data", {})])
    for broken in breaks:
        before = deployment.secret()
        cluster.kubectl("patch", *broken)
        assert before
        cluster.wait_for(f"{broken[0]} to be fixed", lambda: _admits(deployment), timeout=30)
        for kind in KINDS:
            cluster.wait_for("the CA", lambda kind=kind: b"foreign" not in deployment.bundle(kind) or None)  # type: ignore[misc]


def test_overwritten_ca_bundles_are_restored_while_the_ca_secret_is_deleted(
    deployment: Deployment, replicas: list[Backend]
) -> None:
    """Jobs are admitted even after the leaf certificates expired: each replica keeps the CA in its memory."""
    cluster = deployment.cluster
    pem = Authority("foreign", lifetime=timedelta(days=1)).certificate_pem
    _use_lasting_ca(deployment)
    cluster.kubectl("delete", "secret", SECRET, "-n", SPACE)
    try:
        for kind in KINDS:
            patch = _patch("/webhooks/0/clientConfig/caBundle", base64.b64encode(pem).decode())
            cluster.kubectl("patch", kind, registration.NAME, "--type=json", "-p", patch)
        for kind in KINDS:
            cluster.wait_for("the last known CA", lambda kind=kind: deployment.bundle(kind) != pem or None)  # type: ignore[misc]
        cluster.wait_for("jobs to be admitted", lambda: _admits(deployment), timeout=10)
        with Load(cluster.kubeconfig, JOBS, JOB) as load:
            time.sleep(8)
        assert [answer for answer in load.failed if not any(late in answer for late in LATE)] == []
        assert load.lost == []
        assert load.first[ADMITTED] > 10
        assert not deployment.secret_is_there()
        ready = urlopen(f"{deployment.balancer.backends[0].ops_url}/readyz", timeout=10).read().decode()
        assert "[!]ca-secret: the CA Secret does not exist" in ready
    finally:
        cluster.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": SPACE, "name": SECRET}}])
        cluster.wait_for("a CA in the new Secret", deployment.secret)


def test_no_job_is_lost_when_the_api_server_restarts(deployment: Deployment, replicas: list[Backend]) -> None:
    """The API server is down for longer than a leaf certificate lasts. Replicas renew it with the CA in memory."""
    _use_lasting_ca(deployment)
    with Load(deployment.cluster.kubeconfig, JOBS, JOB) as load:
        time.sleep(1)
        deployment.cluster.stop_apiserver()
        time.sleep(7)
        assert all(map(_is_valid, deployment.balancer.backends))
        deployment.cluster.start_apiserver()
        time.sleep(3)
    report("API server restart", load)
    assert [answer for answer in load.failed if "failed calling webhook" in answer] == []
    assert load.lost == []


def _is_valid(backend: Backend) -> bool:
    """Whether the certificate that the replica serves has not expired."""
    served = load_certificates(ssl.get_server_certificate(("127.0.0.1", backend.port), timeout=30).encode())
    return served[0].not_valid_after_utc > datetime.now(UTC)


def _use_lasting_ca(deployment: Deployment) -> None:
    """Rotate to a CA that outlives the test, and wait until every replica has read it."""
    for backend in list(deployment.balancer.backends):
        deployment.start(*SELF_MANAGED, *LASTING)
        deployment.stop(backend)
    deployment.cluster.wait_for("a CA that lasts", lambda: _has_lasting_ca(deployment) or None)
    time.sleep(3)  # until each replica has read it


def _has_lasting_ca(deployment: Deployment) -> bool:
    """Whether the signing CA outlives the test."""
    current = load_state(deployment.secret()).current
    return current is not None and current.not_after > datetime.now(UTC) + timedelta(minutes=10)


@rare
def test_certificate_files_are_reloaded_under_load(deployment: Deployment, tmp_path: Path) -> None:
    for backend in list(deployment.balancer.backends):
        deployment.stop(backend)
    first, second = (Authority(name, lifetime=timedelta(days=1)) for name in ("first", "second"))
    bundle = base64.b64encode(first.certificate_pem + second.certificate_pem).decode()
    for kind in KINDS:
        hooks = len(deployment.cluster.get(kind, registration.NAME)["webhooks"])
        for index in range(hooks):
            patch = _patch(f"/webhooks/{index}/clientConfig/caBundle", bundle)
            deployment.cluster.kubectl("patch", kind, registration.NAME, "--type=json", "-p", patch)
    _mount(tmp_path, first)
    flags = ("--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key"), "--service", SERVICE)
    backends = [deployment.start(*flags) for _ in range(2)]
    with Load(deployment.cluster.kubeconfig, JOBS, JOB) as load:
        for authority in (second, first):
            _mount(tmp_path, authority)
            time.sleep(6)
    for backend in backends:
        log = deployment.cluster.programs[deployment.names[backend]].log.read_text()
        assert log.count("CertificateReloaded") == 2
        deployment.stop(backend)
    report("certificate files exchanged twice", load)
    assert (load.failed, load.lost) == ({}, [])


def _admits(deployment: Deployment) -> bool:
    done = deployment.cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=GOOD_HERE, check=False)
    return done.returncode == 0


GOOD_HERE = changed({"metadata.namespace": "default"}, GOOD)


def _patch(path: str, value: Any) -> str:
    return json.dumps([{"op": "add", "path": path, "value": value}])


def _mount(folder: Path, authority: Authority) -> None:
    """Replace the pair as the kubelet does: write a new folder, then change one symbolic link."""
    pair = authority.issue([HOST], lifetime=timedelta(hours=1))
    data = folder / f"..{time.monotonic_ns()}"
    data.mkdir()
    (data / "tls.crt").write_bytes(pair.certificate_pem)
    (data / "tls.key").write_bytes(pair.key_pem)
    fresh = folder / "..data_tmp"
    fresh.symlink_to(data.name)
    fresh.rename(folder / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
