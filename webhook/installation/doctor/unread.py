"""The result in place of an object that could not be read."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from certs.store import StoreError
from webhook.client.calls import ApiError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unread:
    reason: str
    """One line for the user."""


async def attempt(work: Awaitable[T]) -> T | Unread:
    """The result of `work`, or Unread if the API server denies it; ClusterError if the API server cannot be used."""
    try:
        return await work
    except (ApiError, StoreError) as error:
        if isinstance(error, ApiError) and error.status == 401:
            raise
        return Unread(_short(str(error)))


def _short(text: str) -> str:
    """The forbidden action if `text` is a denial of RBAC, else `text`."""
    forbidden = text.partition(" is forbidden: ")[2].partition(" cannot ")[2]
    return f"no permission to {forbidden.removesuffix(' (403)')}" if forbidden else text
