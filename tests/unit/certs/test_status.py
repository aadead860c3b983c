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
    assert all(issue.advice for issue in status.issues)
    return [f"{issue.severity}: {issue.text}" for issue in status.issues]


def test_status_without_issues():
    state = State(current=CA, old=(OLD.certificate,), retired_at=NOW)
    status = describe(
        [bundle(CA, OLD)], data=state.to_data(), now=NOW, settings=SETTINGS, served=[chain()], server_name=HOST
    )
    assert (status.phase, status.issues) == (Phase.RETIRING, ())
    assert [certificate.role for certificate in status.certificates] == ["signing CA", "old CA", "served"]
    ca, old, served = status.certificates
    assert (ca.subject, ca.issuer, ca.fingerprint, ca.not_after) == ("test CA", "test CA", CA.fingerprint, CA.not_after)
    assert (ca.remaining, old.remaining, served.remaining) == (365 * DAY, 65 * DAY, 14 * DAY)
    assert (served.hosts, served.issuer, served.not_before) == ((HOST,), "test CA", NOW - timedelta(minutes=5))
    (described,) = status.bundles
    assert described.name == "validating"
    assert set(described.fingerprints) == {CA.fingerprint, OLD.fingerprint}
    assert described.trusts_served is True


ROTATING = State(current=CA, successor=NEXT)
PUBLISHED = State(current=CA, successor=NEXT, published_at=NOW)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("state", "passed", "phase", "expected"),
    [
        (State(), 0 * DAY, Phase.PUBLISHING, ["error: the CA Secret holds no CA"]),
        (State(current=CA), 0 * DAY, Phase.STEADY, []),
        (State(current=CA), 300 * DAY, Phase.STEADY, ["warning: the signing CA should have been replaced by now"]),
        (State(current=CA), 365 * DAY, Phase.STEADY, ["error: the signing CA expired at 2027-03-01T12:00:00Z"]),
        (State(current=CA), -DAY, Phase.STEADY, ["error: the signing CA is not valid before 2026-03-01T11:55:00Z"]),
        (
            ROTATING,
            11 * MINUTE,
            Phase.PUBLISHING,
            ["warning: the next CA cannot sign: it is not in the caBundle of mutating"],
        ),
        (ROTATING, 9 * MINUTE, Phase.PUBLISHING, []),
        (PUBLISHED, 11 * MINUTE, Phase.WAITING, []),
        (PUBLISHED, 13 * MINUTE, Phase.WAITING, ["warning: the next CA is in every caBundle, but does not sign"]),
    ],
)
def test_issues_of_the_secret(state, passed, phase, expected):
    bundles = [bundle(CA, NEXT), bundle(CA, name="mutating")]
    status = describe(bundles, data=state.to_data(), now=NOW + passed, settings=SETTINGS)
    assert status.phase == phase
    assert [text for text in texts(status) if "CA in the caBundle" not in text] == expected


def test_issues_of_a_missing_and_a_damaged_secret():
    status = describe([], data=None, now=NOW, settings=SETTINGS)
    assert (status.phase, texts(status)) == (Phase.MISSING, ["error: the CA Secret does not exist"])
    data = State(current=CA).to_data() | {"ca.key": b"nonsense"}
    status = describe([], data=data, now=NOW, settings=SETTINGS)
    assert texts(status) == [
        "error: the CA Secret is damaged: ca.crt and ca.key: the private key is not PEM, or damaged",
        "error: the CA Secret holds no CA",
    ]


@pytest.mark.parametrize("left", [{}, {"ca.key": b""}])
def test_removed_key_is_reported_as_a_renewal(left):
    data = {key: value for key, value in State(current=CA).to_data().items() if key != "ca.key"} | left
    status = describe([bundle(CA)], data=data, now=NOW, settings=SETTINGS, served=[chain()], server_name=HOST)
    assert texts(status) == ["warning: the CA is being renewed: its key was removed from the CA Secret"]
    assert status.issues[0].advice.startswith("the service makes a new CA within a minute; else look into the log")
    assert (status.certificates[0].role, status.certificates[0].fingerprint) == ("old CA", CA.fingerprint)
    data = ROTATING.to_data() | {"ca.key": b""}
    assert texts(describe([bundle(CA, NEXT)], data=data, now=NOW, settings=SETTINGS)) == []


EXPIRED = "error: the CA in the caBundle of validating expired at 2026-05-05T12:00:00Z"
OTHER_NAME = f"error: the served certificate is for a.example, but the API server calls {HOST}"


@pytest.mark.parametrize(
    ("bundles", "served", "days", "expected"),
    [
        ([bundle(CA)], chain(), 0, []),
        ([bundle(CA)], (), 0, []),
        ([bundle(CA), bundle(name="mutating")], (), 0, ["error: mutating has an empty caBundle"]),
        ([Bundle("crd", (b"nonsense",), "1")], chain(), 0, ["error: crd has a damaged caBundle"]),
        ([bundle(NEXT)], chain(), 0, ["error: the caBundle of validating does not trust the served certificate"]),
        ([bundle(OLD)], (), 100, [EXPIRED]),
        ([bundle(OLD, CA)], (), 100, []),
        ([bundle(CA)], chain(), 11, ["warning: the served certificate expires at 2026-03-15T12:00:00Z"]),
        ([bundle(CA)], chain(), 14, ["error: the served certificate expired at 2026-03-15T12:00:00Z"]),
        ([bundle(CA)], chain(host="a.example"), 0, [OTHER_NAME]),
    ],
)
def test_issues_of_bundles_and_the_served_certificate(bundles, served, days, expected):
    status = describe(bundles, now=NOW + days * DAY, served=[served] if served else [], server_name=HOST)
    assert (status.phase, texts(status)) == (None, expected)
    assert served or all(described.trusts_served is None for described in status.bundles)


def test_ca_that_is_only_in_a_bundle_is_listed():
    status = describe([bundle(CA, OLD)], data=State(current=CA).to_data(), now=NOW, settings=SETTINGS)
    assert [(certificate.role, certificate.fingerprint) for certificate in status.certificates] == [
        ("signing CA", CA.fingerprint),
        ("caBundle", OLD.fingerprint),
    ]
