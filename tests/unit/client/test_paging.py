"""One list in pages, from whatever fetches them."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.support.watch_api import page, serving, thing
from webhook.client import paging
from webhook.client.limits import MAX_PAGES
from webhook.client.paging import pages
from webhook.client.wire import Page, PageMetadata, WatchFault

PATH = "/api/v1/things"


class Fetch:
    """Answers with these pages, in turn: (items, token of the next one)."""

    def __init__(self, *answers: tuple[list[str], str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def __call__(self, target: str) -> Page[str]:
        self.asked.append((urlsplit(target).path, dict(parse_qsl(urlsplit(target).query, keep_blank_values=True))))
        items, token = self.answers.pop(0)
        return Page(PageMetadata("7", token), items)


async def items(fetch: Fetch, **query: str) -> list[str]:
    return [item async for each in pages(fetch, PATH, limit=2, **query) for item in each.items or ()]


async def test_each_page_is_asked_for_with_the_token_of_the_one_before() -> None:
    fetch = Fetch((["a", "b"], "t/1="), (["c"], "t/2="), ([], ""))
    assert await items(fetch, labelSelector="a=b", fieldSelector="") == ["a", "b", "c"]
    query = {"limit": "2", "labelSelector": "a=b"}
    assert fetch.asked == [
        (PATH, query),
        (PATH, query | {"continue": "t/1="}),
        (PATH, query | {"continue": "t/2="}),
    ]


async def test_a_page_is_handed_on_before_the_next_is_asked_for() -> None:
    fetch = Fetch((["a"], "t"), (["b"], ""))
    found = pages(fetch, PATH, limit=1)
    assert (await anext(found)).items == ["a"]
    assert len(fetch.asked) == 1


async def test_a_token_that_comes_again_is_a_list_without_end() -> None:
    with pytest.raises(WatchFault, match="garbage: a list without version or end"):
        await items(Fetch((["a"], "t"), (["b"], "t")))


async def test_tokens_that_take_turns_are_a_list_without_end() -> None:
    """They were followed for ever, as fast as answers came."""
    fetch = Fetch(*[(["a"], "t1"), (["b"], "t2")] * 50)
    with pytest.raises(WatchFault, match="garbage: a list without version or end"):
        await items(fetch)
    assert len(fetch.asked) == 3


async def test_no_list_has_more_pages_than_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """However new each token is."""
    assert MAX_PAGES >= 50_000, "with the smallest pages too every cluster can be read"
    monkeypatch.setattr(paging, "MAX_PAGES", 50)
    fetch = Fetch(*((["a"], f"t{number}") for number in range(51)))
    with pytest.raises(WatchFault, match="garbage: a list of more than 50 pages"):
        await items(fetch)
    assert len(fetch.asked) == 50
    assert len(await items(Fetch(*((["a"], f"t{number}") for number in range(49)), (["b"], "")))) == 50


async def test_a_page_without_version_is_none_of_an_api_server() -> None:
    async with serving() as (api, connection):
        api.lists = [page(thing("a"), version="")]
        with pytest.raises(WatchFault, match="garbage: a list without version or end"):
            await connection.list_page(PATH)
