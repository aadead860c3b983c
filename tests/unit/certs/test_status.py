from datetime import UTC, datetime, timedelta

import pytest

from certs.authority import Authority
from certs.pem import load_certificates
from certs.rotation import Phase, RotationSettings
from certs.state import State
from certs.status import describe
from certs.store import Bundle

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
HOST = "webhook.training.svc"
SETTINGS = RotationSettings(name="test CA")
CA = Authority("test CA", lifetime=365 * DAY, now=NOW)
NEXT = Authority("test CA", lifetime=365 * DAY, now=NOW, backdate=SETTINGS.backdate)
OLD = Authority("test CA", lifetime=365 * DAY, now=NOW - 300 * DAY)


def chain(ca=CA, host=HOST, *, issued=NOW):
    return load_certificates(ca.issue([host], lifetime=14 * DAY, now=issued).certificate_pem)


def bundle(*cas, name="validating"):
    return Bundle(name, (b"".join(ca.certificate_pem for ca in cas),) * 2, "1")


def texts(status):
    return [(issue.severity, issue.text) for issue in status.issues]


def test_status_without_issues():
    state = State(current=CA, old=(OLD.certificate,), retired_at=NOW)
    status = describe(
        [bundle(CA, OLD)], data=state.to_data(), now=NOW, settings=SETTINGS, served=[chain()], server_name=HOST
    )
    assert (status.phase, status.issues) == (Phase.RETIRING, ())
    assert [one.role for one in status.certificates] == ["signing CA", "old CA", "served"]
    ca, old, served = status.certificates
    assert (ca.subject, ca.issuer, ca.fingerprint, ca.not_after) == ("test CA", "test CA", CA.fingerprint, CA.not_after)
    assert (ca.remaining, old.remaining, served.remaining) == (365 * DAY, 65 * DAY, 14 * DAY)
    assert (served.hosts, served.issuer, served.not_before) == ((HOST,), "test CA", NOW - timedelta(minutes=5))
    (described,) = status.bundles
    assert described.name == "validating"
    assert set(described.fingerprints) == {CA.fingerprint, OLD.fingerprint}
    assert described.trusts_served is True


@pytest.mark.parametrize(
    ("state", "now", "phase", "found"),
    [
        (State(), NOW, Phase.PUBLISHING, [("error", "the CA Secret holds no CA")]),
        (State(current=CA), NOW, Phase.STEADY, []),
        (
            State(current=CA),
            NOW + 300 * DAY,
            Phase.STEADY,
            [("warning", "the signing CA should have been replaced by now")],
        ),
        (
            State(current=CA),
            NOW + 365 * DAY,
            Phase.STEADY,
            [("error", "the signing CA expired at 2027-03-01T12:00:00Z")],
        ),
        (
            State(current=CA),
            NOW - DAY,
            Phase.STEADY,
            [("error", "the signing CA is not valid before 2026-03-01T11:55:00Z")],
        ),
        (
            State(current=CA, successor=NEXT),
            NOW + timedelta(minutes=11),
            Phase.PUBLISHING,
            [("warning", "the next CA cannot sign: it is not in the caBundle of mutating")],
        ),
        (State(current=CA, successor=NEXT), NOW + timedelta(minutes=9), Phase.PUBLISHING, []),
        (State(current=CA, successor=NEXT, published_at=NOW), NOW + timedelta(minutes=11), Phase.WAITING, []),
        (
            State(current=CA, successor=NEXT, published_at=NOW),
            NOW + timedelta(minutes=13),
            Phase.WAITING,
            [("warning", "the next CA is in every caBundle, but does not sign")],
        ),
    ],
)
def test_issues_of_the_secret(state, now, phase, found):
    bundles = [bundle(CA, NEXT), bundle(CA, name="mutating")]
    status = describe(bundles, data=state.to_data(), now=now, settings=SETTINGS)
    assert status.phase == phase
    assert [issue for issue in texts(status) if "CA in the caBundle" not in issue[1]] == found
    assert all(issue.advice for issue in status.issues)


def test_issues_of_a_missing_and_a_damaged_secret():
    status = describe([], data=None, now=NOW, settings=SETTINGS)
    assert (status.phase, texts(status)) == (Phase.MISSING, [("error", "the CA Secret does not exist")])
    data = State(current=CA).to_data() | {"ca.key": b"nonsense"}
    status = describe([], data=data, now=NOW, settings=SETTINGS)
    assert texts(status) == [
        ("error", "the CA Secret is damaged: ca.crt and ca.key: the private key is not PEM, or damaged"),
        ("error", "the CA Secret holds no CA"),
    ]


@pytest.mark.parametrize("left", [{}, {"ca.key": b""}])
def test_removed_key_is_reported_as_a_renewal(left):
    data = {key: value for key, value in State(current=CA).to_data().items() if key != "ca.key"} | left
    status = describe([bundle(CA)], data=data, now=NOW, settings=SETTINGS, served=[chain()], server_name=HOST)
    assert texts(status) == [("warning", "the CA is being renewed: its key was removed from the CA Secret")]
    assert status.issues[0].advice.startswith("the service makes a new CA within a minute; else look into the log")
    assert next((one.role, one.fingerprint) for one in status.certificates) == ("old CA", CA.fingerprint)
    data = State(current=CA, successor=NEXT).to_data() | {"ca.key": b""}
    assert texts(describe([bundle(CA, NEXT)], data=data, now=NOW, settings=SETTINGS)) == []


@pytest.mark.parametrize(
    ("bundles", "served", "now", "found"),
    [
        ([bundle(CA)], chain(), NOW, []),
        ([bundle(CA)], (), NOW, []),
        ([bundle(CA), bundle(name="mutating")], (), NOW, [("error", "mutating has an empty caBundle")]),
        ([Bundle("crd", (b"nonsense",), "1")], chain(), NOW, [("error", "crd has a damaged caBundle")]),
        (
            [bundle(NEXT)],
            chain(),
            NOW,
            [("error", "the caBundle of validating does not trust the served certificate")],
        ),
        (
            [bundle(OLD)],
            (),
            NOW + 100 * DAY,
            [("error", "the CA in the caBundle of validating expired at 2026-05-05T12:00:00Z")],
        ),
        ([bundle(OLD, CA)], (), NOW + 100 * DAY, []),
        (
            [bundle(CA)],
            chain(),
            NOW + 11 * DAY,
            [("warning", "the served certificate expires at 2026-03-15T12:00:00Z")],
        ),
        (
            [bundle(CA)],
            chain(),
            NOW + 14 * DAY,
            [("error", "the served certificate expired at 2026-03-15T12:00:00Z")],
        ),
        (
            [bundle(CA)],
            chain(host="a.example"),
            NOW,
            [("error", f"the served certificate is for a.example, but the API server calls {HOST}")],
        ),
    ],
)
def test_issues_of_bundles_and_the_served_certificate(bundles, served, now, found):
    status = describe(bundles, now=now, served=[served] if served else [], server_name=HOST)
    assert texts(status) == found
    assert status.phase is None
    assert [one.trusts_served for one in status.bundles if not served] == [None for _ in bundles if not served]
    assert all(issue.advice for issue in status.issues)


def test_ca_that_is_only_in_a_bundle_is_listed():
    status = describe([bundle(CA, OLD)], data=State(current=CA).to_data(), now=NOW, settings=SETTINGS)
    assert [(one.role, one.fingerprint) for one in status.certificates] == [
        ("signing CA", CA.fingerprint),
        ("caBundle", OLD.fingerprint),
    ]
