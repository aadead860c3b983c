"""The review port: a request is checked and decoded, a pipeline decides, the decision is sent back. No rule lives here.

A decision is HTTP 200. Everything else is a fault, of the client (4xx) or of ours (5xx), and leaves the verdict to the
administrator's failurePolicy: overload, a deadline or a bug must never look like a refusal of the user's job.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Protocol

from aiohttp import hdrs, web

from webhook.admission import policy_review
from webhook.admission.pipelines import DeadlineExceeded, Decision, Hook, decide
from webhook.api import review
from webhook.api.review import AdmissionRequest, ReviewError
from webhook.client.calls import ClusterError
from webhook.cluster.overlay import Overlay
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.resources.reservations import RESERVATIONS
from webhook.cluster.view import Answer, ClusterView
from webhook.companions.ssh import secret
from webhook.companions.ssh.pool import KeyPool, NoKey
from webhook.policy.in_force import PolicySet
from webhook.server import clock, requests
from webhook.server.connections import Handler
from webhook.server.memory import Claim, MemoryBudget, NoRoom
from webhook.server.recorder import Recorder
from webhook.server.requests import Refused, Reply, Target, expect_client, expect_review, read_body
from webhook.server.telemetry import Telemetry

# The rest of the time that the API server waits is for the network.
SHARE_OF_TIMEOUT = 0.8
# Longer than Go clients keep an idle connection (90 s), so that no request is sent on one that was just closed here.
KEEPALIVE_SECONDS = 200
# How long the rest of a refused body is read and thrown away.
LINGER_SECONDS = 2
# Changes of policies that are replayed on the existing jobs at once.
MAX_REPLAYS = 2


class ClusterAnswers(Protocol):
    """What has to be asked of the cluster while a review waits."""

    async def may_exempt(self, request: AdmissionRequest, rules: Iterable[str]) -> Mapping[str, bool]:
        """For each rule whether the requester may exempt jobs from it; ClusterError when that is unknown."""
        ...

    async def by_quota(
        self, namespace: str, decide: Callable[[ClusterView], Decision], *, writes: bool, seconds: float
    ) -> Decision:
        """The verdict by the quotas of this moment, which all replicas share; ClusterError when they cannot be read."""
        ...

    async def policy_impact(
        self, before: PolicySet, after: PolicySet, *, today: date, time_left: Callable[[], float]
    ) -> list[str]:
        """In lines what `after` would do to the jobs that exist, compared with `before`."""
        ...


class ReviewHandler:
    """Answers reviews. `policies`, `view`, `cluster` and `now` may be replaced at any time; without a cluster `cluster`
    is None.

    At most `max_in_flight` reviews wait for the cluster at once, and any more that need it are refused: all the others
    go on. A review may take `SHARE_OF_TIMEOUT` of the client's timeout, or of `timeout` seconds where these are less.
    What is asked of the cluster for it gets what is left of that. Where there are `clients`, the certificate of whoever
    sends a review has to be for one of these names; that it is of the right CA, TLS has seen to.
    """

    def __init__(
        self,
        *,
        policies: PolicySet,
        view: ClusterView,
        telemetry: Telemetry,
        keys: KeyPool,
        max_in_flight: int = 512,
        timeout: float = 10,
        clients: Collection[str] = (),
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self.policies = policies
        self.view = view
        self.cluster: ClusterAnswers | None = None
        self.now = now
        self.recorder: Recorder | None = None
        self.draining = False
        self.in_flight = 0
        self._telemetry = telemetry
        self._keys = keys
        self._max_in_flight = max_in_flight
        self._timeout = timeout
        self._clients = frozenset(clients)
        self._waiting = 0  # for the cluster
        self._replaying = asyncio.Semaphore(MAX_REPLAYS)
        self._memory = MemoryBudget()
        self._idle = asyncio.Event()
        telemetry.in_flight.set_function(lambda: self.in_flight)

    def http_server(self, noting: Callable[[Handler], Handler] = lambda handle: handle) -> web.Server:
        """An HTTP server that hands every request to `handle`, by way of `noting`."""
        # aiohttp's Application and router would cost each request another 10 µs, to choose between two paths.
        return web.Server(
            noting(self.handle),
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,
        )

    async def idle(self) -> None:
        """Return when no review is at work."""
        while self.in_flight:
            self._idle.clear()
            await self._idle.wait()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The reply to one HTTP request; never raises for anything that a client sent."""
        started = monotonic()
        asked = requests.parse(request.raw_path)
        try:
            if self._clients:
                expect_client(request, self._clients)
            hook = expect_review(request, asked)
            self.in_flight += 1
            try:
                with self._memory.claim(request.remote or "") as claim:
                    wire = await self._review(hook, request, started, self._deadline(started, asked), claim)
            finally:
                self.in_flight -= 1
                if not self.in_flight:
                    self._idle.set()
        except Refused as refused:
            return self._refuse(request, asked, refused, monotonic() - started)
        return Reply(wire, keep_alive=request.keep_alive and not self.draining)

    async def _review(
        self, hook: Hook, request: web.BaseRequest, started: float, deadline: float, claim: Claim
    ) -> bytes:
        """The body of the reply; Refused when there is no decision."""
        try:
            admission_request = review.decode(await read_body(request, deadline, claim))
            if hook == "policy":
                return await self._review_policy(admission_request, deadline)
            if hook == "ssh-keys":
                decision = await self._ssh_keys(admission_request, deadline)
            else:
                decision = await self._decided(hook, admission_request, deadline)
            wire = review.encode(decision.response(admission_request.uid))
        except Refused:
            raise
        except ReviewError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, "not a review that can be answered", str(error)) from None
        except ClusterError as error:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the cluster does not answer", str(error)) from None
        except NoKey as error:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error), shed=True) from None
        except NoRoom:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many large bodies at once", shed=True) from None
        except DeadlineExceeded:
            raise Refused(HTTPStatus.GATEWAY_TIMEOUT, f"no verdict within {deadline - started:.3g} s") from None
        except Exception as error:  # noqa: BLE001 - a fault of ours is a 500, never a verdict
            self._telemetry.failed(hook, error)
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "a fault in the webhook service, see its log") from None
        self._telemetry.decided(hook, admission_request, decision, monotonic() - started)
        if self.recorder is not None and hook == "validate":
            self._record(self.recorder, admission_request, decision)
        return wire

    def _record(self, recorder: Recorder, request: AdmissionRequest, decision: Decision) -> None:
        namespace = self.view.get(NAMESPACES, request.namespace)
        recorder.offer(request, decision, None if isinstance(namespace, Answer) else namespace.labels, self.now())

    async def _decided(self, hook: Hook, request: AdmissionRequest, deadline: float) -> Decision:
        """The decision; where they count, the cluster is asked for the quotas of this moment and for who may exempt."""
        granted: Mapping[str, bool] | None = None
        while True:
            decide_with = partial(self._decide, hook, request, deadline, granted)
            if self.cluster is None:
                return decide_with(self.view)
            # What is reserved is asked of the ledger, and of the cache only where that fails.
            decision = decide_with(Overlay(self.view, request.namespace, {RESERVATIONS: {}}))
            if decision.depends_on_quota:
                with self._waiting_for_cluster():
                    seconds = max(0, deadline - monotonic())
                    try:
                        decision = await self.cluster.by_quota(
                            request.namespace, decide_with, writes=not request.dry_run, seconds=seconds
                        )
                    except ClusterError:  # which the ledger has counted
                        decision = decide_with(self.view)
            unasked = [rule for rule in decision.requested if rule not in (granted or {})]
            if not unasked:
                return decision
            with self._waiting_for_cluster():
                granted = {**(granted or {}), **await self._may_exempt(self.cluster, request, unasked, deadline)}

    @contextmanager
    def _waiting_for_cluster(self) -> Iterator[None]:
        """Count among those that wait; Refused when there are too many of them."""
        if self._waiting >= self._max_in_flight:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many reviews wait for the cluster", shed=True)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def _may_exempt(
        self, cluster: ClusterAnswers, request: AdmissionRequest, rules: Iterable[str], deadline: float
    ) -> Mapping[str, bool]:
        try:
            async with asyncio.timeout(max(0, deadline - monotonic())):
                return await cluster.may_exempt(request, rules)
        except TimeoutError:
            raise DeadlineExceeded("who may exempt") from None

    def _decide(
        self,
        hook: Hook,
        request: AdmissionRequest,
        deadline: float,
        granted: Mapping[str, bool] | None,
        view: ClusterView,
    ) -> Decision:
        now = self.now()
        return decide(
            hook,
            request,
            policies=self.policies.at(now),
            view=view,
            granted=granted,
            today=now.date(),
            time_left=lambda: deadline - monotonic(),
        )

    async def _ssh_keys(self, request: AdmissionRequest, deadline: float) -> Decision:
        """A key pair for the Secret of a job; NoKey when none is ready in time: then the operator tries again."""
        namespace = self.view.get(NAMESPACES, request.namespace)
        policy = self.policies.at(self.now()).for_namespace(namespace)
        found = secret.what_is_needed(request, policy.document.ssh_keys)
        if isinstance(found, Decision):
            return found
        decision = found.filled(await self._keys.take(found.algorithm, deadline=deadline))
        decision.policy = policy.identity
        return decision

    async def _review_policy(self, request: AdmissionRequest, deadline: float) -> bytes:
        """The reply to a change of a policy ConfigMap; for a good one, with what it would do to existing jobs."""
        namespaces = self.view.all(NAMESPACES)
        verdict = policy_review.verdict_on(
            request,
            policies=self.policies,
            namespaces=None if isinstance(namespaces, Answer) else list(namespaces.values()),
            now=self.now(),
        )
        if verdict.after is not None and self.cluster is not None:
            verdict.notes[:0] = await self._policy_impact(self.cluster, verdict.after, deadline)
        response = verdict.response
        self._telemetry.policy_reviewed(request, verdict.name, response)
        return review.encode(response)

    async def _policy_impact(self, cluster: ClusterAnswers, after: PolicySet, deadline: float) -> list[str]:
        if self._replaying.locked():
            return ["what it would change is unknown: other changes of policies are being looked at; apply it again"]
        now = self.now()
        async with self._replaying:
            return await cluster.policy_impact(
                self.policies.at(now), after.at(now), today=now.date(), time_left=lambda: deadline - monotonic()
            )

    def _deadline(self, started: float, asked: Target) -> float:
        timeout = self._timeout if asked.timeout is None else min(asked.timeout, self._timeout)
        return started + SHARE_OF_TIMEOUT * timeout

    def _refuse(self, request: web.BaseRequest, asked: Target, refused: Refused, seconds: float) -> Reply:
        self._telemetry.refused(
            asked.hook, refused.status, refused.reason, peer=request.remote, seconds=seconds, shed=refused.shed
        )
        text = f"{refused.reason}: {refused.detail}" if refused.detail else refused.reason
        allow = b"Allow: POST\r\n" if refused.status == HTTPStatus.METHOD_NOT_ALLOWED else b""
        return Reply(
            b"" if request.method == hdrs.METH_HEAD else f"{text}\n".encode(),
            keep_alive=request.keep_alive and not self.draining,
            status=refused.status,
            content_type=b"text/plain; charset=utf-8",
            headers=allow,
        )
