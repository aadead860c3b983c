"""Access reviews: the requests to the API server, and its answers."""

import asyncio
from typing import Any

import pytest

from webhook.api.review import AdmissionRequest, UserInfo
from webhook.client.access_reviews import PATH, SELF_PATH, Right, has_right, may_exempt
from webhook.client.calls import ClusterError

RIGHT = Right("get", "apps", "deployments", "team-a", "web")


ALICE = UserInfo(username="alice", uid="7", groups=["staff"], extra={"scope": ["a"]})
REQUEST = AdmissionRequest(uid="1", operation="CREATE", namespace="team-a", user_info=ALICE)


class Api:
    def __init__(self, status: Any, path: str = PATH, kind: str = "SubjectAccessReview") -> None:
        self.status, self.path, self.kind = status, path, kind
        self.specs: list[dict[str, Any]] = []

    async def request(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert (method, path) == ("POST", self.path)
        assert (body["apiVersion"], body["kind"]) == ("authorization.k8s.io/v1", self.kind)
        self.specs.append(body["spec"])
        return {"status": self.status}


async def test_request_has_subject_and_right() -> None:
    api: Any = Api({"allowed": True})
    assert await has_right(api, RIGHT, {"user": "alice", "groups": ["staff"]})
    attributes = {"verb": "get", "group": "apps", "resource": "deployments", "namespace": "team-a", "name": "web"}
    assert api.specs == [{"user": "alice", "groups": ["staff"], "resourceAttributes": attributes}]


@pytest.mark.parametrize("status", [{"allowed": False}, {"allowed": "yes"}, {}, None, "allowed"])
async def test_only_allowed_true_grants_a_right(status: Any) -> None:
    api: Any = Api(status)
    assert not await has_right(api, RIGHT, {"user": "alice"})


async def test_right_to_exempt_is_queried_for_each_rule() -> None:
    api: Any = Api({"allowed": True})
    assert await may_exempt(api, REQUEST, ["gpus", "custom/no-spot"]) == {"gpus": True, "custom/no-spot": True}
    who = {"user": "alice", "uid": "7", "groups": ["staff"], "extra": {"scope": ["a"]}}
    attributes = {"verb": "exempt", "group": "policy.training.openshift.io", "resource": "rules", "namespace": "team-a"}
    assert api.specs == [
        {**who, "resourceAttributes": {**attributes, "name": "gpus"}},
        {**who, "resourceAttributes": {**attributes, "name": "custom/no-spot"}},
    ]


async def test_rules_are_queried_in_parallel() -> None:
    """An admission review must be answered within 5 s. Slow access reviews in sequence would take longer."""
    queries: list[str] = []
    together = asyncio.Event()

    class Slow(Api):
        async def request(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
            queries.append(body["spec"]["resourceAttributes"]["name"])
            if len(queries) == 3:
                together.set()
            await together.wait()
            return {"status": {"allowed": queries[-1] == "three"}}

    api: Any = Slow(None)
    async with asyncio.timeout(10):
        assert await may_exempt(api, REQUEST, ["one", "two", "three"]) == dict.fromkeys(["one", "two", "three"], True)


async def test_failed_query_raises() -> None:
    class Broken(Api):
        async def request(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
            if body["spec"]["resourceAttributes"]["name"] == "two":
                raise ClusterError("no answer")
            await asyncio.Event().wait()
            raise AssertionError("never")

    api: Any = Broken(None)
    with pytest.raises(ClusterError, match="no answer"):
        await may_exempt(api, REQUEST, ["one", "two"])


async def test_own_right_is_queried_by_a_self_subject_access_review() -> None:
    api: Any = Api({"allowed": True}, SELF_PATH, "SelfSubjectAccessReview")
    assert await has_right(api, RIGHT)
    assert [spec["resourceAttributes"]["verb"] for spec in api.specs] == ["get"]


def test_text_of_a_right() -> None:
    assert str(RIGHT) == "get deployments.apps/web in team-a"
    assert str(Right("list", "", "pods")) == "list pods"
