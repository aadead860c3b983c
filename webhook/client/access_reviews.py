"""Who may exempt jobs from rules: the API server is asked, with a SubjectAccessReview.

RBAC grants the verb `exempt` on `mpijobs.kubeflow.org`, with the ids of rules as resourceNames.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.api import mpijob
from webhook.api.review import AdmissionRequest
from webhook.client.calls import Client

PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
VERB = "exempt"


async def may_exempt(api: Client, request: AdmissionRequest, rules: Iterable[str]) -> Mapping[str, bool]:
    """For each rule whether the requester may exempt jobs in that namespace; ClusterError if nobody can tell."""
    return {rule: await _allowed(api, request, rule) for rule in rules}


async def _allowed(api: Client, request: AdmissionRequest, rule: str) -> bool:
    user = request.user_info
    spec: dict[str, Any] = {
        "user": user.username,
        "groups": user.groups or [],
        "uid": user.uid,
        "extra": user.extra or {},
        "resourceAttributes": {
            "verb": VERB,
            "group": mpijob.GROUP,
            "resource": "mpijobs",
            "namespace": request.namespace,
            "name": rule,
        },
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    status = (await api.request("POST", PATH, body)).get("status")
    return isinstance(status, dict) and status.get("allowed") is True
