"""The SCCs of OpenShift that service accounts may use: queries, cache, and missing answers."""

from typing import Any

from tests.support.openshift import DEFAULT_SCCS, view
from webhook.client.calls import ClusterError
from webhook.client.limits import MAX_SCC_GRANTS, SCC_GRANTS_SECONDS
from webhook.client.scc_grants import GrantsReader
from webhook.cluster.scc_grants import SCC_GRANTS, SccGrants
from webhook.cluster.view import UNKNOWN, NothingKnown

KEY = ("team-a", "system:serviceaccount:team-a:default")
GROUPS = ["system:serviceaccounts", "system:serviceaccounts:team-a", "system:authenticated"]


class Api:
    """An API server that allows the use of these SCCs."""

    def __init__(self, *allowed: str, error: Exception | None = None) -> None:
        self.allowed, self.error = allowed, error
        self.specs: list[dict[str, Any]] = []

    async def request(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.specs.append(body["spec"])
        if self.error is not None:
            raise self.error
        return {"status": {"allowed": body["spec"]["resourceAttributes"]["name"] in self.allowed}}


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def reader(api: Any, clock: Clock | None = None) -> GrantsReader:
    return GrantsReader(api, view(), now=clock or Clock())


def names(grants: SccGrants | None) -> set[str]:
    assert grants is not None
    return {*grants.constraints}


async def test_each_scc_is_queried_with_the_groups_of_the_service_account() -> None:
    api = Api("restricted-v2")
    grants = reader(api)
    await grants.read([KEY])
    assert names(grants.cached(KEY)) == {"restricted-v2"}
    assert len(api.specs) == len(DEFAULT_SCCS)
    attributes = {"verb": "use", "group": "security.openshift.io", "resource": "securitycontextconstraints"}
    where = {"namespace": "team-a", "name": "anyuid"}
    assert {"user": KEY[1], "groups": GROUPS, "resourceAttributes": {**attributes, **where}} in api.specs


async def test_scc_that_lists_the_account_is_not_queried() -> None:
    api = Api()
    grants = reader(api)
    recycler = ("openshift-infra", "system:serviceaccount:openshift-infra:pv-recycler-controller")
    await grants.read([recycler])
    assert names(grants.cached(recycler)) == {"hostmount-anyuid"}
    assert len(api.specs) == len(DEFAULT_SCCS) - 1


async def test_answers_are_cached_for_some_seconds() -> None:
    clock = Clock()
    grants = reader(Api("restricted-v2"), clock)
    missing: set[tuple[str, str]] = set()
    grants_view = grants.over(NothingKnown(), missing)
    assert grants_view.get(SCC_GRANTS, KEY) is UNKNOWN
    assert missing == {KEY}
    await grants.read(missing)
    assert grants_view.get(SCC_GRANTS, KEY) == grants.cached(KEY)
    clock.time += SCC_GRANTS_SECONDS
    assert grants.cached(KEY) is None


async def test_sccs_of_an_account_stay_unknown_without_an_answer() -> None:
    grants = reader(Api(error=ClusterError("it is away")))
    await grants.read([KEY])
    assert grants.cached(KEY) is None


async def test_no_access_review_is_sent_if_the_cluster_has_no_sccs() -> None:
    api: Any = Api()
    grants = GrantsReader(api, NothingKnown())
    await grants.read([KEY])
    assert (api.specs, grants.cached(KEY)) == ([], None)


async def test_number_of_cached_accounts_is_limited() -> None:
    grants = reader(Api())
    for number in range(MAX_SCC_GRANTS):
        grants._cached["team-a", str(number)] = (1000.0, SccGrants("team-a", str(number), frozenset()))
    await grants.read([KEY])
    assert len(grants._cached) == 1
