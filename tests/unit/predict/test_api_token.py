"""Whether the API server gives a pod a token. If that is unknown, the pod is treated as having one."""

import pytest

from tests.support.service_accounts import service_account
from webhook.api.pod import PodSpec
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.predict.api_token import gets_token

VIEW = Snapshot(
    [
        service_account("default", token=False),
        service_account("talks", token=True),
        service_account("plain"),
        service_account("default", namespace="team-b"),
    ]
)


@pytest.mark.parametrize(
    ("pod", "namespace", "gets"),
    [
        (None, "team-a", False),
        (PodSpec(), "team-a", False),
        (PodSpec(), "team-b", True),
        (PodSpec(), "team-c", True),
        (PodSpec(service_account_name="talks"), "team-a", True),
        (PodSpec(service_account="talks"), "team-a", True),
        (PodSpec(service_account_name="default", service_account="talks"), "team-a", False),
        (PodSpec(service_account_name="plain"), "team-a", True),
        (PodSpec(service_account_name="gone"), "team-a", True),
        (PodSpec(automount_service_account_token=True), "team-a", True),
        (PodSpec(automount_service_account_token=False, service_account_name="talks"), "team-a", False),
    ],
)
def test_field_of_the_pod_overrides_its_account(pod: PodSpec | None, namespace: str, gets: bool) -> None:
    assert gets_token(pod, VIEW, namespace) is gets
    if pod is None or pod.automount_service_account_token is None:
        assert gets_token(pod, NothingKnown(), namespace)
