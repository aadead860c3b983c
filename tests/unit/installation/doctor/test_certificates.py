"""`doctor` reads the certificates of an installation."""

import socket
from datetime import timedelta
from typing import Any

import pytest

from tests.support.doctor_facts import HEALTHY, UNREAD, deployment
from webhook.client.calls import ApiError
from webhook.installation.doctor.certificates import FILES, SELF_MANAGED, addresses, read, source
from webhook.installation.doctor.facts import arguments


def with_arguments(*arguments: str, **spec: Any) -> Any:
    webhook = deployment("mpijob-webhook", "i", **spec)
    webhook["spec"]["template"]["spec"]["containers"][0]["args"] = ["serve", *arguments]
    return webhook


@pytest.mark.parametrize(
    ("webhook", "flag", "expected"),
    [
        (with_arguments("--ca-secret=mine"), "", (SELF_MANAGED, "mine")),
        (with_arguments("--ca-secret=mine"), "other", (SELF_MANAGED, "other")),
        (
            with_arguments("--tls-cert=/x", volumes=[{"name": "a"}, {"secret": {"secretName": "tls"}}]),
            "",
            (FILES, "tls"),
        ),
        (with_arguments("--listen=0.0.0.0:8443"), "", ("", "")),
        (None, "", (SELF_MANAGED, "mpijob-webhook-ca")),
        (UNREAD, "", (SELF_MANAGED, "mpijob-webhook-ca")),
    ],
)
def test_source_of_the_certificates_follows_from_the_deployment_and_the_flag(
    webhook: Any, flag: str, expected: tuple[str, str]
) -> None:
    assert source(webhook, arguments(webhook), flag) == expected


class Answers:
    """An API server that gives the same answer to all requests, or denies all requests."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self.answer = answer

    async def request(self, method: str, path: str) -> dict[str, Any]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


SLICES = {
    "metadata": {"resourceVersion": "7"},
    "items": [
        {
            "ports": [{"name": "review", "port": 8443}, {"name": "ops", "port": 8081}],
            "endpoints": [
                {"addresses": ["192.0.2.1"], "conditions": {"ready": True}},
                {"addresses": ["192.0.2.2"], "conditions": {"ready": False}},
                {"addresses": ["192.0.2.3"], "conditions": {}},
            ],
        },
        {"ports": [{"name": "review", "port": 8443}], "endpoints": [{"addresses": ["2001:db8::1"]}]},
        {"ports": None, "endpoints": None},
    ],
}
SERVICE: Any = HEALTHY.service
EXTERNAL = {"metadata": {"name": "s"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}


@pytest.mark.parametrize(
    ("service", "port", "expected"),
    [
        (SERVICE, 443, [("192.0.2.1", 8443), ("192.0.2.3", 8443), ("2001:db8::1", 8443)]),
        (SERVICE, 8081, [("192.0.2.1", 8081), ("192.0.2.3", 8081)]),
        (SERVICE, 1, []),
        (EXTERNAL, 9443, [("localhost", 9443)]),
        (None, 443, []),
        (UNREAD, 443, []),
    ],
)
async def test_addresses_of_replicas_are_ready_endpoints_of_the_service(
    service: Any, port: int, expected: list[tuple[str, int]]
) -> None:
    api: Any = Answers(SLICES)
    assert await addresses(api, namespace="mpijob-webhook", service=service, port=port) == expected


async def test_closed_port_is_reported_as_unreachable() -> None:
    api: Any = Answers(ApiError(404, "not found"))
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    taken.close()
    state = await read(
        api, namespace="n", service="s", deployment=None, options={}, ca_secret="", addresses=[("127.0.0.1", port)]
    )
    assert (state.data, state.bundles, state.served) == (None, [], {})
    assert [f"cannot reach 127.0.0.1:{port}" in why for why in state.unreached] == [True]


async def test_lifetimes_come_from_the_options_of_the_deployment() -> None:
    api: Any = Answers(ApiError(404, "not found"))
    for options, days in (({"--ca-lifetime": "90d"}, 90), ({}, 365), ({"--ca-lifetime": "soon"}, 365)):
        state = await read(
            api, namespace="n", service="s", deployment=None, options=options, ca_secret="", addresses=[]
        )
        assert state.settings.ca_lifetime == timedelta(days=days)
