"""What the API server is asked about rights, and what counts as a yes."""

from typing import Any

import pytest

from webhook.api.review import AdmissionRequest, UserInfo
from webhook.client.access_reviews import PATH, Right, has_right, may_exempt

RIGHT = Right("get", "apps", "deployments", "team-a", "web")


class Api:
    def __init__(self, status: Any) -> None:
        self.status = status
        self.specs: list[dict[str, Any]] = []

    async def request(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert (method, path) == ("POST", PATH)
        assert (body["apiVersion"], body["kind"]) == ("authorization.k8s.io/v1", "SubjectAccessReview")
        self.specs.append(body["spec"])
        return {"status": self.status}


async def test_the_question() -> None:
    api: Any = Api({"allowed": True})
    assert await has_right(api, {"user": "alice", "groups": ["staff"]}, RIGHT)
    attributes = {"verb": "get", "group": "apps", "resource": "deployments", "namespace": "team-a", "name": "web"}
    assert api.specs == [{"user": "alice", "groups": ["staff"], "resourceAttributes": attributes}]


@pytest.mark.parametrize("status", [{"allowed": False}, {"allowed": "yes"}, {}, None, "allowed"])
async def test_only_a_clear_yes_is_one(status: Any) -> None:
    api: Any = Api(status)
    assert not await has_right(api, {"user": "alice"}, RIGHT)


async def test_who_may_exempt_is_asked_rule_by_rule() -> None:
    api: Any = Api({"allowed": True})
    user = UserInfo(username="alice", uid="7", groups=["staff"], extra={"scope": ["a"]})
    request = AdmissionRequest(uid="1", operation="CREATE", namespace="team-a", user_info=user)
    assert await may_exempt(api, request, ["one", "two"]) == {"one": True, "two": True}
    who = {"user": "alice", "uid": "7", "groups": ["staff"], "extra": {"scope": ["a"]}}
    attributes = {"verb": "exempt", "group": "kubeflow.org", "resource": "mpijobs", "namespace": "team-a"}
    assert api.specs == [
        {**who, "resourceAttributes": {**attributes, "name": "one"}},
        {**who, "resourceAttributes": {**attributes, "name": "two"}},
    ]


def test_a_right_in_words() -> None:
    assert str(RIGHT) == "get deployments.apps/web in team-a"
    assert str(Right("list", "", "pods")) == "list pods"
