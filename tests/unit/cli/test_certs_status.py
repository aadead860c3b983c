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
    assert [each["role"] for each in data["certificates"]] == ["signing CA", "served"]
    assert [each["trustsServed"] for each in data["caBundles"]] == [True, True]
    assert data["served"] == ["192.0.2.1:8443"]


STATUS: list[tuple[dict[str, Any], str]] = [
    (certificates(data=None), "the CA Secret does not exist"),
    (certificates(bundles=()), "no webhook configuration calls the Service"),
    (certificates(**FILES_MOUNTED, data=None), "the Secret mpijob-webhook-tls does not exist"),
]


@pytest.mark.parametrize(("changes", "text"), STATUS)
def test_missing_secrets_and_hooks_are_reported(changes: dict[str, Any], text: str) -> None:
    status = CertsStatus.at(NOW, changes["certificates"])
    assert text in [issue.text for issue in status.issues]
    lines = list(status.as_text())
    assert any(text in line for line in lines)
    assert "nothing needs doing" not in lines


def test_all_certificates_are_listed_if_replicas_serve_different_ones() -> None:
    other = Authority("x", lifetime=timedelta(days=1)).issue([HOST], lifetime=timedelta(hours=5))
    served = {**HEALTHY.certificates.served, ("192.0.2.2", 8443): chain(other.certificate_pem)}
    status = CertsStatus.at(NOW, replace(HEALTHY.certificates, served=served))
    assert [each.trusts_served for each in status.status.bundles] == [False, False]
    assert len([each for each in status.status.certificates if each.role == "served"]) == 2
