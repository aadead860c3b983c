"""Self-managed certificates. The CA is in a Secret. The serving certificate (leaf) is in the memory of each replica.

Replicas work in parallel without a leader, and keep the caBundles up to date. If a replica cannot write one caBundle,
only those calls of the API server may fail that use this caBundle.
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

# A leaf is renewed after a random fraction of its lifetime, so that replicas renew at different times. These are the
# smallest and the largest fraction.
RENEWAL = (0.57, 0.67)


@dataclass(frozen=True, slots=True)
class Leaf:
    """This replica's serving certificate."""

    certificate: x509.Certificate
    key_pem: bytes = field(repr=False)
    certificate_pem: bytes = field(repr=False)
    issuer: str
    renew_at: datetime

    @property
    def not_after(self) -> datetime:
        """In UTC."""
        return self.certificate.not_valid_after_utc

    def valid(self, now: datetime) -> bool:
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
    """The CA that signs a new leaf now; None to keep `leaf`."""
    authority = signer(state, bundles, now)
    if authority is None or leaf is None or not leaf.valid(now) or lacking(bundles, leaf.issuer):
        return authority
    if leaf.issuer != authority.fingerprint:
        # All caBundles trust this leaf, so the successor need not sign yet.
        return authority if authority is state.current else None
    # A leaf cannot outlive its CA, so near the CA's end a new leaf would last no longer than the current leaf.
    return authority if now >= leaf.renew_at and authority.not_after > leaf.not_after else None


NO_SECRET = "the CA Secret does not exist; apply the manifests again: they ship it empty"  # noqa: S105 (no password)


class SelfManaged:
    """Maintains this replica's leaf, the CA Secret and the caBundles while `run` runs."""

    certificate: ServingCertificate | None = None
    """The leaf to serve; None until all caBundles that can be written trust it."""
    leaf: Leaf | None = None
    phase: Phase | None = None
    """None until the Secret is read."""
    foreign_ca: str | None = None
    """The common name of the CA in the Secret if another program made the CA; otherwise None."""
    ca_not_after: datetime | None = None
    """The expiry of the CA that signs, or of the first CA if no CA signs yet."""
    untrusting: tuple[str, ...] = ()
    """Objects with a caBundle that does not trust the leaf."""
    last_error: str | None = None
    """The failure of the last call of `reconcile`; None if it succeeded."""
    clock_offset: timedelta = timedelta(0)
    """The API server's clock minus this machine's clock."""

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
        """`listener` gets notices about this replica's changes. Callbacks must not raise."""
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
        # The CA that each caBundle trusted when it was last read.
        self._trusted_ca: dict[str, str] = {}
        self._some_trust = True

    @property
    def now(self) -> datetime:
        """The time by the API server's clock if known, because the API server verifies the leaf."""
        return self._clock() + self.clock_offset

    @property
    def trusted(self) -> bool:
        """Whether the served leaf is valid and at least one caBundle trusts it.

        The other caBundles do not count: calls with them would fail even if this replica became unready.
        """
        return self.leaf is not None and self._some_trust and self.leaf.valid(self.now)

    @property
    def leaf_not_after(self) -> datetime | None:
        return self.leaf.not_after if self.leaf else None

    async def first_certificate(self) -> ServingCertificate:
        """Waits for a trusted leaf. The returned object also serves all later leaves."""
        await self._serving.wait()
        assert self.certificate  # noqa: S101 (set before the event)
        return self.certificate

    async def run(self) -> NoReturn:
        failures = 0
        while True:
            await self.reconcile()
            failures = failures + 1 if self.last_error else 0
            # `asyncio.sleep` does not count the time in which the machine is suspended, but certificates expire in that
            # time too. So the pause never exceeds the interval.
            pause = self._settings.interval.total_seconds() * self._random.uniform(0.9, 1)
            if failures:
                pause = min(pause, 2 ** min(failures, 10) * self._random.uniform(0.5, 1))
            await asyncio.sleep(pause)

    async def reconcile(self) -> None:
        """Take every step that is possible now. A failure is in `last_error`, and the next call tries again."""
        try:
            await self._steps()
        except Exception as error:  # noqa: BLE001 - no content of a caBundle may prevent the next call
            reason = str(error) if isinstance(error, StoreError | CertificateError) else type(error).__name__
            if reason != self.last_error:
                self.last_error = reason
                self._tell(Notice("CertificateProblem", self.last_error, warning=True))
            self._renew_after_failure()
        else:
            if self.last_error:
                self._tell(Notice("CertificatesRecovered", "certificates are being renewed again"))
            self.last_error = None
        self._after_pass()

    def _renew_after_failure(self) -> None:
        """Issue a leaf from the CA that the caBundles trusted at their last successful read, so that reviews go on."""
        bundles = self._bundles
        if self.leaf and signer(self._state, bundles, self.now) is None:
            others = lacking(bundles, self.leaf.issuer)
            bundles = [bundle for bundle in bundles if bundle not in others] or bundles
        self._renew_leaf(self._state, bundles, self.now)
        self._record_trust(self._bundles)

    async def _steps(self) -> None:
        failed: dict[str, str] = {}  # by caBundle
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
            self._renew_leaf(state, bundles, now)
            self._record_trust(bundles)
            self._record_state(state)
            try:
                step = plan(state, bundles, now, self._settings)
                if isinstance(step, Publish) and failed.keys() >= {bundle.name for bundle in step.bundles}:
                    # If all caBundles trust a CA that can sign, the rotation waits for the failed caBundles. If there
                    # is no such CA, the rotation continues without the failed caBundles.
                    rest = [bundle for bundle in bundles if bundle.name not in failed]
                    waits = signer(state, bundles, now) is not None or not rest
                    step = None if waits else self._without(rest, state, now)
                    self._record_trust(bundles)
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
        """Publish the CAs of the deleted Secret to caBundles that lack the leaf's CA. Returns errors by caBundle."""
        failed: dict[str, str] = {}
        if self.leaf and (outdated := lacking(bundles, self.leaf.issuer)):
            with suppress(Conflict):  # the next call of `reconcile` retries
                failed = await self._publish(Publish(outdated, to_pem(self._state.bundle)), self._state)
            self._bundles = await self._store.read_bundles()
        return failed

    def _without(self, rest: Sequence[Bundle], state: State, now: datetime) -> Step | None:
        self._renew_leaf(state, rest, now)
        return plan(state, rest, now, self._settings)

    async def _take(self, step: MakeSuccessor | Save | None, state: State, secret: Secret, now: datetime) -> bool:
        """True after the last step. A step is complete only after its result has been read back."""
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
        """Write each caBundle, even after a failure. Returns errors by caBundle."""
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
                if self._trusted_ca.get(bundle.name) == signs and lacking([bundle], signs):
                    message = f"the CA was removed from the caBundle of {bundle.name}: restored"
                    self._tell(Notice("CABundleRestored", message, warning=True))
        if conflict and not failed:
            raise conflict
        return failed

    def _renew_leaf(self, state: State, bundles: Sequence[Bundle], now: datetime) -> None:
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

    def _record_trust(self, bundles: Sequence[Bundle]) -> None:
        self.untrusting = tuple(bundle.name for bundle in lacking(bundles, self.leaf.issuer)) if self.leaf else ()
        self._some_trust = len(self.untrusting) < len(bundles) or not bundles
        if self.leaf:
            trusting = (bundle.name for bundle in bundles if bundle.name not in self.untrusting)
            self._trusted_ca |= dict.fromkeys(trusting, self.leaf.issuer)

    def _record_state(self, state: State) -> None:
        self.phase = phase_of(state)
        self.foreign_ca = None
        if signs := state.current or state.successor:
            self.ca_not_after = signs.not_after
            name = common_name(signs.certificate.subject)
            self.foreign_ca = name if name != self._settings.name else None

    def _time(self, secret: Secret, ours: datetime) -> datetime:
        """A replica with a wrong clock must not change the CA, so the API server's time is used if known."""
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
