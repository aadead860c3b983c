"""The service reads the caBundles from the API server at intervals."""

from datetime import timedelta
from typing import Any

import pytest

from webhook.client.calls import ApiError
from webhook.installation.certificate_store import CRD, DENIED_PAUSE, CertificateStore, rotation


class Api:
    """An API server without webhook configurations. Requests for the CRD fail with `status`."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.asked = 0

    async def request(self, method: str, path: str, *_: object, **__: object) -> dict[str, Any]:
        if path != CRD:
            raise ApiError(404, "not found")
        self.asked += 1
        raise ApiError(self.status, "no")


def test_ca_bundles_are_read_every_15_seconds() -> None:
    lifetimes = timedelta(days=365), timedelta(days=14), timedelta(minutes=2)
    assert rotation(*lifetimes).interval == timedelta(seconds=15)


@pytest.mark.parametrize(
    ("status", "requests"), [(403, [1, 1, 2]), (404, [1, 2, 3])], ids=["no right", "not installed"]
)
async def test_request_is_repeated_in_every_pass_unless_it_was_denied(status: int, requests: list[int]) -> None:
    now = 0.0
    api: Any = Api(status)
    store = CertificateStore(api, namespace="ns", secret="ca", service="web", clock=lambda: now)
    counts = []
    for now in (0.0, DENIED_PAUSE - 1, DENIED_PAUSE):  # noqa: B007 - the store's clock
        assert await store.read_bundles() == []
        counts.append(api.asked)
    assert counts == requests
