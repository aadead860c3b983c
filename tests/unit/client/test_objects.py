"""Lists and single objects are read from a fake API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from aiohttp.test_utils import RawTestServer

from tests.support.object_api import fake_api, kubeconfig
from tests.support.watch_api import FakeApi, answer, page, refused, serving, thing
from webhook.client import calls, paging
from webhook.client.calls import ApiError, ClusterError
from webhook.client.limits import MAX_PAGES
from webhook.client.objects import get, listed
from webhook.client.paging import pages
from webhook.client.wire import Page, PageMetadata, WatchFault


@asynccontextmanager
async def connected(folder: Path, *answers: Any) -> AsyncIterator[tuple[Any, FakeApi]]:
    """Yield a client, and a fake API server that gives these answers in order."""
    api = FakeApi()
    api.lists = list(answers)
    async with RawTestServer(api.handle) as server:
        client = await calls.connect(kubeconfig(folder / "config", str(server.make_url("")).rstrip("/")))
        try:
            yield client, api
        finally:
            await client.close()


async def listed_names(folder: Path, *answers: Any) -> tuple[list[str], list[dict[str, str]]]:
    """Return the names in the list, and the queries."""
    async with connected(folder, *answers) as (client, api):
        things = await listed(client, "/api/v1/things", labelSelector="a=b")
    return [item["metadata"]["name"] for item in things], api.queries(watch=False)


async def test_lists_are_read_in_pages(tmp_path: Path) -> None:
    names, queries = await listed_names(tmp_path, page(thing("a"), thing("b"), token="t/1="), page(thing("c")))
    assert names == ["a", "b", "c"]
    assert queries == [
        {"labelSelector": "a=b", "limit": "200"},
        {"labelSelector": "a=b", "limit": "200", "continue": "t/1="},
    ]


async def test_list_with_null_items_is_empty(tmp_path: Path) -> None:
    assert await listed_names(tmp_path, answer('{"kind": "ThingList", "metadata": null, "items": null}')) == (
        [],
        [{"labelSelector": "a=b", "limit": "200"}],
    )


async def test_incomplete_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="too old"):
        await listed_names(tmp_path, page(thing("a"), token="t"), refused(410, "the continue parameter is too old"))


async def test_endless_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="a list without end"):
        await listed_names(tmp_path, page(thing("a"), token="t"))


@pytest.mark.parametrize(
    "body",
    [
        '{"kind": "Thing", "items": []}',
        '{"kind": "ThingList", "items": "none"}',
        '{"kind": "ThingList", "metadata": [1], "items": []}',
        "hello",
    ],
)
async def test_answer_that_is_not_a_list_is_an_error(tmp_path: Path, body: str) -> None:
    with pytest.raises(ClusterError, match=r"what answers at http://127\.0\.0\.1:\d+ is not an API server"):
        await listed_names(tmp_path, answer(body))


async def test_single_object_is_read(tmp_path: Path) -> None:
    with fake_api() as server:
        server.put("/api/v1/namespaces/team-a")
        server.refusals["GET", "/api/v1/namespaces/team-c"] = (403, "no")
        api = await calls.connect(kubeconfig(tmp_path / "config", server.url))
        try:
            namespace = await get(api, "/api/v1/namespaces/team-a")
            assert namespace is not None
            assert namespace["metadata"]["name"] == "team-a"
            assert await get(api, "/api/v1/namespaces/team-b") is None
            with pytest.raises(ApiError, match=r"rejected the request: no \(403\)"):
                await get(api, "/api/v1/namespaces/team-c")
        finally:
            await api.close()


NO_OBJECTS = ["", "hello", "<html>", "null", "[]", '"a"', b'{"a": "\xff"}', '{"a": ' + "[" * 100_000]


@pytest.mark.parametrize("body", NO_OBJECTS)
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_answer_that_is_not_an_object_is_an_error(tmp_path: Path, body: str | bytes, method: str) -> None:
    """Otherwise the answer would be used as an object without fields, or raise an unexpected exception."""
    with pytest.raises(ClusterError, match=r"^what answers at http://127\.0\.0\.1:\d+ is not an API server$"):
        async with connected(tmp_path, answer(body)) as (client, _):
            await client.request(method, "/api/v1/namespaces/team-a")


@pytest.mark.parametrize("body", NO_OBJECTS)
async def test_error_without_a_readable_body_has_its_http_status(tmp_path: Path, body: str | bytes) -> None:
    with pytest.raises(ApiError, match=r"rejected the request: no reason given \(502\)") as caught:
        async with connected(tmp_path, answer(body, status=502)) as (client, _):
            await client.request("GET", "/version")
    assert caught.value.status == 502


@pytest.mark.parametrize("body", ["{}", '{"metadata": null}', '{"metadata": []}', '{"kind": "Status"}'])
async def test_object_without_metadata_is_an_error(tmp_path: Path, body: str) -> None:
    with pytest.raises(ClusterError, match=r"^what answers for /api/v1/namespaces/team-a is not an API server$"):
        async with connected(tmp_path, answer(body)) as (client, _):
            await get(client, "/api/v1/namespaces/team-a")


async def test_request_accepts_an_answer_without_metadata(tmp_path: Path) -> None:
    """The answer about the version has no metadata. The same is true for the answer to a deletion."""
    async with connected(tmp_path, answer("{}")) as (client, _):
        assert await client.request("GET", "/version") == {}


PATH = "/api/v1/things"


class Fetch:
    """Returns these pages in order: (items, token of the next page)."""

    def __init__(self, *answers: tuple[list[str], str]) -> None:
        self.answers = list(answers)
        self.queries: list[tuple[str, dict[str, str]]] = []

    async def __call__(self, target: str) -> Page[str]:
        self.queries.append((urlsplit(target).path, dict(parse_qsl(urlsplit(target).query, keep_blank_values=True))))
        items, token = self.answers.pop(0)
        return Page(PageMetadata("7", token), items)


async def items(fetch: Fetch, **query: str) -> list[str]:
    return [item async for page in pages(fetch, PATH, limit=2, **query) for item in page.items or ()]


async def test_page_is_returned_before_the_next_page_is_requested() -> None:
    fetch = Fetch((["a"], "t"), (["b"], ""))
    first = await anext(pages(fetch, PATH, limit=1))
    assert first.items == ["a"]
    assert len(fetch.queries) == 1


async def test_alternating_tokens_are_an_endless_list() -> None:
    """Otherwise the list would be read forever."""
    fetch = Fetch(*[(["a"], "t1"), (["b"], "t2")] * 50)
    with pytest.raises(WatchFault, match="garbage: a list without version or end"):
        await items(fetch)
    assert len(fetch.queries) == 3


async def test_list_with_too_many_pages_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit also applies if each token is new."""
    assert MAX_PAGES >= 50_000, "the limit is high enough for every cluster, even with the smallest pages"
    monkeypatch.setattr(paging, "MAX_PAGES", 50)
    fetch = Fetch(*((["a"], f"t{number}") for number in range(51)))
    with pytest.raises(WatchFault, match="garbage: a list of more than 50 pages"):
        await items(fetch)
    assert len(fetch.queries) == 50
    assert len(await items(Fetch(*((["a"], f"t{number}") for number in range(49)), (["b"], "")))) == 50


async def test_page_without_version_is_an_error() -> None:
    async with serving() as (api, connection):
        api.lists = [page(thing("a"), version="")]
        with pytest.raises(WatchFault, match="garbage: a list without version or end"):
            await connection.list_page(PATH)
