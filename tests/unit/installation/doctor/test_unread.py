"""What the doctor does not get to read."""

import pytest

from certs.store import StoreError
from webhook.client.calls import ApiError, ClusterError
from webhook.installation.doctor.diagnosis import Unread, attempt

FORBIDDEN = 'the API server at https://a refuses: pods is forbidden: User "u" cannot list resource "pods" (403)'


async def refused(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ApiError(403, FORBIDDEN), 'no permission to list resource "pods"'),
        (StoreError(FORBIDDEN), 'no permission to list resource "pods"'),
        (ApiError(500, "out of order"), "out of order"),
    ],
)
async def test_what_is_refused_is_unread(error: Exception, reason: str) -> None:
    assert await attempt(refused(error)) == Unread(reason)


@pytest.mark.parametrize("error", [ApiError(401, "who?"), ClusterError("nobody there")])
async def test_a_cluster_that_cannot_be_used(error: Exception) -> None:
    with pytest.raises(ClusterError):
        await attempt(refused(error))
