"""Queries a user's rights with SubjectAccessReviews.

The right to exempt jobs from rules is the verb `exempt` on the resource `rules` of the group
`policy.training.openshift.io`, with the ids of rules as resourceNames. The API server has no such resource, so a role
with every verb on MPIJobs does not grant this right.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.api.review import AdmissionRequest
from webhook.client.calls import Client

API = "/apis/authorization.k8s.io/v1"
PATH = f"{API}/subjectaccessreviews"
SELF_PATH = f"{API}/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """An action on objects, which RBAC allows or denies."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    """Empty for all namespaces."""
    name: str = ""
    """Empty for all objects."""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f"/{self.name}" if self.name else ""
        return f"{self.verb} {resource}{name}" + (f" in {self.namespace}" if self.namespace else "")


def exempting(namespace: str, rule: str) -> Right:
    """The right to exempt jobs of a namespace from a rule."""
    return Right("exempt", "policy.training.openshift.io", "rules", namespace, rule)


async def has_right(api: Client, right: Right, subject: Mapping[str, Any] | None = None) -> bool:
    """Whether `subject` has `right`; ClusterError if the API server does not answer.

    `subject` has the fields user, groups, uid and extra of a SubjectAccessReviewSpec. None means the user of `api`.
    """
    path, kind = (SELF_PATH, "SelfSubjectAccessReview") if subject is None else (PATH, "SubjectAccessReview")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "namespace": right.namespace,
        "name": right.name,
    }
    spec = {**(subject or {}), "resourceAttributes": attributes}
    answer = await api.request("POST", path, {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
    status = answer.get("status")
    return isinstance(status, dict) and status.get("allowed") is True


async def may_exempt(api: Client, request: AdmissionRequest, rules: Iterable[str]) -> Mapping[str, bool]:
    """For each rule, whether the requester may exempt jobs in the namespace; ClusterError without an answer."""
    user = request.user_info
    subject = {"user": user.username, "groups": user.groups or [], "uid": user.uid, "extra": user.extra or {}}
    try:
        async with asyncio.TaskGroup() as group:
            queries = {
                rule: group.create_task(has_right(api, exempting(request.namespace, rule), subject)) for rule in rules
            }
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return {rule: task.result() for rule, task in queries.items()}
