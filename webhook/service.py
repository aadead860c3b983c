"""The service as a whole: from settings to two listening ports, and their end without a lost request."""

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from ssl import SSLContext

from aiohttp import web

from certs.authority import Authority
from certs.serving import CertificateError, ServingCertificate
from webhook import ops, registration
from webhook.active_policy import PolicySet, policy_model
from webhook.cluster import client
from webhook.cluster.client import ClusterError
from webhook.cluster.view import NothingKnown
from webhook.cluster_link import ClusterLink, linked
from webhook.listening import CLOSE_SECONDS, Address, ListenError, hang_up, listen
from webhook.ops import Readiness
from webhook.policy import document
from webhook.policy.document import PolicyError
from webhook.policy.layers import Layer
from webhook.policy.store import Loaded
from webhook.registration import Registration
from webhook.server import ReviewHandler
from webhook.telemetry import Telemetry

# Nobody renews the certificate that is made in memory: it is for development, and new at every start.
CERTIFICATE_LIFETIME = timedelta(days=365)
# How long registering waits for what is to be known of the cluster.
SETTLE_SECONDS = 10.0
EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


class StartError(Exception):
    """The service cannot start; the message tells its operator what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What `mpijob-webhook serve` takes; times in seconds, port 0 lets the kernel choose.

    Without `tls_cert` and `tls_key` the service makes a CA and a certificate in memory; `ca_file` is where it then
    writes the CA's certificate. `register` needs that CA, and the cluster of `kubeconfig` (None: as kubectl finds it).
    With a `kubeconfig`, with `register` and in a pod the service follows its cluster: namespaces, and the policy
    ConfigMaps in `policy_namespace`.
    """

    kubeconfig: Path | None = None
    listen: Address = ("127.0.0.1", 8443)
    ops_listen: Address = ("127.0.0.1", 8081)
    policy: Path | None = None
    policy_namespace: str = "mpijob-webhook"
    register: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    ca_file: Path | None = None
    drain_seconds: float = 5
    max_in_flight: int = 64
    timeout_seconds: float = 10
    log_level: str = "info"

    @property
    def in_cluster(self) -> bool:
        """Whether there is a cluster to follow."""
        return self.kubeconfig is not None or self.register or "KUBERNETES_SERVICE_HOST" in os.environ


@dataclass(slots=True, kw_only=True)
class Service:
    """A service that listens on `url` and `ops_url`; `ca_pem` is None when its certificate came from files."""

    settings: ServeSettings
    telemetry: Telemetry
    handler: ReviewHandler
    readiness: Readiness
    certificate: ServingCertificate
    ca_pem: bytes | None
    site: web.BaseSite
    url: str
    ops_url: str
    registration: Registration | None = None

    async def register(self) -> None:
        """Install the webhook configurations on the cluster; ClusterError when that is not possible."""
        assert self.ca_pem is not None, "checked before anything is started"  # noqa: S101 - for the type checker
        wanted = registration.configurations(
            registration.by_url(self.url, self.ca_pem),
            labels={registration.MADE_BY: registration.BY_REGISTER},
            policy_namespace=self.settings.policy_namespace,
        )
        self.registration = Registration(await client.connect(self.settings.kubeconfig), wanted)
        await self.registration.install()

    async def deregister(self) -> None:
        """Remove them again, as far as they are there."""
        if self.registration is None:
            return
        try:
            await self.registration.close()
        except ClusterError as error:
            self.telemetry.log.warning("webhook configurations are left behind", reason=str(error))
        self.registration = None

    async def drain(self, *, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Send clients away, then stop listening and finish what is in flight.

        Each reply closes its connection for `drain_seconds`, the time in which Services and API servers learn that
        this replica is going. Connections that were idle all that time are closed at the end.
        """
        self.telemetry.log.info("draining", seconds=self.settings.drain_seconds)
        self.readiness.fails("serving", "draining")
        self.handler.draining = True
        await self.deregister()
        await pause(self.settings.drain_seconds)
        await self.site.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.timeout_seconds):
                await self.handler.idle()


@asynccontextmanager
async def running(settings: ServeSettings, telemetry: Telemetry) -> AsyncIterator[Service]:
    """A service that is ready, until the block ends; StartError when it cannot be.

    Whatever happens, its ports are closed and its configurations removed from the cluster.
    """
    _check(settings)
    base = _policy(settings.policy)
    certificate, ca_pem = _certificate(settings, telemetry)
    handler = ReviewHandler(
        policies=PolicySet(base),
        view=NothingKnown(),
        telemetry=telemetry,
        max_in_flight=settings.max_in_flight,
        timeout=settings.timeout_seconds,
    )
    telemetry.policies_in_force(_digest(handler.policies))
    readiness = Readiness("policy", "cluster", "serving")
    async with AsyncExitStack() as stack:
        application = ops.application(readiness, telemetry.registry)
        ops_runner = web.AppRunner(application, access_log=None, shutdown_timeout=CLOSE_SECONDS)
        _, ops_url = await _open(stack, ops_runner, settings.ops_listen)
        server = handler.http_server()
        runner = web.ServerRunner(server, shutdown_timeout=CLOSE_SECONDS)
        site, url = await _open(stack, runner, settings.listen, certificate.context)
        stack.push_async_callback(hang_up, server)
        service = Service(
            settings=settings,
            telemetry=telemetry,
            handler=handler,
            readiness=readiness,
            certificate=certificate,
            ca_pem=ca_pem,
            site=site,
            url=url,
            ops_url=ops_url,
        )
        telemetry.log.info("listening", address=url, ops=ops_url)
        if settings.in_cluster:
            link = await _follow_cluster(stack, service, base)
            if settings.register:
                await link.first_answer(SETTLE_SECONDS)  # if there is none, registering will tell why
        else:
            _settled(readiness)
        if settings.register:
            stack.push_async_callback(service.deregister)
            try:
                await service.register()
            except ClusterError as error:
                raise StartError(str(error)) from None
            telemetry.log.info("registered", name=registration.NAME)
        readiness.passes("serving")
        yield service


async def _open(
    stack: AsyncExitStack, runner: web.BaseRunner, address: Address, context: SSLContext | None = None
) -> tuple[web.BaseSite, str]:
    try:
        return await listen(stack, runner, address, context)
    except ListenError as error:
        raise StartError(str(error)) from None


def _check(settings: ServeSettings) -> None:
    """StartError for settings that do not go together."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise StartError("--tls-cert and --tls-key are only of use together")
    if settings.register and settings.tls_cert:
        raise StartError("--register makes its own certificate: leave out --tls-cert and --tls-key")
    if settings.register and settings.listen[0] in EVERY_ADDRESS:
        raise StartError("--register needs an address that the API server can reach: --listen HOST:PORT")


async def _follow_cluster(stack: AsyncExitStack, service: Service, base: tuple[Layer, ...]) -> ClusterLink:
    """Keep view and policies up to date until `stack` ends; ready once what can be known is known."""
    handler, telemetry = service.handler, service.telemetry

    def apply(policies: PolicySet, loaded: Loaded) -> None:
        handler.policies = policies
        telemetry.policies_in_force(_digest(policies), loaded.states.values())

    try:
        link = await stack.enter_async_context(
            linked(
                service.settings.kubeconfig,
                namespace=service.settings.policy_namespace,
                base=base,
                apply=apply,
                log=telemetry.log,
            )
        )
    except ClusterError as error:
        raise StartError(str(error)) from None
    handler.view, handler.cluster = link.view, link
    telemetry.caches(link.watches)

    async def settle() -> None:
        await link.settled.wait()
        _settled(service.readiness)

    stack.callback(asyncio.create_task(settle()).cancel)
    return link


def _settled(readiness: Readiness) -> None:
    """What can be known of the cluster is known, and its policies are in force."""
    readiness.passes("policy")
    readiness.passes("cluster")


def _policy(path: Path | None) -> tuple[Layer, ...]:
    """The layer of the policy file, if there is one."""
    if path is None:
        return ()
    try:
        return (Layer(str(path), document.load(path.read_bytes(), policy_model())),)
    except OSError as error:
        raise StartError(f"cannot read the policy {path}: {error.strerror}") from None
    except PolicyError as error:
        raise StartError(f"the policy {path} cannot be used:\n{error}") from None


def _digest(policies: PolicySet) -> str:
    """A hash of the documents' content: the same in every replica that has the same policies in force."""
    content = "\n".join(layer.document.model_dump_json(exclude_unset=True) for layer in policies.layers)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _certificate(settings: ServeSettings, telemetry: Telemetry) -> tuple[ServingCertificate, bytes | None]:
    """What to serve, and the CA's certificate where we have our own CA."""
    try:
        if settings.tls_cert and settings.tls_key:
            certificate = ServingCertificate.from_files(settings.tls_cert, settings.tls_key)
            telemetry.cert_not_after.labels("serving").set(certificate.not_after.timestamp())
            return certificate, None
    except CertificateError as error:
        raise StartError(f"{settings.tls_cert}: {error}") from None
    authority = Authority("mpijob-webhook", lifetime=CERTIFICATE_LIFETIME)
    host = settings.listen[0]
    hosts = ["localhost", "127.0.0.1", "::1", socket.gethostname()] if host in EVERY_ADDRESS else [host]
    pair = authority.issue(hosts, lifetime=CERTIFICATE_LIFETIME)
    telemetry.cert_not_after.labels("ca").set(authority.not_after.timestamp())
    telemetry.cert_not_after.labels("serving").set(pair.not_after.timestamp())
    if settings.ca_file is not None:
        try:
            settings.ca_file.write_bytes(authority.certificate_pem)
        except OSError as error:
            raise StartError(f"cannot write {settings.ca_file}: {error.strerror}") from None
    hint = str(settings.ca_file) if settings.ca_file else "give --ca-file FILE to have it written"
    telemetry.log.info("certificate made in memory", hosts=hosts, ca=hint)
    return ServingCertificate(pair.certificate_pem, pair.key_pem), authority.certificate_pem
