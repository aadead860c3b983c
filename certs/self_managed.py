"""Self-managed certificates: the CA in one Secret, a leaf in memory, and caBundles that follow.

Each caBundle is judged alone: if one cannot be written, its calls fail, and the others must not be affected.

Any number of replicas do this in parallel, without a leader (see `rotation`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NoReturn

from cryptography import x509

from certs.authority import CLOCK_SKEW, Authority
from certs.limits import MAX_ROTATION_STEPS
from certs.notice import Listener, Notice, ignore
from certs.pem import CertificateError, common_name, load_certificates, to_pem
from certs.rotation import MakeSuccessor, Phase, Publish, RotationSettings, Save, Step, lacking, phase_of, plan, signer
from certs.serving import ServingCertificate
from certs.state import State, load
from certs.store import Bundle, Conflict, Secret, Store, StoreError

# The part of a leaf's life in which it is renewed, at random: replicas that started together renew at different times.
RENEWAL = (0.57, 0.67)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A certificate and its key, and when to replace it."""

    certificate: x509.Certificate
    key_pem: bytes = field(repr=False)
    certificate_pem: bytes = field(repr=False)
    issuer: str
    """The fingerprint of the CA that signed it."""
    renew_at: datetime

    @property
    def not_after(self) -> datetime:
        """When it expires (UTC)."""
        return self.certificate.not_valid_after_utc

    def valid(self, now: datetime) -> bool:
        """Whether a client whose clock shows `now` accepts its times."""
        return self.certificate.not_valid_before_utc <= now < self.not_after


def issue(
    authority: Authority, hosts: Sequence[str], *, now: datetime, settings: RotationSettings, random: Random
) -> Leaf:
    pair = authority.issue(hosts, lifetime=settings.leaf_lifetime, now=now, backdate=settings.backdate)
    return Leaf(
        certificate=load_certificates(pair.certificate_pem)[0],
        key_pem=pair.key_pem,
        certificate_pem=pair.certificate_pem,
        issuer=authority.fingerprint,
        renew_at=now + (pair.not_after - now) * random.uniform(*RENEWAL),
    )


def new_signer(leaf: Leaf | None, state: State, bundles: Sequence[Bundle], now: datetime) -> Authority | None:
    """The CA to sign a new leaf now; None to keep `leaf`, because it is good or no other would be better."""
    authority = signer(state, bundles, now)
    if authority is None or leaf is None or not leaf.valid(now) or lacking(bundles, leaf.issuer):
        return authority
    if leaf.issuer != authority.fingerprint:
        # The successor signs only if no caBundle trusts anything else; otherwise not before its promotion.
        return authority if authority is state.current else None
    # A leaf cannot outlive its CA, so near the CA's end a new leaf would not last longer.
    return authority if now >= leaf.renew_at and authority.not_after > leaf.not_after else None


NO_SECRET = "the CA Secret does not exist; apply the manifests again: they ship it empty"  # noqa: S105 (no password)


class SelfManaged:
    """Maintains this replica's leaf, the CA Secret and the caBundles while `run` runs."""

    certificate: ServingCertificate | None = None
    """What to serve. None until every caBundle trusts it, except those that cannot be written."""
    leaf: Leaf | None = None
    phase: Phase | None = None
    """None until the Secret is read."""
    foreign_ca: str | None = None
    """The common name of the CA in the Secret, if another program made it."""
    ca_not_after: datetime | None = None
    """When the CA that signs (on a first start: will sign) expires."""
    untrusting: tuple[str, ...] = ()
    """The names of the objects with a caBundle that does not trust the leaf."""
    last_error: str | None = None
    """Why the last pass failed; None if it succeeded."""
    clock_offset: timedelta = timedelta(0)
    """How far the API server's clock is ahead of this machine's."""

    def __init__(
        self,
        store: Store,
        hosts: Sequence[str],
        *,
        settings: RotationSettings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        listener: Listener = ignore,
        after_pass: Callable[[], None] = lambda: None,
        random: Random | None = None,
    ) -> None:
        """Leaves are for `hosts`; `listener` gets notices of what this replica does; no callback may raise."""
        self._store = store
        self._hosts = tuple(hosts)
        self._settings = settings
        self._clock = clock
        self._tell = listener
        self._after_pass = after_pass
        self._random = random or Random()  # noqa: S311 (jitter, no secret)
        self._serving = asyncio.Event()
        self._state = State()  # as last read
        self._bundles: Sequence[Bundle] = ()  # as last read
        # The CA that each caBundle was last seen to trust.
        self._held: dict[str, str] = {}
        self._some_trust = True

    @property
    def now(self) -> datetime:
        """The time by the API server's clock as far as possible: the API server verifies the leaf."""
        return self._clock() + self.clock_offset

    @property
    def trusted(self) -> bool:
        """Whether any caBundle, as last read, trusts the served leaf, and it has not expired.

        A call with another caBundle fails whether this replica serves or not.
        """
        return self.leaf is not None and self._some_trust and self.leaf.valid(self.now)

    @property
    def leaf_not_after(self) -> datetime | None:
        """When the served leaf expires."""
        return self.leaf.not_after if self.leaf else None

    async def first_certificate(self) -> ServingCertificate:
        """Wait for a trusted leaf. The same object serves all later ones."""
        await self._serving.wait()
        assert self.certificate  # noqa: S101 (set before the event)
        return self.certificate

    async def run(self) -> NoReturn:
        """Run passes until cancelled: each interval, and more often after a failure."""
        failures = 0
        while True:
            await self.reconcile()
            failures = failures + 1 if self.last_error else 0
            # A suspended machine stops this clock but not the certificates', so the pause never exceeds the interval.
            pause = self._settings.interval.total_seconds() * self._random.uniform(0.9, 1)
            if failures:
                pause = min(pause, 2 ** min(failures, 10) * self._random.uniform(0.5, 1))
            await asyncio.sleep(pause)

    async def reconcile(self) -> None:
        """One pass: every step that is possible now. A failure is in `last_error`, and the next pass retries."""
        try:
            await self._steps()
        except Exception as error:  # noqa: BLE001 - whatever somebody wrote into a caBundle, the next pass must come
            reason = str(error) if isinstance(error, StoreError | CertificateError) else type(error).__name__
            if reason != self.last_error:
                self.last_error = reason
                self._tell(Notice("CertificateProblem", self.last_error, warning=True))
            self._go_on()
        else:
            if self.last_error:
                self._tell(Notice("CertificatesRecovered", "certificates are being renewed again"))
            self.last_error = None
        self._after_pass()

    def _go_on(self) -> None:
        """Keep issuing leaves of the CA that the caBundles trusted, despite any failure.

        A deleted Secret or an unreadable API server must not block reviews. A caBundle that cannot be fixed must not
        affect the callers that trust the leaf.
        """
        bundles = self._bundles
        if self.leaf and signer(self._state, bundles, self.now) is None:
            others = lacking(bundles, self.leaf.issuer)
            bundles = [bundle for bundle in bundles if bundle not in others] or bundles
        self._look_after_leaf(self._state, bundles, self.now)
        self._notice_trust(self._bundles)

    async def _steps(self) -> None:
        failed: dict[str, str] = {}  # why a caBundle could not be written
        for _ in range(MAX_ROTATION_STEPS):
            # The clock is read before the Secret, so a leaf never outlives the CA that signed it.
            ours = self._clock()
            bundles = self._bundles = await self._store.read_bundles()
            secret = await self._store.read_secret()
            if secret is None:
                self.phase, self.foreign_ca = Phase.MISSING, None
                failed = await self._restore(bundles)
                raise StoreError("; ".join([NO_SECRET, *_reasons(failed)]))
            now = self._time(secret, ours)
            state = self._state = load(secret.data)
            self._look_after_leaf(state, bundles, now)
            self._notice_trust(bundles)
            self._notice_state(state)
            try:
                step = plan(state, bundles, now, self._settings)
                if isinstance(step, Publish) and failed.keys() >= {bundle.name for bundle in step.bundles}:
                    # The rotation waits for these, unless that would mean serving a leaf that no client trusts.
                    rest = [bundle for bundle in bundles if bundle.name not in failed]
                    waits = signer(state, bundles, now) is not None or not rest
                    step = None if waits else self._without(rest, state, now)
                    self._notice_trust(bundles)
                if isinstance(step, Publish):
                    todo = tuple(bundle for bundle in step.bundles if bundle.name not in failed)
                    failed |= await self._publish(replace(step, bundles=todo), state)
                elif await self._take(step, state, secret, now):
                    if failed:
                        raise StoreError("; ".join(_reasons(failed)))
                    return
            except Conflict:
                continue
        raise StoreError(f"other replicas or users kept changing the objects for {MAX_ROTATION_STEPS} steps")

    async def _restore(self, bundles: Sequence[Bundle]) -> dict[str, str]:
        """Without the Secret: publish the CAs that it held if a caBundle lacks the CA of the leaf.

        Returns why some could not be written.
        """
        failed: dict[str, str] = {}
        if self.leaf and (outdated := lacking(bundles, self.leaf.issuer)):
            with suppress(Conflict):  # the next pass retries
                failed = await self._publish(Publish(outdated, to_pem(self._state.bundle)), self._state)
            self._bundles = await self._store.read_bundles()
        return failed

    def _without(self, rest: Sequence[Bundle], state: State, now: datetime) -> Step | None:
        """The next step if only these caBundles existed."""
        self._look_after_leaf(state, rest, now)
        return plan(state, rest, now, self._settings)

    async def _take(self, step: MakeSuccessor | Save | None, state: State, secret: Secret, now: datetime) -> bool:
        """Take the step; True if it was the last one. A step is done only when its result has been read back."""
        if step is None:
            return True
        after, notice = step.state, step.notice
        if isinstance(step, MakeSuccessor):
            settings = self._settings
            new = Authority(settings.name, lifetime=settings.ca_lifetime, now=now, backdate=settings.backdate)
            after = after.with_successor(new, now)
        await self._store.write_secret(after.to_data(), secret.resource_version)
        if notice:
            self._tell(notice)
        return False

    async def _publish(self, step: Publish, state: State) -> dict[str, str]:
        """Write each caBundle, even after a failure; returns why some could not be written."""
        failed: dict[str, str] = {}
        conflict = None
        signs = state.current.fingerprint if state.current else ""
        for bundle in step.bundles:
            try:
                await self._store.write_bundle(bundle, step.pem)
            except Conflict as error:
                conflict = error
            except StoreError as error:
                failed[bundle.name] = str(error)
            else:
                if self._held.get(bundle.name) == signs and lacking([bundle], signs):
                    message = f"something took our CA out of the caBundle of {bundle.name}: put back"
                    self._tell(Notice("CABundleRestored", message, warning=True))
        if conflict and not failed:
            raise conflict
        return failed

    def _look_after_leaf(self, state: State, bundles: Sequence[Bundle], now: datetime) -> None:
        authority = new_signer(self.leaf, state, bundles, now)
        if authority is None:
            return
        leaf = issue(authority, self._hosts, now=now, settings=self._settings, random=self._random)
        if self.certificate:
            self.certificate.swap(leaf.certificate_pem, leaf.key_pem, now=now)
        else:
            self.certificate = ServingCertificate(leaf.certificate_pem, leaf.key_pem, now=now)
        self.leaf = leaf
        self._serving.set()
        self._tell(Notice("LeafIssued", f"serving a new certificate, valid until {leaf.not_after:%Y-%m-%dT%H:%M:%SZ}"))

    def _notice_trust(self, bundles: Sequence[Bundle]) -> None:
        """Record which caBundles trust the leaf."""
        self.untrusting = tuple(bundle.name for bundle in lacking(bundles, self.leaf.issuer)) if self.leaf else ()
        self._some_trust = len(self.untrusting) < len(bundles) or not bundles
        if self.leaf:
            trusting = (bundle.name for bundle in bundles if bundle.name not in self.untrusting)
            self._held |= dict.fromkeys(trusting, self.leaf.issuer)

    def _notice_state(self, state: State) -> None:
        self.phase = phase_of(state)
        self.foreign_ca = None
        if signs := state.current or state.successor:
            self.ca_not_after = signs.not_after
            name = common_name(signs.certificate.subject)
            self.foreign_ca = name if name != self._settings.name else None

    def _time(self, secret: Secret, ours: datetime) -> datetime:
        """The API server's time, else this machine's: one replica with a wrong clock must not touch the CA."""
        now = secret.server_time or ours
        differed = abs(self.clock_offset) > CLOCK_SKEW
        self.clock_offset = now - ours
        if abs(self.clock_offset) > CLOCK_SKEW and not differed:
            message = (
                f"our clock differs from the API server's by {self.clock_offset.total_seconds():+.0f} s; using theirs"
            )
            self._tell(Notice("ClockDiffers", message, warning=True))
        return now


def _reasons(failed: Mapping[str, str]) -> list[str]:
    return [f"{name}: {reason}" for name, reason in failed.items()]
