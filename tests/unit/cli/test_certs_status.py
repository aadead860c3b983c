"""The output of `mpijob-webhook certs status`."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from certs.authority import Authority
from tests.support.doctor_facts import FILES_MOUNTED, HEALTHY, HOST, NOW, certificates, chain
from webhook.cli.certs_status import CertsStatus


def test_status_of_valid_certificates() -> None:
    status = CertsStatus.at(NOW, HEALTHY.certificates)
    lines = list(status.as_text())
    assert "Self-managed, CA in Secret mpijob-webhook/mpijob-webhook-ca: steady (one CA, which signs)" in lines[0]
    assert [line.split("  ")[0] for line in lines[1:4]] == ["CERTIFICATE", "signing CA", "served"]
    assert lines[-1] == "nothing needs doing"
    data = json.loads(json.dumps(status.as_json()))
    assert [certificate["role"] for certificate in data["certificates"]] == ["signing CA", "served"]
    assert [bundle["trustsServed"] for bundle in data["caBundles"]] == [True, True]
    assert data["served"] == ["192.0.2.1:8443"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (certificates(data=None), "the CA Secret does not exist"),
        (certificates(bundles=()), "no webhook configuration calls the Service"),
        (certificates(**FILES_MOUNTED, data=None), "the Secret mpijob-webhook-tls does not exist"),
    ],
)
def test_missing_secrets_and_webhook_configurations_are_reported(changes: dict[str, Any], text: str) -> None:
    status = CertsStatus.at(NOW, changes["certificates"])
    assert text in [issue.text for issue in status.issues]
    assert "nothing needs doing" not in status.as_text()


def test_all_certificates_are_listed_if_replicas_serve_different_ones() -> None:
    other = Authority("x", lifetime=timedelta(days=1)).issue([HOST], lifetime=timedelta(hours=5))
    served = {**HEALTHY.certificates.served, ("192.0.2.2", 8443): chain(other.certificate_pem)}
    status = CertsStatus.at(NOW, replace(HEALTHY.certificates, served=served))
    assert [bundle.trusts_served for bundle in status.status.bundles] == [False, False]
    assert [certificate.role for certificate in status.status.certificates].count("served") == 2
