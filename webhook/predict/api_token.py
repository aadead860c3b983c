"""Predicts if a pod gets a token for the API server (`shouldAutomount`).

https://github.com/kubernetes/kubernetes/blob/v1.35.4/plugin/pkg/admission/serviceaccount/admission.go
"""

from webhook.api.pod import PodSpec
from webhook.cluster.resources.service_accounts import SERVICE_ACCOUNTS, ServiceAccount
from webhook.cluster.view import UNKNOWN, ClusterView, Unknown


def gets_token(pod: PodSpec | None, view: ClusterView, namespace: str) -> bool | Unknown:
    """Whether the pod gets a token. A value in the pod's spec overrides the value in its ServiceAccount.

    UNKNOWN is truthy, so callers assume a token.
    """
    if pod is not None and pod.automount_service_account_token is not None:
        return pod.automount_service_account_token
    name = (pod and (pod.service_account_name or pod.service_account)) or "default"
    account = view.get(SERVICE_ACCOUNTS, (namespace, name))
    if account is UNKNOWN:
        return UNKNOWN
    return account.token if isinstance(account, ServiceAccount) else True
