"""A placeholder for objects that could not be read."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from certs.store import StoreError
from webhook.client.calls import ApiError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unread:
    """In place of an object that the API server denied."""

    reason: str
    """One line for the user."""


async def attempt(work: Awaitable[T]) -> T | Unread:
    """The result of `work`, or Unread if the API server denies it. ClusterError if it cannot be used at all."""
    try:
        return await work
    except ApiError as error:
        if error.status == 401:
            raise
        return Unread(_short(str(error)))
    except StoreError as error:
        return Unread(_short(str(error)))


def _short(text: str) -> str:
    """Only the forbidden action of an RBAC denial, else all of `text`."""
    forbidden = text.partition(" is forbidden: ")[2].partition(" cannot ")[2]
    return f"no permission to {forbidden.removesuffix(' (403)')}" if forbidden else text
