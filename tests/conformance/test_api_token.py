"""The service predicts which pods get an API token. The tests compare the predictions with a real API server."""

from itertools import product
from typing import Any

import msgspec
import pytest

from tests.controlplane.cluster import Cluster
from tests.support.api_client import DRY_RUN, Client, client
from tests.support.service_accounts import service_account
from webhook.api.pod import PodSpec
from webhook.cluster.snapshot import Snapshot
from webhook.predict.api_token import gets_token

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

CHOICES = (None, False, True)
MOUNTED_AT = "/var/run/secrets/kubernetes.io/serviceaccount"


async def mounts(api: Client, namespace: str, spec: dict[str, Any]) -> bool:
    containers = [{"name": "a", "image": "a:1"}]
    pod = {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}
    status, reply, _ = await api.send("POST", f"/api/v1/namespaces/{namespace}/pods", pod, **DRY_RUN)
    assert status == 201, reply
    return any(mount["mountPath"] == MOUNTED_AT for mount in reply["spec"]["containers"][0].get("volumeMounts") or ())


@pytest.mark.parametrize("of_default", CHOICES)
async def test_pod_gets_a_token_unless_pod_or_account_disables_it(cluster: Cluster, of_default: bool | None) -> None:
    namespace = f"default-{of_default}".lower()
    accounts = [
        service_account(name, namespace=namespace, token=token)
        for name, token in (("default", of_default), ("quiet", False), ("talks", True))
    ]
    view = Snapshot(accounts)
    async with client(cluster) as api:
        await api.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for account in accounts:
            await api.send("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
        for field, name, token in product(("serviceAccountName", "serviceAccount"), (None, "quiet", "talks"), CHOICES):
            spec = {field: name, "automountServiceAccountToken": token}
            predicted = gets_token(msgspec.convert(spec, PodSpec), view, namespace)
            assert predicted is await mounts(api, namespace, spec), spec
