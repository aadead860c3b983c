import socket
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest

from certs.authority import Authority
from tests.support import jobs
from tests.support.live_service import Connection, live
from tests.support.policies import HEADER, layer
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.store import Loaded
from webhook.server import service as service_module
from webhook.server.service import StartError

GOOD = jobs.body(jobs.GOOD)
DAY = timedelta(days=1)
CA = Authority("test CA", lifetime=DAY)


@pytest.fixture
def pair(tmp_path):
    """The paths of a certificate for the loopback address and of its private key."""
    made = CA.issue(["127.0.0.1"], lifetime=DAY)
    (tmp_path / "tls.crt").write_bytes(made.certificate_pem)
    (tmp_path / "tls.key").write_bytes(made.key_pem)
    return {"tls_cert": tmp_path / "tls.crt", "tls_key": tmp_path / "tls.key"}


def refused(**settings):
    """The error that prevents the start of a service with these settings."""
    with pytest.raises(StartError) as error, live(**settings):
        pass
    return str(error.value)


def test_addresses_are_logged_and_returned():
    with live() as service:
        (line,) = service.log("listening")
        assert (line["address"], line["ops"]) == (service.service.url, service.service.ops_url)
        assert service.service.url.startswith("https://127.0.0.1:")
        assert service.service.ops_url.startswith("http://127.0.0.1:")
        assert not service.service.url.endswith(":0")


def test_ca_in_memory_is_written_to_the_file(tmp_path):
    with live(ca_file=tmp_path / "ca.pem") as service:
        connection = Connection(service.service.url, (tmp_path / "ca.pem").read_bytes())
        assert connection.post("/validate-mpijob", GOOD).status == 200
        connection.close()
        (line,) = service.log("certificate made in memory")
        assert line["ca"] == str(tmp_path / "ca.pem")


def test_log_mentions_the_option_ca_file_if_it_is_not_set():
    with live() as service:
        assert service.log("certificate made in memory")[0]["ca"] == "give --ca-file FILE to have it written"


def test_certificate_from_files_is_served(pair):
    with live(**pair) as service:
        assert service.service.ca_pem is None
        connection = Connection(service.service.url, CA.certificate_pem)
        assert connection.post("/validate-mpijob", GOOD).status == 200
        connection.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            Connection(service.service.url, Authority("another CA", lifetime=DAY).certificate_pem)


def test_certificate_for_all_addresses_includes_this_host():
    with live(listen=("0.0.0.0", 0)) as service:
        port = service.service.url.rsplit(":", 1)[1]
        for host in ("127.0.0.1", "localhost"):
            connection = Connection(f"https://{host}:{port}", service.service.ca_pem)
            assert connection.post("/validate-mpijob", GOOD).status == 200
            connection.close()


def test_policy_from_a_file_is_used(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"{HEADER}rules: {{worker-count: {{min: 9}}}}\n")
    with live(policy=policy) as service:
        assert "at least 9 required" in service.post("/validate-mpijob", GOOD).answer["status"]["message"]


def test_validators_of_policies_are_built_at_the_start(monkeypatch):
    model = policy_model.__wrapped__()
    monkeypatch.setattr("webhook.server.service.policy_model", lambda: model)
    with live():
        assert model.__pydantic_complete__


def test_invalid_policy_file_prevents_the_start(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"{HEADER}mode: never\n")
    problem = refused(policy=policy)
    assert problem.startswith(f"the policy {policy} cannot be used:\n")
    assert "mode: " in problem
    assert refused(policy=tmp_path / "none") == f"cannot read the policy {tmp_path}/none: No such file or directory"


def test_invalid_certificate_prevents_the_start(pair, tmp_path):
    cert, key = pair["tls_cert"], pair["tls_key"]
    assert refused(tls_cert=cert) == "--tls-cert and --tls-key must be used together"
    assert refused(tls_key=key) == "--tls-cert and --tls-key must be used together"
    assert refused(tls_cert=cert, tls_key=cert) == f"{cert}: the private key is not PEM, or damaged"
    assert refused(tls_cert=tmp_path / "none", tls_key=key).endswith(
        f"cannot read {tmp_path}/none: No such file or directory"
    )
    assert refused(ca_file=tmp_path / "no" / "ca.pem").startswith(f"cannot write {tmp_path}/no/ca.pem: ")


@pytest.mark.parametrize("port", ["listen", "ops_listen"])
def test_port_in_use_prevents_the_start(port):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
        assert refused(**{port: address}) == f"cannot listen on 127.0.0.1:{address[1]}: Address already in use"


def test_foreign_address_prevents_the_start():
    assert refused(listen=("192.0.2.1", 0)) == "cannot listen on 192.0.2.1:0: Cannot assign requested address"
    assert refused(listen=("no.such.host.invalid", 0)).startswith("cannot listen on no.such.host.invalid:0: ")


def test_option_that_conflicts_with_the_option_register_prevents_the_start(pair):
    assert refused(register=True, **pair) == (
        "--register makes its own certificate: leave out --tls-cert, --tls-key and --ca-secret"
    )
    assert refused(register=True, listen=("0.0.0.0", 0)) == (
        "--register needs an address that the API server can reach: --listen HOST:PORT"
    )


def test_option_that_conflicts_with_a_ca_secret_prevents_the_start(pair):
    assert refused(ca_secret="ca", service="s", **pair) == (
        "--ca-secret makes its own certificates: leave out --tls-cert and --tls-key"
    )
    assert refused(ca_secret="ca") == "--ca-secret needs --service: certificates are for its name"
    assert refused(ca_secret="ca", service="s", ca_lifetime=60) == (
        "--ca-lifetime must be at least three times --leaf-lifetime and --ca-grace together"
    )


def test_contradiction_between_policies_is_reported(tmp_path):
    (file := tmp_path / "policies.yaml").write_text(
        f"{HEADER}rules: {{gpus: {{max: 2}}}}\n---\n{HEADER}priority: 1\nrules: {{gpus: {{min: 3}}}}\n"
    )
    with live(policy=file) as service:
        assert service.post("/validate-mpijob", GOOD).status == 200
        report = service.ops("/readyz")
    assert '" is left out where it contradicts another: min (3) is above max (2)' in report


async def test_controllers_are_notified_when_the_content_of_policies_changes(monkeypatch):
    """After a lost watch, the service reads the policies again. Unchanged policies must not notify the controllers."""
    notifications = []

    class Stub:
        """An object that has every attribute and accepts every call."""

        policies = PolicySet([])

        def __getattr__(self, _):
            return Stub()

        def __call__(self, *_, **__):
            return Stub()

        def __iter__(self):
            return iter(())

    @asynccontextmanager
    async def linked(*_, apply, **__):
        link = Stub()
        link.apply = apply
        yield link

    async def controllers(*_):
        return [lambda: notifications.append("changed")]

    monkeypatch.setattr(service_module, "linked", linked)
    monkeypatch.setattr(service_module, "start_controllers", controllers)
    async with AsyncExitStack() as stack:
        link = await service_module._follow_cluster(stack, Stub(), ())
        first, second = "rules: {worker-count: {max: 3}}", "rules: {worker-count: {max: 4}}"
        for texts in ([], [first], [first], [first, second], [first, second], [second], []):
            loaded = Loaded()
            link.apply(PolicySet([layer("p", text) for text in texts]), loaded)
    assert len(notifications) == 4
