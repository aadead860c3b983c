"""The whole service: it listens on two ports and stops without losing a request."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from ssl import SSLContext

from certs.serving import CertificateError
from webhook.cel.evaluation import installed
from webhook.cel.trial import Trial, TrialFailed, try_expressions
from webhook.client import calls
from webhook.client.calls import Address, ClusterError
from webhook.cluster.view import NothingKnown
from webhook.controllers.ssh.pool import KeyPool
from webhook.installation import registration
from webhook.installation.registration import Registration
from webhook.kit import optional_parts
from webhook.kit.custom_rules import full_id
from webhook.plugins import loading
from webhook.policy import custom_rules_check, store
from webhook.policy.document import PolicyError
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import Loaded
from webhook.predict import other_jobs
from webhook.server import ops
from webhook.server import settings as serve_settings
from webhook.server.background import in_background
from webhook.server.certificates import CertificateSource, source_for
from webhook.server.client_ca import ClientCaFile
from webhook.server.cluster_link import ClusterLink, linked
from webhook.server.controllers import Surroundings, start_controllers
from webhook.server.http_server import Connections, HttpServer, most_connections
from webhook.server.limits import MAX_OPS_CONNECTIONS
from webhook.server.log import RefusalLog
from webhook.server.ops import Readiness
from webhook.server.ports import ListenError, Port, listen
from webhook.server.review_handler import ReviewHandler
from webhook.server.review_port import ReviewPort
from webhook.server.settings import ServeSettings, StartError
from webhook.server.telemetry import Telemetry

# Seconds that `register` waits for the caches to fill.
SETTLE_SECONDS = 10.0
# Seconds from complete caches to the first check of the installation, which imports much of `doctor`. In this time
# at least one readiness probe succeeds.
BEFORE_CONCERNS_SECONDS = 3.0


@dataclass(slots=True, kw_only=True)
class Service:
    """A service that is listening."""

    settings: ServeSettings
    telemetry: Telemetry
    handler: ReviewHandler
    keys: KeyPool
    readiness: Readiness
    ca_pem: bytes | None
    """The certificate of the CA in memory; None if there is no such CA."""
    server: HttpServer
    """The server of the review port, with its open connections."""
    port: Port
    url: str
    ops_url: str
    registration: Registration | None = None
    """The webhook configurations that this service has installed; else None."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once all readable objects of the cluster have been read and the policies are loaded."""

    async def register(self) -> None:
        """ClusterError if the configurations cannot be installed."""
        assert self.ca_pem is not None, "checked before anything is started"  # noqa: S101 - for the type checker
        api = await calls.connect(self.settings.kubeconfig)
        self.registration = Registration(api)
        configurations = registration.configurations(
            registration.by_url(self.url, self.ca_pem),
            labels={registration.MADE_BY: registration.BY_REGISTER},
            policy_namespace=self.settings.policy_namespace,
            options=self.settings.options,
        )
        await self.registration.install(configurations)
        try:
            await registration.make_namespace(api, self.settings.policy_namespace)
        except ClusterError as error:  # quotas are then judged by this process's cache alone
            self.telemetry.log.warning("the namespace for quota reservations cannot be read", reason=str(error))

    async def deregister(self) -> None:
        if self.registration is None:
            return
        try:
            await self.registration.close()
        except ClusterError as error:
            self.telemetry.log.warning("webhook configurations are left behind", reason=str(error))
        self.registration = None

    async def drain(self, *, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Close connections, then stop listening and finish the current reviews.

        For `drain_seconds` each reply closes its connection. In this time Services and API servers notice that this
        replica is stopping.
        """
        self.telemetry.log.info("draining", seconds=self.settings.drain_seconds)
        self.readiness.fails("serving", "draining")
        self.server.draining = True
        self.keys.stop_filling()
        await self.deregister()
        await pause(self.settings.drain_seconds)
        await self.port.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.timeout_seconds):
                await self.server.idle()


@asynccontextmanager
async def running(settings: ServeSettings, telemetry: Telemetry) -> AsyncIterator[Service]:
    """Run the service until the block ends; StartError if it cannot start.

    At the end, also after an error, the ports close and the webhook configurations are removed.
    """
    serve_settings.check(settings)
    _load(settings)
    async with AsyncExitStack() as stack:
        try:
            service = await _started(stack, settings, telemetry)
        except (CertificateError, ClusterError, ListenError) as error:
            raise StartError(str(error)) from None
        service.readiness.passes("serving")
        yield service


def _load(settings: ServeSettings) -> None:
    """Import optional modules now, so that no review waits for them."""
    for part in optional_parts.of(settings.options):
        for hook in part.hooks:
            resolve_name(hook.answer or hook.decide)
    other_jobs.all_kinds()
    if settings.in_cluster:
        import_module("webhook.client.kubeconfig")  # it imports the official Kubernetes client, which takes 0.8 s


async def _started(stack: AsyncExitStack, settings: ServeSettings, telemetry: Telemetry) -> Service:
    base = _policy(settings.policy)
    keys = KeyPool(
        size=settings.ssh_keys_ready,
        rate=settings.ssh_keys_rate,
        made=lambda algorithm, seconds: telemetry.metrics.observe("ssh_key_duration_seconds", seconds, algorithm),
        waited=lambda algorithm, seconds: telemetry.metrics.observe("ssh_key_wait_seconds", seconds, algorithm),
    )
    loop = asyncio.get_running_loop()
    telemetry.metrics.on_scrape(
        lambda: [
            ("ssh_keys_ready", (), keys.ready),
            ("ssh_keys_waiting", (), keys.waiting),
            ("tasks", (), len(asyncio.all_tasks(loop))),
        ]
    )
    handler = ReviewHandler(
        policies=PolicySet(base),
        view=NothingKnown(),
        telemetry=telemetry,
        keys=keys,
        max_in_flight=settings.max_in_flight,
        timeout=settings.timeout_seconds,
        clients=settings.client_names,
        options=settings.options,
    )
    telemetry.policies_in_force(_digest(handler.policies), custom_rules=_custom_rules(handler.policies))
    telemetry.plugins(loading.loaded(), loading.FAILURES)
    source = source_for(settings, telemetry)
    readiness = _readiness(source, telemetry)
    readiness.concerns_of(lambda: _left_out(handler.policies))
    await stack.enter_async_context(keys.filled())
    ops_handler = ops.handler(readiness, telemetry.registry, telemetry.job_registry)
    ops_server = HttpServer(ops_handler, _connections(telemetry, MAX_OPS_CONNECTIONS))
    _, ops_url = _open(stack, ops_server, settings.ops_listen)
    certificate = await stack.enter_async_context(source.start())
    if settings.client_ca is not None:
        client_ca = ClientCaFile(settings.client_ca, certificate, log=telemetry.log)
        readiness.concerns_of(client_ca.concerns)
        await stack.enter_async_context(in_background("certificates", client_ca.run, log=telemetry.log))
    connections, review_port = _connections(telemetry, most_connections()), ReviewPort(handler)
    server = HttpServer(review_port.handle, connections, review_port.bad_request)
    telemetry.metrics.on_scrape(lambda: [("connections", (), len(connections)), ("in_flight", (), server.in_flight)])
    port, url = _open(stack, server, settings.listen, certificate.context)
    service = Service(
        settings=settings,
        telemetry=telemetry,
        handler=handler,
        keys=keys,
        readiness=readiness,
        ca_pem=source.ca_pem,
        server=server,
        port=port,
        url=url,
        ops_url=ops_url,
    )
    telemetry.log.info("listening", address=url, ops=ops_url)
    if settings.in_cluster:
        link = await _follow_cluster(stack, service, base)
        if settings.register:
            await link.first_answer(SETTLE_SECONDS)  # if namespaces cannot be read, `register` reports the reason
    else:
        readiness.passes("policy")
        readiness.passes("cluster")
        service.settled.set()
    if settings.register:
        stack.push_async_callback(service.deregister)
        await service.register()
        telemetry.log.info("registered", name=registration.NAME)
    return service


def _readiness(source: CertificateSource, telemetry: Telemetry) -> Readiness:
    readiness = Readiness("policy", "cluster", "certificate", "serving")
    readiness.follow("certificate", lambda: source.problem)
    readiness.concerns_of(source.concerns)
    readiness.concerns_of(lambda: {f"plug-in {name}": text for name, text in loading.problems().items()})
    readiness.concerns_of(telemetry.concerns)
    return readiness


def _connections(telemetry: Telemetry, maximum: int) -> Connections:
    refused = partial(telemetry.metrics.add, "connections_refused_total")
    return Connections(maximum=maximum, refused=refused, log=RefusalLog(telemetry.log))


def _open(
    stack: AsyncExitStack, server: HttpServer, address: Address, context: SSLContext | None = None
) -> tuple[Port, str]:
    port, url = listen(server, address, context)
    stack.push_async_callback(port.close)
    return port, url


async def _follow_cluster(stack: AsyncExitStack, service: Service, base: tuple[Layer, ...]) -> ClusterLink:
    """Keep view and policies up to date until `stack` ends. The service is ready once the caches are filled."""
    handler, telemetry = service.handler, service.telemetry
    on_policies: list[Callable[[], None]] = []
    switched_on = optional_parts.of(service.settings.options)

    def apply(policies: PolicySet, loaded: Loaded) -> None:
        before, now = _digest(handler.policies), _digest(policies)
        handler.policies = policies
        telemetry.policies_in_force(now, loaded.states.values(), custom_rules=_custom_rules(policies))
        # `apply` is also called for unchanged policies. After a change, controllers look at every job.
        for changed in on_policies if now != before else ():
            changed()

    link = await stack.enter_async_context(
        linked(
            service.settings.kubeconfig,
            namespace=service.settings.policy_namespace,
            kueue_namespace=service.settings.kueue_namespace,
            base=base,
            apply=apply,
            log=telemetry.log,
            more=chain.from_iterable(resolve_name(part.watched) for part in switched_on if part.watched),
            on_quota=partial(telemetry.metrics.add, "quota_ledger_total"),
        )
    )
    handler.view, handler.cluster = link.view, link
    handler.now = lambda: datetime.fromtimestamp(link.api.now(), UTC)  # one clock for all replicas
    telemetry.caches(link.watches)
    telemetry.metrics.on_scrape(link.measured)
    companions = Surroundings(
        settings=service.settings,
        link=link,
        telemetry=telemetry,
        readiness=service.readiness,
        policies=lambda: handler.policies,
    )
    on_policies += await start_controllers(stack, companions)

    service.readiness.follow("policy", lambda: link.policies.unsettled)
    service.readiness.follow("cluster", lambda: link.misleading_caches() if link.read.is_set() else _unread(link))
    service.readiness.concerns_of(link.concerns)

    async def settle() -> None:
        await link.settled.wait()
        service.settled.set()
        await asyncio.sleep(BEFORE_CONCERNS_SECONDS)
        # in a thread, so that reviews continue
        installation = await asyncio.to_thread(import_module, "webhook.server.installation_concerns")
        await installation.follow(link.api, service.settings, telemetry, concerns)

    concerns: dict[str, str] = {}
    service.readiness.concerns_of(lambda: concerns)
    await stack.enter_async_context(in_background("installation", settle, log=telemetry.log, faults=link.faults))
    return link


def _unread(link: ClusterLink) -> str:
    return "; ".join(f"{name} not read yet: {why}" for name, why in link.view.faults().items()) or "not read yet"


def _policy(path: Path | None) -> tuple[Layer, ...]:
    model = policy_model()
    model.model_rebuild()  # no review may wait for the validators
    if path is None:
        return ()
    try:
        layers = store.load_file(path.stem, path.read_bytes(), model)
        _try_custom_rules(layers)
    except OSError as error:
        raise StartError(f"cannot read the policy {path}: {error.strerror}") from None
    except (PolicyError, TrialFailed) as error:
        raise StartError(f"the policy {path} cannot be used:\n{error}") from None
    return layers


def _try_custom_rules(layers: tuple[Layer, ...]) -> None:
    """Try the custom rules of a policy file. PolicyError or TrialFailed if they are invalid."""
    for document in (layer.document for layer in layers):
        if sources := custom_rules_check.sources(document):
            outcomes = try_expressions(Trial(sources, document.params))
            if faults := custom_rules_check.check(document, "{}", outcomes).faults:
                raise PolicyError(*faults)


def _custom_rules(policies: PolicySet) -> set[str]:
    """The ids of custom rules. Imports the CEL engine, so that no review waits for the import."""
    ids = {full_id(rule.id) for layer in policies.layers for rule in layer.document.custom_rules}
    if ids and installed():
        import_module("webhook.cel.environment")
    return ids


def _left_out(policies: PolicySet) -> dict[str, str]:
    return {
        f"policy-left-out-{name}": f'policy "{name}" is left out where it contradicts another: {reason}'
        for name, reason in policies.left_out.items()
    }


def _digest(policies: PolicySet) -> str:
    """A hash of the documents, equal in all replicas with the same policies."""
    content = "\n".join(layer.document.model_dump_json(exclude_unset=True) for layer in policies.layers)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


__all__ = ["ServeSettings", "Service", "StartError", "running"]
