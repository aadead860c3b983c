"""Answers reviews: checks and decodes each review, lets a pipeline decide, and encodes the decision.

A decision is HTTP 200. Any other status is a fault of the client (4xx) or of this service (5xx). The webhook's
failurePolicy then decides: overload, a deadline or a bug must never look like a rejection of the user's job.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pkgutil import resolve_name
from time import monotonic
from typing import TypeVar

from webhook.admission import policy_review, too_expensive
from webhook.admission.pipelines import DeadlineExceeded, Decision, decide
from webhook.api import review
from webhook.api.review import AdmissionRequest, ReviewError
from webhook.cel.trial import Trial, try_expressions
from webhook.client.calls import ApiError, ClusterError
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import Answer, ClusterView, Overlay
from webhook.controllers.ssh import secret
from webhook.controllers.ssh.pool import KeyPool, NoKey
from webhook.kit.custom_rules import Outcome
from webhook.limits import MAX_DECISION_SECONDS, MAX_UNSKIPPABLE_SECONDS
from webhook.policy import custom_rules_check
from webhook.policy.document import PolicyDocument
from webhook.policy.in_force import Policy, PolicySet
from webhook.server import clock, http_request
from webhook.server.cluster_link import ClusterLink
from webhook.server.http_request import Refused, Reply, Request, expect_client, expect_review
from webhook.server.limits import MAX_REPLAYS, MAX_TARGET_CHARACTERS
from webhook.server.telemetry import Telemetry
from webhook.work_limit import TooExpensive, limited

T = TypeVar("T")
# The part of the client's timeout in which the service must reply. The rest is for the network.
SHARE_OF_TIMEOUT = 0.8
RESERVE_SECONDS = 0.05  # for the decision and the reply


class ReviewHandler:
    """`policies`, `view`, `cluster` and `now` may be replaced at any time. Without a cluster, `cluster` is None.

    At most `max_in_flight` reviews wait for the cluster. Further reviews that need the cluster are refused. A review
    may take `SHARE_OF_TIMEOUT` of the client's timeout or of `timeout` seconds, whichever is less. With `clients`, the
    client's certificate must have one of these names; TLS has checked its CA. `options` are the options of
    `serve` that switch on hooks of optional parts.
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
        options: Set[str] = frozenset(),
    ) -> None:
        self.policies = policies
        self.view = view
        self.cluster: ClusterLink | None = None
        self.now = now
        self._telemetry = telemetry
        self._keys = keys
        self._max_in_flight = max_in_flight
        self._timeout = timeout
        self._clients = frozenset(clients)
        self._waiting = 0  # reviews that wait for the cluster
        self._replaying = asyncio.Semaphore(MAX_REPLAYS)
        self._trials = ThreadPoolExecutor(1)  # one at a time, because each trial has a process that needs much memory
        self._options = options

    def expect(self, request: Request) -> None:
        """Check a request whose head is complete, and set its deadline. Refused if it is not a review."""
        if len(request.target) > MAX_TARGET_CHARACTERS:
            raise Refused(HTTPStatus.REQUEST_URI_TOO_LONG, "the path is too long")
        request.hook, request_review = http_request.parse(request.target)
        timeout = self._timeout if request_review is None else min(request_review, self._timeout)
        request.deadline = request.started + SHARE_OF_TIMEOUT * timeout
        if self._clients:
            expect_client(request, self._clients)
        expect_review(request)
        if (part := http_request.OF_PARTS.get(str(request.hook))) and part.option and part.option not in self._options:
            raise Refused(HTTPStatus.NOT_FOUND, part.off)

    async def answer(self, request: Request) -> Reply:
        """The reply to a review. Every error becomes a reply."""
        hook = request.hook
        assert hook is not None, "`expect` has checked it"  # noqa: S101 - for the type checker
        try:
            if monotonic() > request.deadline - RESERVE_SECONDS:
                raise DeadlineExceeded("before it began")
            if (part := http_request.OF_PARTS.get(hook)) and part.answer:
                reply: Reply = await resolve_name(part.answer)(request, self._telemetry)
                return reply
            request_review = review.decode(request.body)
            if hook == "policy":
                return await self._review_policy(request_review, request)
            await self._read_namespace(request_review.namespace, request)
            if hook == "ssh-keys":
                return await self._ssh_keys(request_review, request)
            decision = self._decide(hook, request, request_review, self.view)
            if self.cluster is not None and request.missing_grants:
                await self._read_grants(self.cluster, request)
                decision = self._decide(hook, request, request_review, self.view)
            if self.cluster is not None and (decision.depends_on_quota or decision.requested):
                decision = await self._settled(self.cluster, hook, request, request_review, decision)
            return self._decided(hook, request, request_review, decision)
        except Exception as error:  # noqa: BLE001 - `_without_decision` logs it
            return self._without_decision(request, error)

    async def _read_namespace(self, name: str, request: Request) -> None:
        """Read the Namespace from the API server if it is not cached. Its labels choose the policy."""
        cached = self.view.get(NAMESPACES, name)
        if self.cluster is None or not name or not isinstance(cached, Answer):
            return
        with self._waiting_for_cluster():
            try:
                request.namespace = await _by(request.deadline, self.cluster.namespace(name))
            except ClusterError as error:
                why = error.status if isinstance(error, ApiError) else "no answer"
                reason = f"the namespace could not be read ({why})"
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, reason, str(error)) from None

    async def _read_grants(self, cluster: ClusterLink, request: Request) -> None:
        """Read which SCCs accounts may use, in half of the remaining time. A timeout rejects no job."""
        with self._waiting_for_cluster(), suppress(TimeoutError):
            async with asyncio.timeout(max(0, request.deadline - monotonic()) / 2):
                await cluster.grants.read(request.missing_grants)

    def _without_decision(self, request: Request, error: Exception) -> Reply:
        """The reply after an error. A fault of the service is a 500, never a verdict."""
        if isinstance(error, Refused):
            return self.refuse(request, error)
        if isinstance(error, ReviewError):
            refused = Refused(HTTPStatus.BAD_REQUEST, "not a review that can be answered", str(error))
            return self.refuse(request, refused)
        if isinstance(error, ClusterError):
            refused = Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the cluster does not answer", str(error))
            return self.refuse(request, refused)
        if isinstance(error, NoKey):
            return self.refuse(request, Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error), shed=True))
        if isinstance(error, DeadlineExceeded):
            return self.refuse(request, request.too_late())
        self._telemetry.failed(str(request.hook), error)
        reason = "a fault in the webhook service, see its log"
        return self.refuse(request, Refused(HTTPStatus.INTERNAL_SERVER_ERROR, reason))

    def _decided(self, hook: str, request: Request, request_review: AdmissionRequest, decision: Decision) -> Reply:
        reply = Reply(review.encode(decision.response(request_review.uid)))
        self._telemetry.decided(hook, request_review, decision, monotonic() - request.started)
        return reply

    async def _settled(
        self, cluster: ClusterLink, hook: str, request: Request, request_review: AdmissionRequest, decision: Decision
    ) -> Decision:
        """The decision with current quotas and with the requester's permission to exempt jobs."""
        granted: dict[str, bool] = {}
        while True:
            decide_with = partial(self._decide, hook, request, request_review, granted=granted or None)
            if decision.depends_on_quota:
                with self._waiting_for_cluster():
                    seconds = max(0, request.deadline - monotonic())
                    try:
                        decision = await cluster.ledger.verdict(
                            request_review.namespace,
                            decide=decide_with,
                            first=decision,
                            writes=not request_review.dry_run,
                            seconds=seconds,
                        )
                    except ClusterError:  # the ledger has counted the error
                        decision = decide_with(self.view)
            unchecked = [rule for rule in decision.requested if rule not in granted]
            if not unchecked:
                return decision
            with self._waiting_for_cluster():
                granted |= await _by(request.deadline, cluster.may_exempt(request_review, unchecked))
            decision = self._decide(hook, request, request_review, self.view, granted=granted)

    @contextmanager
    def _waiting_for_cluster(self) -> Iterator[None]:
        """Count the review as waiting; Refused if too many reviews wait."""
        if self._waiting >= self._max_in_flight:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many reviews wait for the cluster", shed=True)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def _decide(
        self,
        hook: str,
        request: Request,
        request_review: AdmissionRequest,
        view: ClusterView,
        *,
        granted: Mapping[str, bool] | None = None,
    ) -> Decision:
        view = _seen(request, view)
        namespace = view.get(NAMESPACES, request_review.namespace)
        if self.cluster is not None and isinstance(namespace, Namespace) and namespace.of_openshift:
            view = self.cluster.grants.over(view, request.missing_grants)
        policy = self.policies.for_namespace(namespace)  # cached for all jobs of the namespace
        decide_on = partial(
            _pipeline(hook),  # imports the pipeline if necessary, before the time limit starts
            request_review,
            policies=self.policies,
            view=view,
            granted=granted,
            today=self.now().date(),
        )
        try:
            return limited(decide_on, _seconds(hook))
        except TooExpensive:
            decision = _too_expensive(hook, request_review, policy, view)
            user = request_review.user_info.username
            self._telemetry.too_expensive(hook, request_review.namespace, decision.name, user)
            return decision

    async def _ssh_keys(self, request_review: AdmissionRequest, request: Request) -> Reply:
        """A key pair for a job's new Secret; NoKey if none is ready in time. The operator then tries again."""
        namespace = _seen(request, self.view).get(NAMESPACES, request_review.namespace)
        policy = self.policies.for_namespace(namespace)
        needed = secret.needed_key(request_review, policy.document.ssh_keys)
        if isinstance(needed, Decision):
            return self._decided("ssh-keys", request, request_review, needed)
        decision = needed.filled(await self._keys.take(needed.algorithm, deadline=request.deadline))
        decision.policy = policy.identity
        return self._decided("ssh-keys", request, request_review, decision)

    async def _review_policy(self, request_review: AdmissionRequest, request: Request) -> Reply:
        """The reply to a change of a policy ConfigMap. It contains the effect of a valid policy on existing jobs."""
        namespaces = self.view.all(NAMESPACES)
        try:
            verdict = limited(
                lambda: policy_review.verdict_on(
                    request_review,
                    policies=self.policies,
                    namespaces=None if isinstance(namespaces, Answer) else list(namespaces.values()),
                    now=self.now(),
                )
            )
        except TooExpensive:
            verdict = policy_review.too_expensive(request_review)
            user = request_review.user_info.username
            self._telemetry.too_expensive("policy", request_review.namespace, request_review.name, user)
        if verdict.document is not None and verdict.document.custom_rules:
            verdict.add_trial(await self._tried(verdict.document, request.deadline))
        if verdict.after is not None and self.cluster is not None:
            verdict.notes[:0] = await self._policy_impact(self.cluster, verdict.after, request.deadline)
        response = verdict.response
        self._telemetry.policy_reviewed(request_review, verdict.name, response)
        return Reply(review.encode(response))

    async def _tried(self, document: PolicyDocument, deadline: float) -> list[Outcome]:
        """Try the document's custom rules; DeadlineExceeded if there is not enough time."""
        trial = Trial(custom_rules_check.sources(document), document.params)
        try:
            async with asyncio.timeout(max(0, deadline - monotonic())):
                return await asyncio.get_running_loop().run_in_executor(
                    self._trials, lambda: try_expressions(trial, max(0, deadline - monotonic()))
                )
        except TimeoutError:
            raise DeadlineExceeded("own rules") from None

    async def _policy_impact(self, cluster: ClusterLink, after: PolicySet, deadline: float) -> list[str]:
        if self._replaying.locked():
            return ["impact not computed: other policy changes are being evaluated; apply it again"]
        async with self._replaying:
            return await cluster.policy_impact(
                self.policies, after, today=self.now().date(), time_left=lambda: deadline - monotonic()
            )

    def refuse(self, request: Request, refused: Refused) -> Reply:
        seconds = monotonic() - request.started if request.started else 0.0
        self._telemetry.refused(
            request.hook, refused.status, refused.reason, peer=request.peer, seconds=seconds, shed=refused.shed
        )
        text = f"{refused.reason}: {refused.detail}" if refused.detail else refused.reason
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        if refused.status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = "POST"
        return Reply(f"{text}\n".encode(), status=refused.status, headers=headers)


def _seconds(hook: str) -> float:
    """The limit of processor time for a decision. A mutation leaves time for `too_expensive.injection`."""
    return MAX_DECISION_SECONDS - MAX_UNSKIPPABLE_SECONDS if hook == "mutate" else MAX_DECISION_SECONDS


def _pipeline(hook: str) -> Callable[..., Decision]:
    if part := http_request.OF_PARTS.get(hook):
        pipeline: Callable[..., Decision] = resolve_name(part.decide)
        return pipeline
    return partial(decide, "mutate" if hook == "mutate" else "validate")


def _too_expensive(hook: str, request_review: AdmissionRequest, policy: Policy, view: ClusterView) -> Decision:
    if hook == "mutate":
        try:
            return limited(partial(too_expensive.injection, request_review, policy, view), MAX_UNSKIPPABLE_SECONDS)
        except TooExpensive:
            return too_expensive.no_injection(request_review, policy)
    part = http_request.OF_PARTS.get(hook)
    verdict: Callable[..., Decision] = resolve_name(part.too_expensive) if part else too_expensive.verdict
    return verdict(request_review, policy, view)


def _seen(request: Request, view: ClusterView) -> ClusterView:
    """`view` with the Namespace that was read for this request."""
    namespace = request.namespace
    return view if namespace is None else Overlay(view, namespace.name, {NAMESPACES: {namespace.name: namespace}})


async def _by(deadline: float, awaited: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(max(0, deadline - monotonic())):
            return await awaited
    except TimeoutError:
        raise DeadlineExceeded("what it waits for") from None
