"""Single steps of the plan of a rotation. `test_self_managed` and `test_simulation` test whole rotations."""

from dataclasses import replace
from datetime import timedelta
from types import NoneType

import pytest

from certs.authority import Authority
from certs.pem import to_pem
from certs.rotation import MakeSuccessor, Publish, RotationSettings, Save, lacking, plan, signer
from certs.state import State
from certs.store import Bundle
from tests.support.ca_store import DAY, MINUTE, START

SETTINGS = RotationSettings(name="test CA")


def authority(now=START, **kwargs):
    return Authority("test CA", **({"lifetime": 365 * DAY, "now": now} | kwargs))


ONE, TWO = authority(), authority()


def bundle(*certificates, name="validating"):
    return Bundle(name, (to_pem(certificates),), "1")


def everywhere(state):
    """The caBundles that `state` requires."""
    return [bundle(*state.bundle), bundle(*state.bundle, name="mutating")]


WAITING = State(current=ONE, successor=TWO, published_at=START)
RETIRING = State(current=TWO, old=(ONE.certificate,), retired_at=START)
RETENTION = SETTINGS.leaf_lifetime + 10 * MINUTE
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("state", "after", "step"),
    [
        (State(current=ONE), 243 * DAY, NoneType),
        (State(current=ONE), 244 * DAY, MakeSuccessor),
        (State(current=ONE), 366 * DAY, MakeSuccessor),
        (State(current=ONE), -DAY, MakeSuccessor),
        (WAITING, SETTINGS.grace - SECOND, NoneType),
        (WAITING, SETTINGS.grace, Save),
        (WAITING, -4 * MINUTE, NoneType),
        (WAITING, 400 * DAY, MakeSuccessor),
        (RETIRING, RETENTION - SECOND, NoneType),
        (RETIRING, RETENTION, Save),
        (RETIRING, -4 * MINUTE, NoneType),
    ],
)
def test_next_step_depends_on_the_time(state, after, step):
    assert type(plan(state, everywhere(state), START + after, SETTINGS)) is step


@pytest.mark.parametrize("field", ["published_at", "retired_at"])
@pytest.mark.parametrize("written", [None, START + DAY])
def test_missing_or_future_time_is_replaced_by_the_current_time(field, written):
    """The time is missing, or in the future because a clock was wrong."""
    state = replace(WAITING if field == "published_at" else RETIRING, **{field: written})
    step = plan(state, everywhere(state), START, SETTINGS)
    assert isinstance(step, Save)
    assert getattr(step.state, field) == START
    assert step.state.bundle == state.bundle


def test_longer_ca_lifetime_in_the_settings_applies_at_once():
    state = State(current=authority(lifetime=90 * DAY))
    assert plan(state, everywhere(state), START, replace(SETTINGS, ca_lifetime=100 * DAY)) is None
    assert isinstance(plan(state, everywhere(state), START, SETTINGS), MakeSuccessor)


@pytest.mark.parametrize("lost", [b"", b"nonsense", ONE.certificate_pem, TWO.certificate_pem + b"nonsense"])
def test_bundle_that_differs_from_the_secret_is_written_again(lost):
    good = bundle(*WAITING.bundle)
    bad = Bundle("mutating", (good.ca_bundles[0], lost), "7")
    step = plan(replace(WAITING, published_at=None), [good, bad], START, SETTINGS)
    assert step == Publish((bad,), good.ca_bundles[0])


def test_signing_ca_is_trusted_by_every_bundle():
    assert signer(WAITING, everywhere(WAITING), START) is ONE
    assert signer(WAITING, [bundle(TWO.certificate)], START) is TWO
    assert signer(WAITING, [bundle(TWO.certificate), bundle(ONE.certificate)], START) is None
    assert signer(WAITING, everywhere(WAITING), START - DAY) is None
    assert signer(State(), [], START) is None
    assert lacking([bundle(TWO.certificate), bundle(ONE.certificate, name="other")], TWO.fingerprint) == (
        bundle(ONE.certificate, name="other"),
    )


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State(key_removed=True, old=(ONE.certificate,)), "new CA: the key of the current CA was removed"),
        (State(), "new CA: the CA Secret has none"),
        (State(damage=("ca.crt: no",)), "new CA: ca.crt: no"),
    ],
)
def test_reason_for_a_new_ca(state, reason):
    step = plan(state, everywhere(state), START, SETTINGS)
    assert isinstance(step, MakeSuccessor)
    assert (step.notice.message, step.notice.warning) == (reason, bool(state.damage))
