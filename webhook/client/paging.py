"""Lists are read page by page, so that neither side ever holds all of a large one as JSON."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Final
from urllib.parse import urlencode

from msgspec import Raw

from webhook.client.limits import MAX_BYTES_AT_STRETCH, MAX_OBJECTS_AT_STRETCH, MAX_PAGES
from webhook.client.wire import FaultReason, Item, Page, WatchFault

# What a page that is too large, or too slow, is divided by.
SMALLER: Final = 4


async def pages(
    fetch: Callable[[str], Awaitable[Page[Item]]], path: str, *, limit: int, **query: str
) -> AsyncIterator[Page[Item]]:
    """Every page of the collection at `path`, each with `limit` items at most; all show the moment of the first one.

    A page that is too large is asked for again with fewer items, and so are those after it. `fetch` gets one page by
    its path and query. Parameters of `query` that are empty are left out.
    WatchFault for a list without end, and whatever `fetch` raises.
    """
    # Not with resourceVersion=0: API servers then ignore `limit`, and may answer with the past.
    parameters = {"limit": str(limit)} | {name: value for name, value in query.items() if value}
    followed: set[int] = set()  # hashes: tokens can be long
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
    """`items` in portions, none of which takes long to decode."""
    start = size = 0
    for end, item in enumerate(items):
        size += len(memoryview(item))
        if end - start + 1 >= MAX_OBJECTS_AT_STRETCH or size >= MAX_BYTES_AT_STRETCH:
            yield items[start : end + 1]
            start, size = end + 1, 0
    if start < len(items):
        yield items[start:]
