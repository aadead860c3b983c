"""Reads lists page by page, so that neither the API server nor the service holds a large list as JSON."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Final
from urllib.parse import urlencode

from msgspec import Raw

from webhook.client.limits import MAX_BYTES_AT_STRETCH, MAX_OBJECTS_AT_STRETCH, MAX_PAGES
from webhook.client.wire import FaultReason, Item, Page, WatchFault

# The divisor for the number of items per page, after a page that was too large or too slow.
SMALLER: Final = 4


async def pages(
    fetch: Callable[[str], Awaitable[Page[Item]]], path: str, *, limit: int, **query: str
) -> AsyncIterator[Page[Item]]:
    """Every page of the collection at `path`, with at most `limit` items per page.

    `fetch` reads the page at a path with its query. All pages show the collection at the time of the first page. A page
    that is too large is requested again with fewer items. Empty parameters of `query` are not sent. WatchFault for a
    list without end.
    """
    # With resourceVersion=0, API servers would ignore `limit` and might return old data.
    parameters = {"limit": str(limit)} | {name: value for name, value in query.items() if value}
    followed: set[int] = set()  # hashes of tokens, which can be long
    while len(followed) < MAX_PAGES:
        try:
            page = await fetch(f"{path}?{urlencode(parameters)}")
        except WatchFault as fault:
            if fault.reason is not FaultReason.TOO_LARGE or limit == 1:
                raise
            limit = max(1, limit // SMALLER)
            parameters["limit"] = str(limit)
            continue
        yield page
        token = page.metadata.token
        if not token:
            return
        if hash(token) in followed:
            raise WatchFault(FaultReason.GARBAGE, "a list without version or end")
        followed.add(hash(token))
        parameters["continue"] = token
    raise WatchFault(FaultReason.GARBAGE, f"a list of more than {MAX_PAGES} pages")


def slices(items: Sequence[Raw]) -> Iterator[Sequence[Raw]]:
    """Slices of `items` that can be decoded without a pause."""
    start = size = 0
    for end, item in enumerate(items):
        size += len(memoryview(item))
        if end - start + 1 >= MAX_OBJECTS_AT_STRETCH or size >= MAX_BYTES_AT_STRETCH:
            yield items[start : end + 1]
            start, size = end + 1, 0
    if start < len(items):
        yield items[start:]
